"""Random joins: the oracle against batch Spark SQL over tables of all rows, with windows as predicates.

`test_joins.py` compares the same strategies with the engine and with DuckDB. Spark has no ASOF JOIN. With
`TUREEN_EXPLORE` set the queries are new in every run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.examples import example_settings
from tests.oracle.judges import same_rows
from tureen.errors import QueryFailed, SqlError, Unsupported
from tureen.schema import Schema
from tureen.testing import Handle, Oracle
from tureen.testing.join_strategies import (
    START,
    STREAM_COLUMNS,
    STREAMS,
    TABLE,
    TABLE_COLUMNS,
    JoinText,
    joins,
    stream_rows,
    table_rows,
    time_of,
)
from tureen.window import to_micros

QUESTIONS = 24
"""The joins of an example."""

BATCH = 8
"""The joins that one Spark job answers: planning and starting a job takes longer than joining a few rows."""

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class JoinQuestions:
    """The content of all relations, and joins over them."""

    rows: dict[str, Rows]
    """The tuples of each stream in order of arrival, with their number as `_id`; and the table."""
    joins: list[JoinText]


@st.composite
def join_questions(draw: st.DrawFn) -> JoinQuestions:
    """Streams of a few tuples, a table, and joins that Spark has too."""
    rows: dict[str, Rows] = {TABLE: draw(table_rows())}
    for number, name in enumerate(STREAMS):
        # Hypothesis begins with the simplest rows, which have no keys.
        drawn = draw(stream_rows(10).filter(lambda content: len({row["k"] for row in content}) > 2))
        rows[name] = [{**row, "ts": time_of(i, number * 100), "_id": i} for i, row in enumerate(drawn)]
    # Spark compares columns of a query with those around it for equality only.
    texts = joins(lateral=False).filter(lambda text: "ASOF" not in text.text)
    return JoinQuestions(
        rows, draw(st.lists(texts, min_size=QUESTIONS, max_size=QUESTIONS, unique_by=lambda text: text.text))
    )


def oracle_of(rows: dict[str, Rows]) -> Oracle:
    """An oracle with the same content."""
    oracle = Oracle(lambda: to_micros(START))
    for name in STREAMS:
        oracle.create_stream(name, STREAM_COLUMNS, time="ts", clock="stream")
        oracle.push(name, [{column: value for column, value in row.items() if column != "_id"} for row in rows[name]])
    oracle.create_table(TABLE, TABLE_COLUMNS, rows[TABLE])
    return oracle


def create_views(spark: SparkSession, rows: dict[str, Rows]) -> None:
    """The relations as views in Spark."""
    numbered = Schema.parse(STREAM_COLUMNS).arrow.append(pa.field("_id", pa.int64()))
    for name, content in rows.items():
        schema = Schema.parse(TABLE_COLUMNS).arrow if name == TABLE else numbered
        spark.createDataFrame(pa.Table.from_pylist(content, schema)).createOrReplaceTempView(name)


def spark_sql(text: JoinText, handle: Handle, rows: dict[str, Rows]) -> str:
    """The batch query in Spark's dialect, at the NOW of the streams that the query reads."""
    names = {leaf.relation for leaf in handle.query.leaves if leaf.relation in STREAMS}
    now = max((to_micros(row["ts"]) for name in names for row in rows[name]), default=to_micros(START))
    return text.judge_sql.replace("epoch_us(", "unix_micros(").replace("{now}", str(now))


def spark_answers(spark: SparkSession, questions: list[str]) -> list[Rows]:
    """The rows of each question, in any order, by one job."""
    columns = [f"(SELECT collect_list(struct(*)) FROM ({sql})) AS q{number}" for number, sql in enumerate(questions)]
    (row,) = spark.sql(f"SELECT {', '.join(columns)}").toArrow().to_pylist()
    return list(row.values())


@pytest.mark.timeout(120)
@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@example_settings(1)
@given(join_questions())
def test_joins_agree_with_spark(small_spark: SparkSession, questions: JoinQuestions) -> None:
    oracle = oracle_of(questions.rows)
    create_views(small_spark, questions.rows)
    answered: list[tuple[JoinText, Rows, str]] = []
    for text in questions.joins:
        try:
            handle = oracle.register(text.text)
            answered.append((text, handle.invoke(), spark_sql(text, handle, questions.rows)))
        except (Unsupported, SqlError, QueryFailed):
            continue
    assert len(answered) >= 0.5 * QUESTIONS, "too few joins are supported for a comparison"
    for first in range(0, len(answered), BATCH):
        batch = answered[first : first + BATCH]
        answers = spark_answers(small_spark, [sql for _, _, sql in batch])
        for (text, ours, sql), theirs in zip(batch, answers, strict=True):
            assert same_rows(ours, theirs, ordered=False), (text.text, sql, ours, theirs)
    assert sum(bool(ours) for _, ours, _ in answered) >= 0.1 * QUESTIONS, "too few joins have rows"
