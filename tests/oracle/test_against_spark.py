"""A second opinion on every predicate: batch Spark SQL, in ANSI mode, over the same rows.

Spark is the judge. Many conditions are asked in one select, since a Spark job costs more than they do. With
`TUREEN_EXPLORE` set the conditions are new in every run.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tureen.errors import QueryFailed, SqlError, Unsupported
from tureen.language import bind_query
from tureen.predicate import AllOf
from tureen.schema import Schema
from tureen.testing import strategies
from tureen.testing.truth import holds
from tureen.testing.values import stored_value

SCHEMA = strategies.wide_schema()
RAISED = "raised"
REFUSED = "refused"
MISREAD = "misread"
Truth = list[bool] | str
"""Whether a condition holds, row by row; or that it raised, is not taken here, or was taken for a mistake."""

few = settings(
    max_examples=4,
    phases=(Phase.generate,),
    deadline=None,
    database=None,
    derandomize="TUREEN_EXPLORE" not in os.environ,
    suppress_health_check=list(HealthCheck),
)


def asked(depth: int) -> st.SearchStrategy[list[str]]:
    condition = strategies.conditions(SCHEMA, portable=False, depth=depth)
    return st.lists(condition, min_size=50, max_size=50, unique=True)


def some_rows() -> st.SearchStrategy[list[dict[str, Any]]]:
    return strategies.rows(SCHEMA, min_size=30, max_size=30)


def lookup(name: str) -> tuple[str, Schema]:
    return name, SCHEMA


def our_truth(condition: str, rows: Iterable[dict[str, Any]]) -> Truth:
    try:
        query = bind_query(f"SELECT * FROM s WHERE {condition}", lookup)
    except Unsupported:
        return REFUSED
    except SqlError:
        return MISREAD
    try:
        return [holds(AllOf(query.stream.clause), row, SCHEMA) for row in rows]
    except QueryFailed:
        return RAISED


def spark_truths(spark: SparkSession, conditions: list[str]) -> dict[str, Truth]:
    """Ask all at once, and by halves where some condition raises or is not understood."""
    if not conditions:
        return {}
    columns = ", ".join(f"({condition}) AS c{number}" for number, condition in enumerate(conditions))
    try:
        table = spark.sql(f"SELECT {columns} FROM s").toArrow()
    except PySparkException:
        if len(conditions) == 1:
            return {conditions[0]: RAISED}
        half = len(conditions) // 2
        return spark_truths(spark, conditions[:half]) | spark_truths(spark, conditions[half:])
    return {
        condition: [value is True for value in table.column(number).to_pylist()]
        for number, condition in enumerate(conditions)
    }


def differences(
    spark: SparkSession, rows: list[dict[str, Any]], conditions: list[str], raises_count: bool
) -> list[str]:
    """Say where Spark and the bound conditions do not agree; what raises is compared only if asked to."""
    spark.createDataFrame(pa.Table.from_pylist(rows, schema=SCHEMA.arrow)).createOrReplaceTempView("s")
    kept = [{column.name: stored_value(row[column.name], column.type) for column in SCHEMA.columns} for row in rows]
    ours = {condition: our_truth(condition, kept) for condition in conditions}
    taken_here = [condition for condition in conditions if ours[condition] != REFUSED]
    assert len(taken_here) >= 0.5 * len(conditions), "too much is refused for this to be a comparison"
    theirs = spark_truths(spark, [condition for condition in taken_here if ours[condition] != RAISED])
    for condition in taken_here:
        if ours[condition] == RAISED:
            theirs |= spark_truths(spark, [condition])
    found = []
    for condition in taken_here:
        our, their = ours[condition], theirs[condition]
        if our == their or (RAISED in (our, their) and not raises_count):
            continue
        if isinstance(our, str) or isinstance(their, str):
            found.append(f"{condition}: Spark {_short(their)}, ours {_short(our)}")
            continue
        wrong = next(row for row, one, other in zip(kept, our, their, strict=True) if one != other)
        shown = {name: value for name, value in wrong.items() if name.lower() in condition.lower()}
        found.append(f"{condition}: on {shown} Spark {not _ours(condition, wrong)}, ours otherwise")
    return found


def _short(truth: Truth) -> str:
    return truth if isinstance(truth, str) else "answers"


def _ours(condition: str, row: dict[str, Any]) -> bool:
    return our_truth(condition, [row]) == [True]


@pytest.mark.timeout(120)
@few
@given(rows=some_rows(), conditions=asked(depth=0))
def test_every_factor_is_true_where_spark_says_so(
    spark: SparkSession, rows: list[dict[str, Any]], conditions: list[str]
) -> None:
    assert not differences(spark, rows, conditions, raises_count=True)


@pytest.mark.timeout(120)
@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@few
@given(rows=some_rows(), conditions=asked(depth=2))
def test_every_nest_of_factors_is_true_where_spark_says_so(
    spark: SparkSession, rows: list[dict[str, Any]], conditions: list[str]
) -> None:
    """Which part of an AND or OR is evaluated first is nobody's promise, so what raises may differ here."""
    assert not differences(spark, rows, conditions, raises_count=False)


@pytest.mark.timeout(120)
@few
@given(queries=st.lists(strategies.queries(SCHEMA, "s", windowed=False, depth=0), min_size=15, max_size=15))
def test_answers_name_their_columns_as_spark_does(spark: SparkSession, queries: list[strategies.QueryText]) -> None:
    spark.createDataFrame(pa.Table.from_pylist([], schema=SCHEMA.arrow)).createOrReplaceTempView("s")
    for query in queries:
        bound = bind_query(f"SELECT {query.select} FROM {query.source}", lookup)
        theirs = spark.sql(f"SELECT {query.select} FROM {query.source}").columns
        assert [output.name for output in bound.outputs] == theirs, query.select
