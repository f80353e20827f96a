"""DuckDB SQL: a bound expression, written so that DuckDB computes what Spark would.

Takes bound expressions. Holds nothing. Gives SQL text, or the value of a constant. Does not know streams.

* `render.py`: the SQL of an expression; `conversions.py`: CAST; `division.py`: division of DECIMAL
* `expressions.py`: what a query carries; `fold.py`: values of constants; `raising.py`: expressions that can raise
"""
