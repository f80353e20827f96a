"""Joining: rows of several inputs become joined rows.

Takes the rows of each input and a join tree. Holds nothing between calls. Gives the numbers of the joined rows.
Does not know Spark, the pot, the language, windows, or how the rows of an input were selected.

* `join_input.py`: what is known about the rows of an input; `joined_rows.py`: combinations of them, by number
* `join_keys.py`: columns of two sides as integers that compare as the values do
* `partners.py`, `partner_kernels.py`: the rows of one side that satisfy comparisons with a row of the other; an input
  may find them by a key index instead
* `key_columns.py`: the columns by which an input may be probed
* `partnered.py`: the rows of outer, semi, anti and ASOF joins, given the partners
* `row_order.py`: the order of joined rows
* `join_evaluation.py`: a join tree, side by side
"""
