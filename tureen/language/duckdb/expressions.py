"""The expressions of a query, from bound trees."""

from __future__ import annotations

from tureen.errors import SqlError, Unsupported
from tureen.language.duckdb.render import render
from tureen.language.expression_text import expression_text
from tureen.language.source import Source
from tureen.language.tree import Expr, IntervalConst, Ref, columns_in
from tureen.query import Expression


def expression_of(source: Source, expr: Expr) -> Expression:
    """A bound tree as SQL, with its type and its columns."""
    if isinstance(expr, IntervalConst):
        raise Unsupported(
            "an interval cannot be selected", hint="add it to a DATE or TIMESTAMP", location=source.location(expr.at)
        )
    if expr.type is None:
        raise SqlError(
            "an untyped NULL cannot be selected", hint="write CAST(NULL AS STRING)", location=source.location(expr.at)
        )
    column = expr.column.name if isinstance(expr, Ref) else None
    return Expression(render(expr), expr.type, columns_in(expr), column, expression_text(expr))
