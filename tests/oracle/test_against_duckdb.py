"""A second opinion on whole selections: DuckDB, over the types and forms where it agrees with Spark."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tureen.errors import QueryFailed
from tureen.schema import Kind, Schema, Type
from tureen.testing import Oracle, comparable, strategies

TYPES = tuple(
    Type(kind)
    for kind in (Kind.BOOLEAN, Kind.INT, Kind.BIGINT, Kind.FLOAT, Kind.DOUBLE, Kind.STRING, Kind.DATE, Kind.TIMESTAMP)
)
Case = tuple[Schema, list[list[dict[str, Any]]], strategies.QueryText]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A schema, what is pushed, and a query over all of it."""
    schema = draw(strategies.schemas(timed=True, types=TYPES))
    pushes = draw(strategies.batches(schema))
    return schema, pushes, draw(strategies.queries(schema, "s", windowed=False))


def ask_duckdb(schema: Schema, pushes: list[list[dict[str, Any]]], query: strategies.QueryText) -> list[Any]:
    """Run the batch query over all rows, ordered by time and then by arrival."""
    rows = [row for push in pushes for row in push]
    rows.sort(key=lambda row: row["Ts"])
    with duckdb.connect(config={"threads": "1"}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("s", pa.Table.from_pylist(rows, schema=schema.arrow))
        table: pa.Table = connection.execute(query.batch).to_arrow_table()
        return list(table.to_pylist())


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases())
def test_selections_are_those_of_duckdb(case: Case) -> None:
    schema, pushes, query = case
    oracle = Oracle()
    oracle.create_stream("s", schema)
    handle = oracle.register(query.text)
    for push in pushes:
        oracle.push("s", push)
    try:
        expected = ask_duckdb(schema, pushes, query)
        answer = handle.invoke()
    except (duckdb.OutOfRangeException, duckdb.ConversionException, QueryFailed):
        assume(False)
    assert comparable(answer) == comparable(expected)
