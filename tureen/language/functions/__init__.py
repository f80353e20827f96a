"""Scalar functions: parameters, result types and DuckDB SQL.

Takes nothing. Holds tables of functions. Gives signatures. Does not know queries or streams.

* `signatures.py`: signatures; `math.py`, `text.py`, `time.py`, `json.py`, `regexes.py`: the functions
* `rounding.py`, `casing.py`, `float_texts.py`, `date_formats.py`, `date_parsing.py`, `zones.py`: SQL with
  Spark's semantics
"""
