"""SteMs: tuples in, data runs out.

Takes rows in any usual format. Holds tuples in time order, cut into indexed blocks, in memory-mapped files.
Gives runs, blocks and cells. Does not know queries, Spark, or the catalog.

* `intake.py`, `casts.py`, `csv_file.py`, `table_content.py`: rows in any usual format as Arrow columns of a schema
* `text_values.py`: values written as text; `xml_items.py`, `document_files.py`: XML as rows
* `value_arrays.py`: Arrow arrays of a few Python values, without pandas
* `row_items.py`: rows with punctuations among them; `punctuation_binding.py`: their patterns; `pattern_rows.py`: rows
  that carry them
* `pushed.py`: pushed rows as the inbox has them
* `index.py`, `sort_kernels.py`: the index of a block
* `key_index.py`, `key_kernels.py`: the index of a run by the columns that joins compare
* `join_run.py`: files of joined tuples; `tuple_order.py`: their order
* `table_files.py`: the contents of tables as files of the pot
* `run.py`, `stored.py`, `stored_keys.py`: run files, their blocks, cells and key indexes, verified and mapped when
  first used
* `cells/`: which rows of a block satisfy which clauses
"""
