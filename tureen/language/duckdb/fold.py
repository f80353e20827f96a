"""Constant folding: DuckDB evaluates an expression over constants once instead of per row."""

from __future__ import annotations

import atexit
from datetime import date, datetime
from decimal import Context, Decimal
from functools import cache
from typing import TYPE_CHECKING

from tureen.deferred_import import DeferredModule
from tureen.errors import LimitExceeded, SqlError
from tureen.evaluation.limits import connect, limited
from tureen.keys import canonical_float
from tureen.language.duckdb.render import render
from tureen.language.source import Source
from tureen.language.tree import Call, Const
from tureen.predicate import Key
from tureen.schema import Kind
from tureen.window import to_micros

if TYPE_CHECKING:
    import duckdb
else:
    duckdb = DeferredModule("duckdb")


@cache
def _duckdb() -> duckdb.DuckDBPyConnection:
    connection: duckdb.DuckDBPyConnection = connect()
    return connection


# A connection that outlives DuckDB's module is reported as leaked.
atexit.register(_duckdb.cache_clear)


def evaluate(source: Source, call: Call) -> Const:
    """Evaluate an expression over constants."""
    cursor = _duckdb().cursor()
    try:
        with limited(cursor, "a constant"):
            row = cursor.execute(f"SELECT {render(call)}").fetchone()
    except LimitExceeded as error:
        raise SqlError(error.message, hint=error.hint, location=source.location(call.at)) from None
    except duckdb.Error as error:
        reason = str(error).splitlines()[0].partition(": ")[2]
        raise SqlError(
            "a constant expression cannot be evaluated", detail=reason or None, location=source.location(call.at)
        ) from None
    assert row is not None
    if isinstance(row[0], str) and call.type.kind is not Kind.STRING:
        # DuckDB returns times that Python cannot represent as strings.
        raise SqlError("the time is beyond the years 1 to 9999", location=source.location(call.at))
    return Const(None if row[0] is None else _key(row[0], call), call.type, call.at)


def _key(value: object, call: Call) -> Key:
    if isinstance(value, bool | int | str):
        return value if isinstance(value, str) else int(value)
    if isinstance(value, float):
        return canonical_float(value)
    if isinstance(value, Decimal):
        return int(value.scaleb(call.type.scale, Context(prec=100)))
    if isinstance(value, datetime):
        return to_micros(value)
    assert isinstance(value, date)
    assert call.type.kind is Kind.DATE
    return (value - date(1970, 1, 1)).days
