"""Results: from cells to answers.

Takes a handle and NOW. Holds memory maps of runs and a view of the catalog.
Gives answers as Arrow. Does not know Spark, HTTP, or how cells came to be.

* `invoke.py`: an invocation, step by step; `answer.py`: answers and changes; `ready.py`: queries prepared for it
* `view.py`, `segment.py`: the runs of a stream as of one commit; `ranges.py`, `numbering.py`, `axis.py`: which tuples a
  window holds; `stepping.py`: steps
* `gather.py`, `gather_kernels.py`: rows; `grouped.py`, `grouping_sets.py`, `kept.py`: groups
* `finish.py`, `window_functions.py`: DISTINCT, ORDER BY, LIMIT, OVER
* `selection.py`, `matches.py`: the tuples that an invocation asks for, and those that satisfy the query
* `changes.py`: what joined an answer; `template_matches.py`, `pairing.py`: the same of all queries of a template
* `watch.py`: how often clauses are asked for
"""
