"""Rows and groups of one input: from the cells and indexes of segments to the outputs of a query.

Takes a snapshot and a prepared query. Holds partial aggregates. Gives rows and groups in the window, and outputs.
Does not know joins, changes or followers.

* `ready.py`: a prepared query; `watch.py`: statistics of invocations
* `ranges.py`, `numbering.py`, `axis.py`: which tuples a window contains; `stepping.py`: steps;
  `window_edges.py`: when time changes an answer
* `selection.py`, `matches.py`: the tuples in the window of an invocation, and those that satisfy the query
* `gather.py`, `gather_kernels.py`, `placed_tuples.py`: their columns
* `grouped.py`, `grouping_set_rows.py`, `kept.py`: groups, and the cache of partial aggregates
* `finish.py`, `over_columns.py`: DISTINCT, ORDER BY, LIMIT, OVER
* `remembered_rows.py`: tuples of runs that satisfied clauses before
"""
