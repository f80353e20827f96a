"""The value of a scalar expression for a row: DuckDB over a table of that single row."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any

import duckdb
import pyarrow as pa

from tureen.errors import QueryFailed
from tureen.functions.user_function import UserFunction, sql_name
from tureen.query import NOW, Expression
from tureen.schema import Kind, Schema, Type
from tureen.testing.values import Exactly

_DUMMY = "_"
"""The column of the row for an expression without columns: DuckDB has no table without columns."""

Row = Mapping[str, Any]
"""Stored values by column name."""

Types = Mapping[str, Type]
"""The types of a row's columns."""


@cache
def types_of(schema: Schema) -> Types:
    """The types of a stream's stored columns, and of NOW."""
    stored = {**{column.name: column.type for column in schema.columns}, NOW: Type(Kind.TIMESTAMP)}
    return stored | {schema.time_column: Type(Kind.TIMESTAMP)}


def value_of(expression: Expression, row: Row, types: Types) -> Any:
    """The value of an expression for this row, in the form in which its type is stored; QueryFailed if it raises."""
    if expression.column is not None:
        return row[expression.column]
    fields = tuple((name, types[name]) for name in expression.columns)
    return _evaluate_once(expression.sql, expression.type, fields, tuple(Exactly(row[name]) for name, _ in fields))


def is_true(sql: str, columns: Sequence[str], row: Row, types: Types) -> bool:
    """Whether a condition is TRUE for this row, not FALSE or unknown."""
    fields = tuple((name, types[name]) for name in columns)
    values = tuple(Exactly(row[name]) for name, _ in fields)
    return _evaluate_once(f"CAST(({sql}) AS BOOLEAN)", Type(Kind.BOOLEAN), fields, values) is True


def define(definition: UserFunction, function: Callable[..., Any]) -> None:
    """Let expressions call a Python function, row by row."""
    if definition.digest in _defined:
        return
    names = ", ".join(f"a{number}" for number in range(len(definition.arguments)))
    namespace: dict[str, Any] = {"call": lambda *values: _naive(function(*map(_aware, values)))}
    exec(f"def callback({names}):\n    return call({names})", namespace)
    for constant in (False, True):
        _connection().create_function(
            sql_name(definition, constant=constant)[1:-1],
            namespace["callback"],
            [duckdb_type(kind) for kind in definition.arguments],
            duckdb_type(definition.returns),
            null_handling="special",
            side_effects=constant,
        )
    _defined.add(definition.digest)


def duckdb_type(kind: Type) -> Any:
    """A type of DuckDB."""
    return duckdb.sqltype({Kind.INT: "INTEGER", Kind.STRING: "VARCHAR"}.get(kind.kind, kind.sql))


def _aware(value: Any) -> Any:
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) else value


def _naive(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


_defined: set[str] = set()


@lru_cache(maxsize=200_000)
def _evaluate_once(sql: str, type_: Type, fields: tuple[tuple[str, Type], ...], values: tuple[Exactly, ...]) -> Any:
    """Evaluate an expression in DuckDB; rows do not change, so later invocations reuse the result."""
    columns = [(name, column_type.arrow) for name, column_type in fields] or [(_DUMMY, pa.null())]
    row = {name: value.value for (name, _), value in zip(fields, values, strict=True)}
    table = pa.Table.from_pylist([{_DUMMY: None, **row}], schema=pa.schema(columns))
    connection = _connection()
    connection.register("row", table)
    try:
        result = connection.sql(f'SELECT ({sql}) AS value FROM "row"').to_arrow_table()
    except (duckdb.OutOfRangeException, duckdb.ConversionException, duckdb.InvalidInputException) as error:
        raise QueryFailed(f"the query raised: {error}") from error
    finally:
        connection.unregister("row")
    # DuckDB's TIMESTAMP has no zone and is in UTC, which Arrow's cast assumes.
    (value,) = result.column("value").cast(type_.arrow).to_pylist()
    return value


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": "1"})
    connection.execute("SET TimeZone = 'UTC'")
    # Rewriting `a + 1 = 3` into `a = 2` would hide the overflow that Spark raises.
    connection.execute("SET disabled_optimizers = 'expression_rewriter'")
    # Functions of an open connection would be reported as leaks at the end of the process.
    atexit.register(connection.close)
    return connection
