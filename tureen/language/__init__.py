"""Takes the text of a query and a way to look streams up.

Holds nothing.
Gives a bound `Query`: its stream, its clause in normal form, its outputs and its window.
Does not know data, Spark, or how a query is answered.
"""

from tureen.language.bounds import parse_duration
from tureen.language.query import bind_query

__all__ = ["bind_query", "parse_duration"]
