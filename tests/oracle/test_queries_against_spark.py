"""Whole queries against batch Spark SQL over a table of all rows.

Spark judges groups, aggregates and their types; its function `window` judges steps. With `TUREEN_EXPLORE` set the
queries are new in every run.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.examples import example_settings
from tests.oracle.judges import oracle_with, ranked_rows, same_rows
from tureen.errors import QueryFailed, Unsupported
from tureen.testing import Handle, strategies
from tureen.testing.judge import RANK

SCHEMA = strategies.wide_schema()


@st.composite
def cases(draw: st.DrawFn, tame: bool, count: int) -> tuple[list[dict[str, Any]], list[strategies.Question]]:
    """A table and some queries over it."""
    rows = draw(strategies.rows(SCHEMA, min_size=25, max_size=25, tame=tame))
    questions = strategies.questions(SCHEMA, tame, "spark")
    return rows, draw(st.lists(questions, min_size=count, max_size=count, unique_by=lambda question: question.text))


def differences(
    spark: SparkSession, rows: list[dict[str, Any]], questions: list[strategies.Question], compare_failures: bool
) -> list[str]:
    """Messages for the questions on which Spark and the oracle disagree."""
    fields = SCHEMA.arrow.append(pa.field(RANK, pa.int64()))
    spark.createDataFrame(pa.Table.from_pylist(ranked_rows(SCHEMA, rows), schema=fields)).createOrReplaceTempView("s")
    oracle, messages, supported = oracle_with(SCHEMA, rows), [], 0
    for question in questions:
        try:
            handle = oracle.register(question.text)
        except Unsupported:
            continue
        supported += 1
        ours, theirs = our_answer(handle), spark_answer(spark, question)
        if isinstance(ours, str) or isinstance(theirs, str):
            if compare_failures and not (isinstance(ours, str) and isinstance(theirs, str)):
                messages.append(f"{question.text}\n{question.judge_sql}\nours  {ours}\nSpark {theirs}")
            continue
        if not same_rows(ours, theirs.to_pylist(), question.ordered):
            messages.append(f"{question.text}\n{question.judge_sql}\nours  {ours}\nSpark {theirs.to_pylist()}")
        types = [output.value.type.arrow for output in handle.query.outputs]
        their_types = [_nullable_elements(type_) for type_ in theirs.schema.types]
        if types != their_types:
            messages.append(f"{question.text}: types {types}, Spark's are {their_types}")
    assert supported >= 0.5 * len(questions), "too few questions are supported for a comparison"
    return messages


def _nullable_elements(type_: pa.DataType) -> pa.DataType:
    """A list type with nullable elements, as in Tureen; Spark marks those of collect_set as not NULL."""
    return pa.list_(type_.value_type) if pa.types.is_list(type_) else type_


def our_answer(handle: Handle) -> list[dict[str, Any]] | str:
    """The oracle's rows, or its error."""
    try:
        return handle.invoke()
    except QueryFailed as error:
        return f"raised {error}"


def spark_answer(spark: SparkSession, question: strategies.Question) -> pa.Table | str:
    """Spark's rows, or its error."""
    try:
        return spark.sql(question.judge_sql).toArrow()
    except PySparkException as error:
        return f"raised {str(error).partition(chr(10))[0]}"


@pytest.mark.timeout(120)
@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@example_settings(1, shrink=False)
@given(cases(tame=True, count=24))
def test_answers_agree_with_spark(
    small_spark: SparkSession, case: tuple[list[dict[str, Any]], list[strategies.Question]]
) -> None:
    assert not differences(small_spark, *case, compare_failures=True)


@pytest.mark.timeout(120)
@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@example_settings(1, shrink=False)
@given(cases(tame=False, count=8))
def test_answers_from_extremes_agree_with_spark(
    small_spark: SparkSession, case: tuple[list[dict[str, Any]], list[strategies.Question]]
) -> None:
    """Spark raises when an intermediate sum overflows, and may not evaluate rows beyond LIMIT."""
    assert not differences(small_spark, *case, compare_failures=False)
