"""Functions: what each takes, returns, and is in DuckDB SQL.

Takes nothing. Holds tables of functions. Gives signatures. Does not know queries or streams.

* `signatures.py`: what a function is; `math.py`, `text.py`, `time.py`, `json.py`, `regexes.py`: the functions
* `rounding.py`, `casing.py`, `float_texts.py`, `date_formats.py`, `date_parsing.py`, `zones.py`: SQL that means what
  Spark means
"""
