"""The test kit: a simple reference implementation of the engine, and random streams, rows and SQL to compare both.

Takes SQL texts and rows. Holds every tuple, as a Python dict. Gives the correct answer, slowly.
Does not know Spark, runs, indexes, the pot, the table of aggregates; only `manual_engine.py` does.

* `oracle.py`, `tuples.py`, `values.py`, `truth.py`, `evaluate.py`: the oracle
* `joins.py`: joins of the oracle; `answered_ids.py`: which tuples have rows in its answers
* `grouped.py`, `steps.py`, `aggregates.py`, `ordered_aggregates.py`, `bivariate.py`, `window_functions.py`,
  `outputs.py`: groups, steps, OVER and ORDER BY of the oracle
* `group_followers.py`: an answer to which changes are applied; `appearing_rows.py`: the plain twin of changes of joins;
  `derived_graphs.py`: random graphs of derived streams, and their contents
* `punctuations.py`: the plain twin of closed sets; `punctuated_joins.py`: that of joins over punctuated streams;
  `final_twin.py`: that of EMIT FINAL
* `photons.py`: a stream of photons, its XML and queries in WXQuery
* `manual_engine.py`: the engine itself, without Spark and threads, driven step by step by a test
* `strategies.py`, `text_strategies.py`, `literal_strategies.py`, `question_strategies.py`, `formula_strategies.py`,
  `step_strategies.py`, `over_strategies.py`, `join_strategies.py`, `kept_join_strategies.py`,
  `followed_join_strategies.py`, `judge.py`: random inputs; only these need Hypothesis
"""

from tureen.testing.oracle import Handle, Oracle
from tureen.testing.values import comparable

__all__ = ["Handle", "Oracle", "comparable"]
