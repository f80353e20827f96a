"""Queries of a known shape are bound without parsing, to the same clause."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tureen.errors import TureenError
from tureen.language import bind_query
from tureen.language.quick import QuickBinder
from tureen.language.shapes import shape_of
from tureen.query import Query
from tureen.schema import Schema

SCHEMA = Schema.parse(
    "i INT, l BIGINT, d DOUBLE, f FLOAT, s STRING, n DECIMAL(9,2), b BOOLEAN, day DATE, ts TIMESTAMP", "ts"
)


def lookup(name: str) -> tuple[str, Schema]:
    return name.lower(), SCHEMA


NUMBERS = [
    "2147483647",
    "-2147483648",
    "2147483648",
    "9223372036854775807",
    "99999999999999999999",
    "0",
    "-0",
    "0.0",
    "-0.0",
    "1.5",
    "-2.25",
    "1e3",
    "5L",
    "2.5D",
    "1.0BD",
    ".5",
    "7.",
    "1.23456789012345678901234567890123456789",
]
CONSTANTS = st.one_of(
    st.integers(-300, 300).map(str),
    st.sampled_from(NUMBERS),
    st.text("ab'%\\ é", max_size=3).map(lambda text: "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"),
    st.sampled_from(["'2026-01-01'", "DATE '2026-01-01'", "TIMESTAMP '2026-01-01 00:00:00'", "NULL", "TRUE"]),
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(lambda value: f"{value:.6f}"),
)
FACTORS = st.sampled_from(
    """
{c} = {}; {c} <> {}; {c} < {}; {c} >= {}; {} > {c}; {c} BETWEEN {} AND {}; {c} IN ({}, {}); {c} LIKE {}; NOT {c} = {}
{c} + {} > {}; ({c} = {} OR {c} > {}); {c} IS NOT NULL; {} < {}
""".strip()
    .replace("\n", "; ")
    .split("; ")
)


@st.composite
def shapes(draw: st.DrawFn) -> tuple[str, int]:
    """A query with places for constants, and how many they are."""
    count = draw(st.integers(1, 3))
    parts = [
        draw(FACTORS).replace("{c}", draw(st.sampled_from(["i", "l", "d", "f", "s", "n", "day"]))) for _ in range(count)
    ]
    text = "SELECT i FROM str WHERE " + " AND ".join(parts)
    return text + draw(st.sampled_from(["", " BEGIN NOW - 5 END NOW", " ORDER BY i LIMIT 3"])), text.count("{}")


def bound(text: str) -> Query | str:
    try:
        return bind_query(text, lookup)
    except TureenError as error:
        return type(error).__name__


def quickly(binder: QuickBinder, text: str) -> Query | str:
    try:
        return binder.bind(text, lookup)[0]
    except TureenError as error:
        return type(error).__name__


@settings(max_examples=300, deadline=None)
@given(shapes(), st.data())
def test_a_known_shape_is_bound_as_in_full(shape: tuple[str, int], data: st.DataObject) -> None:
    text, places = shape
    binder = QuickBinder()
    for _ in range(4):
        filled = text.format(*[data.draw(CONSTANTS) for _ in range(places)])
        assert quickly(binder, filled) == bound(filled), filled


FRAMES = (
    ("SELECT i FROM str WHERE ", ""),
    ("SELECT s, count(*) AS n FROM str WHERE ", " GROUP BY s HAVING count(*) > 2 AND s < 'x'"),
    ("SELECT * FROM str -- WHERE\nWHERE /* AND */", "-- AND\n BEGIN NOW - 5 END NOW"),
    ("SELECT str.i FROM str [RANGE 5 SECONDS] WHERE ", "\nORDER BY i LIMIT 3;"),
    ("SELECT i FROM str WHERE i > 3 OR ", ""),
    ("SELECT i FROM str WHERE NOT ", " OR s = 'y'"),
    ("SELECT i FROM str WHERE CASE WHEN ", " THEN TRUE ELSE FALSE END"),
)
POOL = (
    *("i > {}", "l <= {}", "str.d BETWEEN {} AND {}", "i BETWEEN {} AND {}", "s = '{}'", "d < -{}.5", "`l` <> {}"),
    *("{} < i", "(i = {})", "(i = {} OR l = {})", "b", "s IS NULL", "NOT i BETWEEN {} AND {}", "s IN ('{}', 'b')"),
    *("day = DATE '2026-01-0{}'", "i + {} > 5", "s LIKE '{}%'", "i >\n -- AND\n {}", "TRUE", "i = NULL", "begin > {}"),
)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_known_factors_are_put_together_as_in_full(data: st.DataObject) -> None:
    binder = QuickBinder()
    head, tail = data.draw(st.sampled_from(FRAMES))
    some = data.draw(st.lists(st.sampled_from(POOL), min_size=1, max_size=4))
    for _ in range(6):
        factors = data.draw(st.lists(st.sampled_from(some), min_size=1, max_size=4))
        written = f" {data.draw(st.sampled_from(['AND', 'and', 'AND', 'OR']))} ".join(factors)
        digits = data.draw(st.lists(st.integers(1, 9), min_size=written.count("{}"), max_size=written.count("{}")))
        text = head + written.format(*digits) + tail
        assert quickly(binder, text) == bound(text), text


def test_a_new_mixture_of_known_factors_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    binder = QuickBinder()
    for text in 2 * ["SELECT i FROM str WHERE i > 3 AND s = 'a'", "SELECT i FROM str WHERE d BETWEEN 1 AND 2"]:
        binder.bind(text, lookup)
    monkeypatch.setattr("tureen.language.quick.bind_query", None)
    text = "SELECT i FROM str WHERE s = 'b' AND d BETWEEN 3 AND 4 AND i > 5"
    assert binder.bind(text, lookup)[0] == bind_query(text, lookup)


def test_the_third_of_a_shape_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    binder = QuickBinder()
    text = "SELECT i FROM str WHERE s = '{}' AND d > {} AND i < -{} BEGIN NOW - 5 END NOW"
    for number in range(2):
        binder.bind(text.format("x", 1.5, number), lookup)
    monkeypatch.setattr("tureen.language.quick.bind_query", None)
    found, shape = binder.bind(text.format("it", 2.25, 77), lookup)
    assert found == bind_query(text.format("it", 2.25, 77), lookup)
    assert shape == shape_of(text.format("x", 1.5, 2)).text


def test_a_stream_that_was_made_anew_is_looked_at_anew() -> None:
    binder = QuickBinder()
    other = Schema.parse("s STRING, d BIGINT")
    text = "SELECT s FROM str WHERE d > 2"
    for _ in range(2):
        binder.bind(text, lookup)
    found, _ = binder.bind(text, lambda name: (name, other))
    assert found == bind_query(text, lambda name: (name, other))
    assert found.clause != binder.bind(text, lookup)[0].clause


def test_the_names_of_the_columns_are_as_they_are_written() -> None:
    binder = QuickBinder()
    for text in 3 * ["SELECT i AS Nr FROM str WHERE i = 1", "SELECT i AS nr FROM str WHERE i = 2"]:
        assert binder.bind(text, lookup)[0] == bind_query(text, lookup)


def test_shapes_differ_in_nothing_but_constants() -> None:
    one = shape_of("select I from str where s = 'a' and d > -1 begin now - 5 end now")
    assert one.text == shape_of("SELECT i  FROM str WHERE s='bcd' AND d > 22.5 BEGIN NOW - 5 END NOW").text
    assert one.text == shape_of("SELECT i FROM str WHERE s = :name AND d > :limit BEGIN NOW - 5 END NOW").text
    for other in (
        "SELECT i FROM str WHERE s = 'a' AND d > 1 BEGIN NOW - 6 END NOW",
        "SELECT i FROM str WHERE s = 'a' AND d >= 1 BEGIN NOW - 5 END NOW",
        "SELECT `I` FROM str WHERE s = 'a' AND d > 1 BEGIN NOW - 5 END NOW",
    ):
        assert shape_of(other).text != one.text
