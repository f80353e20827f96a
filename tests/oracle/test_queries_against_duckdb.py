"""Whole queries against DuckDB, for the types and forms in which DuckDB agrees with Spark.

DuckDB can also judge steps of rows, and steps that are further apart than they are wide.
"""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tests.oracle.judges import oracle_with, ranked_rows, same_rows
from tureen.errors import QueryFailed, Unsupported
from tureen.schema import SCALARS, Kind, Schema, Type
from tureen.testing import strategies
from tureen.testing.judge import RANK

TYPES = tuple(Type(kind) for kind in SCALARS if kind is not Kind.DECIMAL)
Case = tuple[Schema, list[dict[str, Any]], list[strategies.Question]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A schema, a table, and queries over it."""
    schema = draw(strategies.schemas(timed=True, types=TYPES))
    rows = draw(strategies.rows(schema, min_size=3, max_size=25, tame=True))
    return schema, rows, draw(st.lists(strategies.questions(schema, judge="duckdb"), min_size=5, max_size=5))


@example_settings(10, explored=20, shrink=False)
@given(cases())
def test_answers_agree_with_duckdb(case: Case) -> None:
    schema, rows, questions = case
    oracle = oracle_with(schema, rows)
    fields = schema.arrow.append(pa.field(RANK, pa.int64()))
    with duckdb.connect(config={"threads": "1"}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
        connection.register("s", pa.Table.from_pylist(ranked_rows(schema, rows), schema=fields))
        for question in questions:
            try:
                ours = oracle.register(question.text).invoke()
                theirs = connection.sql(question.judge_sql).to_arrow_table().to_pylist()
            except (Unsupported, QueryFailed, duckdb.OutOfRangeException, duckdb.ConversionException):
                continue
            assert same_rows(ours, theirs, question.ordered), f"{question.text}\n{question.judge_sql}\n{ours}\n{theirs}"
