"""Selections of the oracle against DuckDB, for the types and forms in which DuckDB agrees with Spark."""

from __future__ import annotations

import re
from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.errors import QueryFailed, Unsupported
from tureen.schema import Kind, Schema, Type
from tureen.testing import Oracle, comparable, strategies

TYPES = tuple(
    Type(kind)
    for kind in (
        Kind.BOOLEAN,
        Kind.TINYINT,
        Kind.SMALLINT,
        Kind.INT,
        Kind.BIGINT,
        Kind.FLOAT,
        Kind.DOUBLE,
        Kind.STRING,
        Kind.STRING,
        Kind.DATE,
        Kind.TIMESTAMP,
    )
)
Case = tuple[Schema, list[list[dict[str, Any]]], list[strategies.QueryText]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A schema, pushes, and queries over all rows."""
    schema = draw(strategies.schemas(timed=True, types=TYPES))
    pushes = draw(st.lists(strategies.rows(schema, min_size=3), min_size=1, max_size=3))
    queries = strategies.queries(schema, "s", windowed=False, depth=1)
    return schema, pushes, draw(st.lists(queries, min_size=5, max_size=5))


def with_lowercase_names(answer: list[dict[str, Any]]) -> list[Any]:
    """The answer with lower-case names: DuckDB names a column as declared, Spark as written in the query."""
    return comparable([{name.lower(): value for name, value in row.items()} for row in answer])


def for_duckdb(query: strategies.QueryText, schema: Schema) -> str:
    """The query with FLOAT columns of its condition cast to DOUBLE, which Spark does implicitly and DuckDB does not."""
    floats = "|".join(column.name for column in schema.columns if column.type.kind is Kind.FLOAT)
    head, keyword, condition = query.batch.partition(" WHERE ")
    if not floats or not keyword:
        return query.batch
    # Every other part is a string literal.
    parts = condition.split("'")
    parts[::2] = [re.sub(rf"\b({floats})\b", r"\1::DOUBLE", part, flags=re.IGNORECASE) for part in parts[::2]]
    return head + keyword + "'".join(parts)


# A failure shows the query and the rows, so shrinking is not needed; it would be slow.
@example_settings(20, explored=40, shrink=False)
@given(cases())
@example(
    (
        Schema.parse("Ts TIMESTAMP, f FLOAT", "Ts"),
        [[{"Ts": strategies.BASE, "f": 6338608298459136.0}]],
        [strategies.QueryText("f Out0", "s", "s.f != s.f + 1", "")],
    )
)
@example(
    (
        Schema.parse("Ts TIMESTAMP, f FLOAT", "Ts"),
        [[{"Ts": strategies.BASE, "f": 0.10000000149011612}]],
        [strategies.QueryText("f Out0", "s", "f <= 0.1", "")],
    )
)
@example(
    (
        Schema.parse("Ts TIMESTAMP, f FLOAT", "Ts"),
        [[{"Ts": strategies.BASE, "f": 16777216.0}]],
        [strategies.QueryText("f Out0", "s", "16777217 = f", "")],
    )
)
def test_selections_agree_with_duckdb(case: Case) -> None:
    schema, pushes, queries = case
    oracle = Oracle()
    oracle.create_stream("s", schema)
    for push in pushes:
        oracle.push("s", push)
    rows = sorted((row for push in pushes for row in push), key=lambda row: row["Ts"])
    with duckdb.connect(config={"threads": "1"}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("s", pa.Table.from_pylist(rows, schema=schema.arrow))
        for query in queries:
            try:
                answer = oracle.register(query.text).invoke()
                expected = connection.sql(for_duckdb(query, schema)).to_arrow_table().to_pylist()
            except (Unsupported, QueryFailed, duckdb.OutOfRangeException, duckdb.ConversionException):
                continue
            assert with_lowercase_names(answer) == with_lowercase_names(expected), query.batch
