"""Predicates against batch Spark SQL in ANSI mode, over the same rows.

A single SELECT evaluates many conditions, because a Spark job costs more than they do. With `TUREEN_EXPLORE` set the
conditions are new in every run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.examples import example_settings
from tureen.errors import QueryFailed, SqlError, Unsupported
from tureen.language import bind_query
from tureen.predicate import AllOf
from tureen.query import NamedRelation
from tureen.testing import strategies
from tureen.testing.truth import holds
from tureen.testing.values import stored_value

SCHEMA = strategies.wide_schema()
FAILED = "raised"
REFUSED = "refused"
SQL_ERROR = "misread"
Truth = list[bool] | str
"""Whether a condition holds, row by row; or that it failed, is not supported, or is rejected as invalid SQL."""

few_examples = example_settings(2, explored=4, shrink=False)


def condition_lists(depth: int) -> st.SearchStrategy[list[str]]:
    condition = strategies.conditions(SCHEMA, portable=False, depth=depth)
    return st.lists(condition, min_size=50, max_size=50, unique=True)


def row_lists() -> st.SearchStrategy[list[dict[str, Any]]]:
    return strategies.rows(SCHEMA, min_size=30, max_size=30)


def lookup(name: str) -> NamedRelation:
    return NamedRelation(name, SCHEMA)


def our_truth(condition: str, rows: Iterable[dict[str, Any]]) -> Truth:
    try:
        query = bind_query(f"SELECT * FROM s WHERE {condition}", lookup)
    except Unsupported:
        return REFUSED
    except SqlError:
        return SQL_ERROR
    try:
        return [holds(AllOf(query.stream.clause), row, SCHEMA) for row in rows]
    except QueryFailed:
        return FAILED


def spark_truths(spark: SparkSession, conditions: list[str]) -> dict[str, Truth]:
    """Evaluate all conditions in one query; if it fails, each half separately."""
    if not conditions:
        return {}
    columns = ", ".join(f"({condition}) AS c{number}" for number, condition in enumerate(conditions))
    try:
        table = spark.sql(f"SELECT {columns} FROM s").toArrow()
    except PySparkException:
        if len(conditions) == 1:
            return {conditions[0]: FAILED}
        half = len(conditions) // 2
        return spark_truths(spark, conditions[:half]) | spark_truths(spark, conditions[half:])
    return {
        condition: [value is True for value in table.column(number).to_pylist()]
        for number, condition in enumerate(conditions)
    }


def differences(
    spark: SparkSession, rows: list[dict[str, Any]], conditions: list[str], compare_failures: bool
) -> list[str]:
    """Messages for the conditions on which Spark and Tureen disagree."""
    spark.createDataFrame(pa.Table.from_pylist(rows, schema=SCHEMA.arrow)).createOrReplaceTempView("s")
    stored_rows = [
        {column.name: stored_value(row[column.name], column.type) for column in SCHEMA.columns} for row in rows
    ]
    ours = {condition: our_truth(condition, stored_rows) for condition in conditions}
    supported = [condition for condition in conditions if ours[condition] != REFUSED]
    assert len(supported) >= 0.5 * len(conditions), "too few conditions are supported for a comparison"
    theirs = spark_truths(spark, [condition for condition in supported if ours[condition] != FAILED])
    for condition in supported:
        if ours[condition] == FAILED:
            theirs |= spark_truths(spark, [condition])
    messages = []
    for condition in supported:
        our, their = ours[condition], theirs[condition]
        if our == their or (FAILED in (our, their) and not compare_failures):
            continue
        if isinstance(our, str) or isinstance(their, str):
            messages.append(f"{condition}: Spark {_short(their)}, ours {_short(our)}")
            continue
        wrong = next(
            row for row, our_value, their_value in zip(stored_rows, our, their, strict=True) if our_value != their_value
        )
        relevant = {name: value for name, value in wrong.items() if name.lower() in condition.lower()}
        messages.append(f"{condition}: on {relevant} Spark {not _ours(condition, wrong)}, ours otherwise")
    return messages


def _short(truth: Truth) -> str:
    return truth if isinstance(truth, str) else "answers"


def _ours(condition: str, row: dict[str, Any]) -> bool:
    return our_truth(condition, [row]) == [True]


@pytest.mark.timeout(120)
@few_examples
@given(rows=row_lists(), conditions=condition_lists(depth=0))
def test_factors_agree_with_spark(spark: SparkSession, rows: list[dict[str, Any]], conditions: list[str]) -> None:
    assert not differences(spark, rows, conditions, compare_failures=True)


@pytest.mark.timeout(120)
@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@few_examples
@given(rows=row_lists(), conditions=condition_lists(depth=2))
def test_nested_conditions_agree_with_spark(
    spark: SparkSession, rows: list[dict[str, Any]], conditions: list[str]
) -> None:
    """The order of evaluation within AND and OR is undefined, so failures are not compared."""
    assert not differences(spark, rows, conditions, compare_failures=False)


@pytest.mark.timeout(120)
@few_examples
@given(queries=st.lists(strategies.queries(SCHEMA, "s", windowed=False, depth=0), min_size=15, max_size=15))
def test_column_names_agree_with_spark(spark: SparkSession, queries: list[strategies.QueryText]) -> None:
    spark.createDataFrame(pa.Table.from_pylist([], schema=SCHEMA.arrow)).createOrReplaceTempView("s")
    for query in queries:
        bound = bind_query(f"SELECT {query.select} FROM {query.source}", lookup)
        theirs = spark.sql(f"SELECT {query.select} FROM {query.source}").columns
        assert [output.name for output in bound.outputs] == theirs, query.select
