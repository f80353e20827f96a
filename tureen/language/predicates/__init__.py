"""Predicates: a bound condition becomes a clause in normal form.

Takes bound conditions. Holds nothing. Gives clauses, with everything that an index can answer told apart.
Does not know names, streams or data.

* `factors.py`: NOT pushed to the leaves; `comparisons.py`, `patterns.py`: leaves that an index answers
* `normal_form.py`, `intervals.py`: equal conditions become equal clauses
* `slots.py`: comparisons with a parameter; `factor_text.py`: a factor as people write it
"""
