"""Evaluation: DuckDB, for expressions over Arrow columns.

Takes DuckDB SQL and Arrow tables. Holds a connection per thread, without access to files or the network.
Gives Arrow tables, or an error if an expression raises or exceeds its memory or time limit.
Does not know streams or queries.

* `duck.py`: running SQL; `limits.py`: connections, and the memory and time limits of one evaluation
"""
