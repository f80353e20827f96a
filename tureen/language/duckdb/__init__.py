"""DuckDB SQL of bound expressions: DuckDB computes what Spark would.

Takes bound expressions. Holds nothing. Gives SQL text, or the value of a constant. Does not know streams.

* `render.py`: the SQL of an expression; `conversions.py`: CAST; `decimals.py`: arithmetic of DECIMAL
* `expressions.py`: the expressions of a query; `fold.py`: constant folding; `raising.py`: which expressions can raise
"""
