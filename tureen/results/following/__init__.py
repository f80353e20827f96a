"""Following: new tuples are matched and joined once for all followers of a process.

Takes new tuples, and the clauses and joins of followers. Holds followers, operators and their last output.
Gives who may have changes, and the rows of joins. Does not know groups, users or connections.

* `followers.py`: all followers; `followed.py`: those of queries over one stream
* `followed_joins.py`, `join_operator.py`: those of joins; `operator_rows.py`, `block_rows.py`, `row_shape.py`: rows
* `join_purging.py`: the tuples that an operator forgets because of punctuations
"""
