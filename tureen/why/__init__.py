"""Why: for tuples that a user asks about, whether they are in a query's answer, and what kept them out.

Takes a handle, a condition over one of the query's inputs, and NOW. Holds nothing.
Gives an `Explanation`, computed from the snapshot and by the functions that an invocation would use.
Does not know Spark, HTTP, or how a request arrived.

* `explanation.py`, `explanation_json.py`: what users get; `shown_values.py`: values and factors as they read them
* `asking.py`: the way from a handle and a condition to the explanation
* `asked_tuples.py`: the tuples that satisfy the condition; `one_input.py`: retention, window and clause of their input
* `missing_partner.py`: joins; `after_joining.py`: NOW, steps, groups, HAVING, QUALIFY, DISTINCT and LIMIT
"""
