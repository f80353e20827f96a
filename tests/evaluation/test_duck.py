"""Evaluating statements again over other rows."""

from __future__ import annotations

import gc
import weakref

import pyarrow as pa
import pytest

from tureen.errors import QueryFailed
from tureen.evaluation import duck

DOUBLED = "SELECT a + a AS b FROM rows ORDER BY b DESC"


def values(sql: str, **tables: pa.Table) -> list[object]:
    return list(duck.run(sql, tables, "an expression").column(0).to_pylist())


def test_a_statement_reads_the_rows_of_each_call() -> None:
    assert values(DOUBLED, rows=pa.table({"a": [1, 2]})) == [4, 2]
    assert values(DOUBLED, rows=pa.table({"a": [5]})) == [10]
    assert values(DOUBLED, rows=pa.table({"a": pa.array([], pa.int64())})) == []


def test_a_statement_has_the_types_of_each_call() -> None:
    assert values(DOUBLED, rows=pa.table({"a": [1]})) == [2]
    assert values(DOUBLED, rows=pa.table({"a": [0.25]})) == [0.5]
    assert values("SELECT a FROM rows", rows=pa.table({"b": ["other"], "a": ["x"]})) == ["x"]
    assert values("SELECT a FROM rows", rows=pa.table({"a": ["y"]})) == ["y"]


def test_one_name_is_read_alone_and_beside_others() -> None:
    both = "SELECT r.a FROM rows r, others o WHERE r.a = o.a"
    for number in range(3):
        table, other = pa.table({"a": [number, 7]}), pa.table({"a": [7]})
        assert values(DOUBLED, rows=table) == [14, 2 * number]
        assert values(both, rows=table, others=other) == [7]
        assert values("SELECT a FROM others", others=other) == [7]


def test_an_error_concerns_one_call() -> None:
    sql = "SELECT CAST(a AS TINYINT) AS b FROM rows"
    for _ in range(2):
        with pytest.raises(QueryFailed, match="an expression raised on some tuple"):
            values(sql, rows=pa.table({"a": [1_000]}))
        assert values(sql, rows=pa.table({"a": [100]})) == [100]


def test_rows_are_not_kept() -> None:
    table = pa.table({"a": [1, 2, 3]})
    kept = weakref.ref(table)
    assert values(DOUBLED, rows=table) == [6, 4, 2]
    del table
    gc.collect()
    assert kept() is None


def test_few_statements_are_kept() -> None:
    for number in range(2 * duck.BOUND):
        assert values(f"SELECT a + {number} AS b FROM rows", rows=pa.table({"a": [1]})) == [1 + number]
    assert len(duck._evaluator()._bound) == duck.BOUND
