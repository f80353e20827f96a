"""The value of a scalar expression for one row: DuckDB over a table of that one row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

import duckdb
import pyarrow as pa

from tureen.errors import QueryFailed
from tureen.query import NOW, Expression
from tureen.schema import ARRIVAL, Kind, Schema, Type
from tureen.testing.values import Exactly

_NOTHING = "_"
"""The column of the row for an expression that names none: DuckDB has no table without columns."""

Row = Mapping[str, Any]
"""Kept values by the names of their columns."""

Types = Mapping[str, Type]
"""The types of a row's columns."""


@cache
def types_of(schema: Schema) -> Types:
    """The types of a stream's stored columns, and of NOW."""
    stored = {**{column.name: column.type for column in schema.columns}, NOW: Type(Kind.TIMESTAMP)}
    return stored if schema.time is not None else {**stored, ARRIVAL: Type(Kind.TIMESTAMP)}


def value_of(expression: Expression, row: Row, types: Types) -> Any:
    """The value of an expression for this row, in the one form that its type is kept in; QueryFailed if it raises."""
    if expression.column is not None:
        return row[expression.column]
    fields = tuple((name, types[name]) for name in expression.columns)
    return _ask_once(expression.sql, expression.type, fields, tuple(Exactly(row[name]) for name, _ in fields))


def is_true(sql: str, columns: Sequence[str], row: Row, types: Types) -> bool:
    """Whether a condition is TRUE for this row; unknown is not."""
    fields = tuple((name, types[name]) for name in columns)
    values = tuple(Exactly(row[name]) for name, _ in fields)
    return _ask_once(f"CAST(({sql}) AS BOOLEAN)", Type(Kind.BOOLEAN), fields, values) is True


@lru_cache(maxsize=200_000)
def _ask_once(sql: str, type_: Type, fields: tuple[tuple[str, Type], ...], values: tuple[Exactly, ...]) -> Any:
    """Ask DuckDB; a row does not change, so the same question is not put again at every later invocation."""
    names = [(name, one.arrow) for name, one in fields] or [(_NOTHING, pa.null())]
    row = {name: one.value for (name, _), one in zip(fields, values, strict=True)}
    asked = pa.Table.from_pylist([{_NOTHING: None, **row}], schema=pa.schema(names))
    connection = _connection()
    connection.register("one", asked)
    try:
        found = connection.sql(f"SELECT ({sql}) AS value FROM one").to_arrow_table()
    except (duckdb.OutOfRangeException, duckdb.ConversionException, duckdb.InvalidInputException) as error:
        raise QueryFailed(f"the query raised: {error}") from error
    finally:
        connection.unregister("one")
    # A TIMESTAMP comes without a zone and means UTC, which is how Arrow casts it.
    (value,) = found.column("value").cast(type_.arrow).to_pylist()
    return value


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": "1"})
    connection.execute("SET TimeZone = 'UTC'")
    # Rewriting `a + 1 = 3` into `a = 2` would hide the overflow that Spark raises.
    connection.execute("SET disabled_optimizers = 'expression_rewriter'")
    return connection
