"""Answers of joins, and of queries within queries.

Takes a snapshot and a prepared join. Holds key indexes, and which kept rows satisfy clauses. Gives joined rows.
Does not know changes or followers.

* `join_ready.py`: prepared joins; `join_answers.py`, `join_inputs.py`, `joined.py`, `combined_rows.py`: their rows
* `first_joined.py`: the first rows with LIMIT; `lateral_values.py`: subqueries with columns of the query around them
* `kept_rows.py`, `kept_join_groups.py`: rows and groups from join runs; `new_joined_tuples.py`: what is owed
* `remembered_joins.py`, `remembered_part.py`, `few_new_tuples.py`: joined rows of earlier invocations, and new ones
* `key_indexes.py`: the key indexes of runs and tables; `index_join.py`: joins by these alone
* `stem_input.py`: the SteMs of followed joins
* `flat_join.py`: the inner join whose changes are read; `costly_inputs.py`: inputs whose clauses call user functions
* `constant_tables.py`: the rows of VALUES
"""
