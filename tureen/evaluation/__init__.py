"""Evaluation: DuckDB, for expressions over Arrow columns.

Takes DuckDB SQL and Arrow tables. Holds a connection per thread, without access to files or the network.
Gives Arrow tables, or an error where an expression raises or exceeds its memory or time.
Does not know streams or queries.

* `duck.py`: running SQL; `limits.py`: connections, and the memory and time that one evaluation may take
"""
