"""Covers: answers from what is stored for something else.

Takes a query, derived streams and eager clauses. Holds what covers which query. Gives another source of an answer.
Does not know followers or users.

* `reuse.py`: derived streams that cover a query; `kept_covers.py`: cells of a wider clause
* `step_streams.py`, `shared_steps.py`: derived steps that those of a query consist of; `step_ledger.py`: which of them
  are exact; `composed_steps.py`: an answer from them
"""
