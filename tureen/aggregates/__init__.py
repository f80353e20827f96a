"""Partial aggregates: stored per run, combined over any window.

Takes keys and arguments of a run's tuples, as Arrow columns. Holds a tree of partial aggregates over them (PSoup §6,
Fig. 14). Gives the groups of any interval of the run, and of its panes. Does not know windows, the catalog or Spark.

* `plan.py`: which partial aggregates a grouping needs; `finals.py`: from partial states to values
* `strip.py`: the tree over one run; `panes.py`: the pieces of step windows; `groups.py`: group numbers
* `aggregate_kernels.py`, `selected_kernels.py`, `aggregate_warming.py`: compiled loops
* `expression_values.py`: keys and arguments
* `holistic.py`, `distinct.py`: aggregates that need all rows, and DISTINCT; `aggregate_sql.py`: their DuckDB SQL

The aggregates themselves are listed in `tureen/aggregate_functions.py`.
"""
