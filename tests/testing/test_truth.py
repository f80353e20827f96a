"""Predicates, row by row, against expected results by hand."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest

from tureen.errors import InvalidRows, QueryFailed
from tureen.predicate import (
    EVERYTHING,
    NEVER,
    AllOf,
    AnyOf,
    Compare,
    Interval,
    IsNull,
    Like,
    Opaque,
    Predicate,
    Within,
)
from tureen.schema import Schema, Type
from tureen.testing.truth import holds, like
from tureen.testing.values import key_of, order, stored_value

SCHEMA = Schema.parse(
    "b BOOLEAN, i INT, j INT, n BIGINT, f FLOAT, d DOUBLE, e DOUBLE, m DECIMAL(10,2), w DECIMAL(38,10), "
    "s STRING, r STRING, day DATE, at TIMESTAMP"
)


def truth(predicate: Predicate, **values: Any) -> bool:
    row = {column.name: stored_value(values.get(column.name), column.type) for column in SCHEMA.columns}
    return holds(predicate, row, SCHEMA)


@pytest.mark.parametrize(
    ("value", "type_", "key"),
    [
        (True, "BOOLEAN", 1),
        (-(2**63), "BIGINT", -(2**63)),
        (date(1969, 12, 31), "DATE", -1),
        (datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=UTC), "TIMESTAMP", 1_000_005),
        (datetime(1969, 12, 31, 23, 59, 59, 999_999), "TIMESTAMP", -1),  # noqa: DTZ001
        (Decimal("-1.5"), "DECIMAL(10,2)", -150),
        (Decimal("9999999999999999999999999999.9999999999"), "DECIMAL(38,10)", 10**38 - 1),
        (0.1, "FLOAT", 0.10000000149011612),
        (1e39, "FLOAT", math.inf),
        (3, "DOUBLE", 3.0),
        ("é", "STRING", "é"),
    ],
)
def test_values_have_keys(value: Any, type_: str, key: Any) -> None:
    parsed = Type.parse(type_)
    assert key_of(stored_value(value, parsed), parsed) == key


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (2**31, "INT"),
        (True, "INT"),
        (-(2**63) - 1, "BIGINT"),
        ("1", "INT"),
        (Decimal("0.001"), "DECIMAL(10,2)"),
        (Decimal(100_000_000), "DECIMAL(10,2)"),
        (datetime(2026, 1, 1, tzinfo=UTC), "DATE"),
        (date(2026, 1, 1), "TIMESTAMP"),
        (1, "STRING"),
    ],
)
def test_values_that_do_not_fit_are_rejected(value: Any, type_: str) -> None:
    with pytest.raises(InvalidRows):
        stored_value(value, Type.parse(type_))


def test_order_of_floats() -> None:
    ascending = [-math.inf, -1.0, 0.0, 5e-324, 1.0, math.inf, math.nan]
    for low, left in enumerate(ascending):
        for high, right in enumerate(ascending):
            assert order(left, right) == (low > high) - (low < high)
    assert order(-0.0, 0.0) == 0


def test_strings_are_ordered_by_bytes() -> None:
    ascending = ["", "A", "Z", "a", "aa", "é", "\uffff", "😀"]
    assert all(order(low, high) < 0 for low, high in pairwise(ascending))


@pytest.mark.parametrize(
    ("interval", "inside"),
    [
        (Interval(1, 3), [1, 2, 3]),
        (Interval(1, 3, low_open=True), [2, 3]),
        (Interval(1, 3, high_open=True), [1, 2]),
        (Interval(None, 2), [0, 1, 2]),
        (Interval(2, None), [2, 3, 4]),
        (EVERYTHING, [0, 1, 2, 3, 4]),
    ],
)
def test_intervals_include_their_bounds_unless_open(interval: Interval, inside: list[int]) -> None:
    assert [i for i in range(5) if truth(Within("i", (interval,)), i=i)] == inside


def test_several_intervals_are_alternatives() -> None:
    intervals = Within("i", (Interval(0, 0), Interval(3, None)))
    assert [i for i in range(5) if truth(intervals, i=i)] == [0, 3, 4]
    assert not truth(Within("i", ()), i=1)


def test_nan_is_the_largest_value() -> None:
    assert truth(Within("d", (Interval(math.inf, None, low_open=True),)), d=math.nan)
    assert truth(Within("d", (Interval(math.nan, math.nan),)), d=math.nan)
    assert not truth(Within("d", (Interval(None, math.inf),)), d=math.nan)
    assert truth(Within("d", (Interval(0.0, 0.0),)), d=-0.0)


def test_null_satisfies_only_is_null() -> None:
    leaves: list[Predicate] = [
        Within("i", (EVERYTHING,)),
        Like("s", "%"),
        Like("s", "x", negated=True),
        Compare("i", "<>", "j"),
        Compare("i", "=", "i"),
        Opaque("i + j > 0", ("i", "j")),
        Opaque("NOT (i > 0)", ("i",)),
    ]
    assert not any(truth(leaf) for leaf in leaves)
    assert truth(IsNull("i"))
    assert not truth(IsNull("i"), i=0)


def test_all_and_any() -> None:
    i_is_null, s_is_null = IsNull("i"), IsNull("s")
    assert truth(AllOf(()))
    assert not truth(NEVER)
    assert truth(AllOf((i_is_null, s_is_null)))
    assert not truth(AllOf((i_is_null, s_is_null)), i=1)
    assert truth(AnyOf((i_is_null, s_is_null)), i=1)
    assert not truth(AnyOf((i_is_null, s_is_null)), i=1, s="")


@pytest.mark.parametrize(
    ("text", "pattern", "matches"),
    [
        ("", "", True),
        ("", "%", True),
        ("", "_", False),
        ("abc", "abc", True),
        ("abc", "ABC", False),
        ("abc", "a%", True),
        ("abc", "%c", True),
        ("abc", "%b%", True),
        ("abc", "a_c", True),
        ("abc", "a_", False),
        ("abc", "%%%", True),
        ("abc", "____", False),
        ("aXbXc", "a%b%c", True),
        ("😀", "_", True),
        ("a\nb", "a%b", True),
        ("a%b", r"a\%b", True),
        ("axb", r"a\%b", False),
        ("a_b", r"a\_b", True),
        ("a\\b", r"a\\b", True),
    ],
)
def test_like(text: str, pattern: str, matches: bool) -> None:
    assert like(text, pattern) is matches
    assert truth(Like("s", pattern, negated=True), s=text) is not matches


def test_like_with_another_escape() -> None:
    assert like("50%", "50!%", "!")
    assert not like("500", "50!%", "!")
    assert like("a\\b", "a\\b", "!")
    with pytest.raises(QueryFailed):
        like("a", "a!", "!")


@pytest.mark.parametrize(
    ("op", "below", "equal", "above"),
    [
        ("=", False, True, False),
        ("<>", True, False, True),
        ("<", True, False, False),
        ("<=", True, True, False),
        (">", False, False, True),
        (">=", False, True, True),
    ],
)
def test_comparisons_of_columns(op: str, below: bool, equal: bool, above: bool) -> None:
    predicate = Compare("i", op, "j", offset=1, limit=32)
    assert [truth(predicate, i=i, j=2) for i in (2, 3, 4)] == [below, equal, above]


def test_comparison_domains() -> None:
    assert truth(Compare("d", ">", "e", domain="double"), d=math.nan, e=math.inf)
    assert truth(Compare("d", "=", "e", domain="double"), d=-0.0, e=0.0)
    assert truth(Compare("n", "=", "d", domain="double"), n=2**53 + 1, d=2.0**53)
    assert not truth(Compare("f", "=", "d", domain="double"), f=0.1, d=0.1)
    assert truth(Compare("m", "=", "w", domain="decimal"), m=Decimal("1.50"), w=Decimal("1.5000000000"))
    assert truth(Compare("m", "<", "w", domain="decimal"), m=Decimal("1.50"), w=Decimal("1.5000000001"))
    assert truth(Compare("n", "<", "w", domain="decimal"), n=2**63 - 1, w=Decimal(2**63 - 1) + Decimal("0.5"))
    assert truth(Compare("s", "<", "r", domain="string"), s="Z", r="é")


def test_integer_overflow_fails_the_query() -> None:
    predicate = Compare("n", "<", "i", offset=1, limit=32)
    assert truth(predicate, n=2**31 - 2, i=2**31 - 2)
    with pytest.raises(QueryFailed):
        truth(predicate, n=0, i=2**31 - 1)
    assert not truth(predicate, i=2**31 - 1)
    assert truth(Compare("n", "<", "i", offset=1), n=0, i=2**31 - 1)


def test_opaque_predicates_of_every_type() -> None:
    assert truth(Opaque("upper(s) = 'AB'", ("s",)), s="ab")
    assert truth(Opaque("m + 1 = 2.5", ("m",)), m=Decimal("1.5"))
    assert truth(Opaque("day + 1 = DATE '2026-01-02'", ("day",)), day=date(2026, 1, 1))
    assert truth(Opaque('hour("at") = 23', ("at",)), at=datetime(2026, 1, 1, 23, tzinfo=UTC))
    assert truth(Opaque("f = 0.1::FLOAT AND b", ("f", "b")), f=0.1, b=True)
    assert truth(Opaque("1 = 1", ()))
    with pytest.raises(QueryFailed):
        truth(Opaque("i + j > 0", ("i", "j")), i=2**31 - 1, j=1)


def test_bound_names_are_case_sensitive() -> None:
    with pytest.raises(KeyError):
        truth(Within("I", (EVERYTHING,)), i=1)
