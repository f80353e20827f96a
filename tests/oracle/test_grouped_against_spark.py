"""A second opinion on whole queries: batch Spark SQL, over a table that is all there is.

Spark is the judge of groups, aggregates and their types, and its function `window` that of steps. With
`TUREEN_EXPLORE` set the queries are new in every run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.oracle.judging import asking, ranked, same, told
from tureen.errors import QueryFailed, Unsupported
from tureen.testing import Handle, strategies
from tureen.testing.judged import RANK

SCHEMA = strategies.wide_schema()


@pytest.fixture(scope="module")
def small_spark(spark: SparkSession) -> Iterator[SparkSession]:
    """Spark set up for tables of a few rows, where most of a job's time is its planning."""
    wanted = {
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    before = {name: str(spark.conf.get(name)) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value)


@st.composite
def cases(draw: st.DrawFn, tame: bool, count: int) -> tuple[list[dict[str, Any]], list[strategies.Question]]:
    """A table and some queries over it."""
    rows = draw(strategies.rows(SCHEMA, min_size=25, max_size=25, tame=tame))
    asked = strategies.questions(SCHEMA, tame, "spark")
    return rows, draw(st.lists(asked, min_size=count, max_size=count, unique_by=lambda one: one.text))


def differences(
    spark: SparkSession, rows: list[dict[str, Any]], questions: list[strategies.Question], raises_count: bool
) -> list[str]:
    """Say where Spark and the oracle do not agree; what raises is compared only if asked to."""
    fields = SCHEMA.arrow.append(pa.field(RANK, pa.int64()))
    spark.createDataFrame(pa.Table.from_pylist(ranked(SCHEMA, rows), schema=fields)).createOrReplaceTempView("s")
    oracle, found, asked = told(SCHEMA, rows), [], 0
    for question in questions:
        try:
            handle = oracle.register(question.text)
        except Unsupported:
            continue
        asked += 1
        ours, theirs = our_answer(handle), spark_answer(spark, question)
        if isinstance(ours, str) or isinstance(theirs, str):
            if raises_count and not (isinstance(ours, str) and isinstance(theirs, str)):
                found.append(f"{question.text}\n{question.judge_sql}\nours  {ours}\nSpark {theirs}")
            continue
        if not same(ours, theirs.to_pylist(), question.ordered):
            found.append(f"{question.text}\n{question.judge_sql}\nours  {ours}\nSpark {theirs.to_pylist()}")
        types = [output.value.type.arrow for output in handle.query.outputs]
        if types != theirs.schema.types:
            found.append(f"{question.text}: types {types}, Spark's are {theirs.schema.types}")
    assert asked >= 0.5 * len(questions), "too much is refused for this to be a comparison"
    return found


def our_answer(handle: Handle) -> list[dict[str, Any]] | str:
    """The oracle's rows, or what it raised."""
    try:
        return handle.invoke()
    except QueryFailed as error:
        return f"raised {error}"


def spark_answer(spark: SparkSession, question: strategies.Question) -> pa.Table | str:
    """Spark's rows, or what it raised."""
    try:
        return spark.sql(question.judge_sql).toArrow()
    except PySparkException as error:
        return f"raised {str(error).partition(chr(10))[0]}"


@pytest.mark.timeout(120)
@asking(1)
@given(cases(tame=True, count=24))
def test_answers_are_those_of_spark(
    small_spark: SparkSession, case: tuple[list[dict[str, Any]], list[strategies.Question]]
) -> None:
    assert not differences(small_spark, *case, raises_count=True)


@pytest.mark.timeout(120)
@asking(1)
@given(cases(tame=False, count=8))
def test_answers_from_extremes_are_those_of_spark(
    small_spark: SparkSession, case: tuple[list[dict[str, Any]], list[strategies.Question]]
) -> None:
    """Spark raises when a sum leaves its type on the way, and may not look at what LIMIT cuts off."""
    assert not differences(small_spark, *case, raises_count=False)
