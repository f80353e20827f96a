"""Predicates: a bound condition becomes a clause in normal form.

Takes bound conditions. Holds nothing. Gives clauses, in which the factors that an index can answer are separate.
Does not know names, streams or data.

* `factors.py`: NOT pushed to the leaves; `comparisons.py`, `patterns.py`: leaves that an index can answer
* `normal_form.py`, `intervals.py`: equal conditions become equal clauses
* `slots.py`: comparisons with a parameter; `factor_text.py`: a factor as SQL, for EXPLAIN
"""
