"""The language: text in SQL or WXQuery becomes a bound query.

Takes a text and a function that looks up streams. Holds queries that it has bound.
Gives a `Query` or an error with its position in the text.
Does not know data, Spark, the pot, or how a query is answered.

The order of the passes is in `binding/passes.py`. The vocabulary: `source.py` (a text and locations in it), `tree.py`,
`types.py` and `decimal_types.py` (bound expressions), `literals.py`, `moments.py`, `durations.py`, `cast.py` and
`spelling.py` (values), `expression_text.py` (bound expressions for people to read).
`other_engines.py` has hints for those who know other engines.

* `text/`: tokens: the parts of a query, its window, IN lists; statements and their declarations
* `binding/`: names and types, aggregates, window functions, groups, outputs
* `predicates/`: WHERE in normal form, for indexes
* `functions/`: the scalar functions, and their DuckDB SQL
* `duckdb/`: bound expressions as DuckDB SQL
* `templates/`: queries with parameters
* `wxquery/`: the second language; `languages.py`: both; `bound_queries.py`: texts that were bound before
* `fast/`: binding without parsing a query that differs from an earlier one only in constants
"""

from tureen.language.binding.passes import bind_query
from tureen.language.text.window_bounds import parse_duration, parse_retention

__all__ = ["bind_query", "parse_duration", "parse_retention"]
