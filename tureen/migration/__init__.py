"""Migration: a pot of an earlier format is converted to the current one when it is opened for writing.

Takes the directory of a pot. Holds the SQL and the readers of earlier formats, which never change.
Gives a pot that answers as before. Does not know Spark, queries' meanings, or today's catalog tables.

* `migrate.py`: the migrations in order
* `files_to_parts.py`: format 2 to 3; `query_inputs.py`: format 3 to 4; `reserved_id_table.py`: format 4 to 5;
  `derived_stream_columns.py`: format 5 to 6; `punctuation_columns.py`: format 6 to 7
* `format_8.py`: format 7 to 8, with `item_column.py`, `join_plan_columns.py`, `punctuate_column.py`,
  `needed_columns.py` and `federation_columns.py`
"""
