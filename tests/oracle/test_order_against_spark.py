"""The two primitives of the oracle, order and LIKE, against Spark, without the binder."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.examples import example_settings
from tureen.predicate import Compare, Like
from tureen.schema import Column, Kind, Schema, Type
from tureen.testing import strategies
from tureen.testing.truth import holds
from tureen.testing.values import stored_value

OPS = ("=", "<>", "<", "<=", ">", ">=")
DOMAINS = {Kind.FLOAT: "double", Kind.DOUBLE: "double", Kind.DECIMAL: "decimal", Kind.STRING: "string"}

few_examples = example_settings(2, shrink=False)


def pair_schema(type_: Type) -> Schema:
    return Schema((Column("a", type_), Column("b", type_)))


def answers(spark: SparkSession, schema: Schema, rows: list[dict[str, Any]], select: str) -> list[dict[str, Any]]:
    spark.createDataFrame(pa.Table.from_pylist(rows, schema=schema.arrow)).createOrReplaceTempView("pairs")
    results: list[dict[str, Any]] = spark.sql(f"SELECT {select} FROM pairs").toArrow().to_pylist()
    return results


@pytest.mark.parametrize("type_", strategies.TYPES, ids=lambda type_: type_.sql)
def test_order_agrees_with_spark(spark: SparkSession, type_: Type) -> None:
    schema = pair_schema(type_)

    @few_examples
    @given(strategies.rows(schema, min_size=60, max_size=60))
    def check(rows: list[dict[str, Any]]) -> None:
        theirs = answers(spark, schema, rows, ", ".join(f"a {op} b AS `{op}`" for op in OPS))
        for row, their in zip(rows, theirs, strict=True):
            stored = {name: stored_value(value, type_) for name, value in row.items()}
            for op in OPS:
                ours = holds(Compare("a", op, "b", domain=DOMAINS.get(type_.kind, "int")), stored, schema)
                assert ours is (their[op] is True), f"{row['a']!r} {op} {row['b']!r}"

    check()


@st.composite
def like_pairs(draw: st.DrawFn) -> dict[str, Any]:
    """A text, and a pattern with valid escapes only."""
    pieces = st.sampled_from(["%", "%", "_", "a", "b", "é", "😀", "\n", ".", "(", "\\%", "\\_", "\\\\"])
    text = draw(strategies.values(Type(Kind.STRING)) | st.text("abé😀%_\\\n.(", max_size=5))
    return {"a": text, "b": "".join(draw(st.lists(pieces, max_size=5)))}


@few_examples
@given(st.lists(like_pairs(), min_size=150, max_size=150))
def test_like_agrees_with_spark(spark: SparkSession, rows: list[dict[str, Any]]) -> None:
    schema = pair_schema(Type(Kind.STRING))
    for row, their in zip(rows, answers(spark, schema, rows, "a LIKE b AS l, a NOT LIKE b AS n"), strict=True):
        assert holds(Like("a", row["b"]), row, schema) is (their["l"] is True), row
        assert holds(Like("a", row["b"], negated=True), row, schema) is (their["n"] is True), row
