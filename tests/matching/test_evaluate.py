"""Predicates that are not ranges: LIKE as in Spark, and expressions that DuckDB evaluates."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tureen.errors import QueryFailed
from tureen.matching import holds
from tureen.predicate import AllOf, AnyOf, Interval, Like, Opaque, Within
from tureen.stems.index import Block


def texts(*values: str | None) -> Block:
    return Block(pa.RecordBatch.from_arrays([pa.array(values, pa.string())], names=["s"]))


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("a%", "abc", True),
        ("a%", "ba", False),
        ("%", "", True),
        ("", "", True),
        ("", "a", False),
        ("_", "é", True),
        ("_", "\U0001d11e", True),
        ("__", "é", False),
        ("a_b", "a\nb", True),
        ("a%b", "a\n\nb", True),
        ("a", "a\n", False),
        ("1\\%", "1%", True),
        ("1\\%", "12", False),
        ("\\\\", "\\", True),
        ("a.c", "abc", False),
        ("(a|b)", "a", False),
        ("A%", "abc", False),
        ("%\0%", "a\0b", True),
    ],
)
def test_like(pattern: str, text: str, matches: bool) -> None:
    assert holds(Like("s", pattern), texts(text, None)).tolist() == [matches, False]
    assert holds(Like("s", pattern, negated=True), texts(text, None)).tolist() == [not matches, False]


def test_like_with_another_or_no_escape() -> None:
    block = texts("100%", "100\\x", "100x")
    assert holds(Like("s", "100!%", "!"), block).tolist() == [True, False, False]
    assert holds(Like("s", "100\\_", ""), block).tolist() == [False, True, False]
    with pytest.raises(QueryFailed, match="escape"):
        holds(Like("s", "a\\b"), block)


def numbers(*values: int | None) -> Block:
    return Block(pa.RecordBatch.from_arrays([pa.array(values, pa.int32())], names=["a"]))


def test_null_is_not_true() -> None:
    assert holds(Opaque("a > 1", ("a",)), numbers(1, None, 2)).tolist() == [False, False, True]
    assert holds(Opaque("1 < 2", ()), numbers(1, None)).tolist() == [True, True]


def test_guarded_expressions_do_not_raise() -> None:
    divides, zero = Opaque("10 // a > 2", ("a",)), Within("a", (Interval(0, 0),))
    block = numbers(0, 3, 9, None)
    assert holds(AnyOf((divides, zero)), block).tolist() == [True, True, False, False]
    assert holds(AllOf((divides, Within("a", (Interval(low=1),)))), block).tolist() == [False, True, False, False]
    with pytest.raises(QueryFailed, match="Division by zero"):
        holds(divides, block)


@pytest.mark.parametrize(
    "sql",
    [
        "a > (SELECT count(*) FROM read_csv('/etc/passwd'))",
        "a + 1 = 3 AND a < 2147483648 + 0 * a",
        "CAST('x' || a AS INT) > 1",
    ],
)
def test_duckdb_errors_are_failed_queries(sql: str) -> None:
    with pytest.raises(QueryFailed) as failure:
        holds(Opaque(sql, ("a",)), numbers(2**31 - 1, 2))
    assert "\n" not in str(failure.value.detail)
