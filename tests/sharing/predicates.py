"""Random clauses over a few columns, and all rows of small domains, to check implication by enumeration."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from itertools import product
from typing import Any

from hypothesis import strategies as st

from tureen.language.predicates.normal_form import clause_of
from tureen.predicate import (
    AllOf,
    AnyOf,
    Clause,
    Compare,
    Interval,
    IsNull,
    Like,
    Opaque,
    Predicate,
    Within,
    columns_of,
)
from tureen.schema import Schema

SCHEMA = Schema.parse(
    "a INT, b INT, c BIGINT, x DOUBLE, y DOUBLE, f FLOAT, s STRING, t STRING, d DECIMAL(5,1), e DECIMAL(6,2)"
)

_INTS: list[Any] = [-2, -1, 0, 1, 2, 3]
_DOUBLES: list[Any] = [-math.inf, -1.5, 0.1, 0.2, 0.30000000000000004, 0.3, 1.5, math.inf, math.nan]
_TEXTS: list[Any] = ["", "a", "ab", "abc", "b", "ba"]
DOMAINS: dict[str, list[Any]] = {
    "a": _INTS,
    "b": _INTS,
    "c": _INTS,
    "x": _DOUBLES,
    "y": _DOUBLES,
    "f": [-math.inf, -1.5, 0.5, 1.5, math.nan],
    "s": _TEXTS,
    "t": _TEXTS,
    "d": [Decimal(n) / 10 for n in (-1, 0, 1, 2, 3, 10)],
    "e": [Decimal(n) / 100 for n in (-10, 0, 5, 10, 15, 20, 100)],
}
"""The values of each column that are enumerated, besides NULL."""

_SCALES = {"d": 10, "e": 100}


def key_of(column: str, value: Any) -> Any:
    """The key of a value."""
    return int(value * _SCALES[column]) if column in _SCALES else value


def points(column: str) -> Within:
    """The column has one of the enumerated values."""
    keys = [key_of(column, value) for value in DOMAINS[column]]
    return Within(column, tuple(Interval(key, key) for key in keys))


def rows(columns: frozenset[str]) -> Iterator[dict[str, Any]]:
    """All rows of the enumerated values of these columns, and NULL; other columns are NULL."""
    names = sorted(columns)
    rest: dict[str, Any] = dict.fromkeys(SCHEMA.names)
    for values in product(*([*DOMAINS[name], None] for name in names)):
        yield {**rest, **dict(zip(names, values, strict=True))}


@st.composite
def intervals(draw: st.DrawFn, column: str) -> Interval:
    """An interval between two values, each open or not or missing."""
    keys = [key_of(column, value) for value in DOMAINS[column]]
    low, high = draw(st.sampled_from([*keys, None])), draw(st.sampled_from([*keys, None]))
    return Interval(low, high, low is not None and draw(st.booleans()), high is not None and draw(st.booleans()))


@st.composite
def ranges(draw: st.DrawFn, names: tuple[str, ...]) -> Within:
    """One or two intervals of a column."""
    column = draw(st.sampled_from(names))
    return Within(column, tuple(draw(st.lists(intervals(column), min_size=1, max_size=2))))


_PAIRS = [
    ("a", "b", "int"),
    ("a", "c", "int"),
    ("b", "c", "int"),
    ("a", "a", "int"),
    ("x", "y", "double"),
    ("f", "x", "double"),
    ("a", "x", "double"),
    ("s", "t", "string"),
    ("d", "e", "decimal"),
    ("a", "d", "decimal"),
]


@st.composite
def comparisons(draw: st.DrawFn, pairs: tuple[tuple[str, str, str], ...] = tuple(_PAIRS)) -> Compare:
    """A comparison of two columns, with an offset where the language has one."""
    left, right, domain = draw(st.sampled_from(pairs))
    offset: int | float = 0
    if domain == "int":
        offset = draw(st.integers(-3, 3))
    elif (left, right) == ("x", "y"):
        offset = draw(st.sampled_from([0, 0.1, 0.2, -0.1, 1.5]))
    op = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
    return Compare(left, op, right, offset, domain)


_LEAVES = st.one_of(
    ranges(tuple(DOMAINS)),
    st.sampled_from(tuple(DOMAINS)).map(IsNull),
    comparisons(),
    st.builds(Like, st.sampled_from(["s", "t"]), st.sampled_from(["a%b", "_b%", "ab_", "%a"]), negated=st.booleans()),
    st.sampled_from([Opaque("a + b > 2", ("a", "b")), Opaque("a = 1", ("a",))]),
)


def predicates(depth: int = 2) -> st.SearchStrategy[Predicate]:
    """Predicates of all kinds."""
    if depth == 0:
        return _LEAVES
    parts = st.lists(predicates(depth - 1), min_size=1, max_size=2).map(tuple)
    return _LEAVES | st.builds(AllOf, parts) | st.builds(AnyOf, parts)


def clauses(factors: st.SearchStrategy[Any], most: int) -> st.SearchStrategy[Clause]:
    """Conjunctions in normal form."""
    return st.lists(factors, max_size=most).map(lambda parts: clause_of(SCHEMA, AllOf(tuple(parts))))


def columns_in(*parts: Clause) -> frozenset[str]:
    """The columns that clauses read."""
    return frozenset().union(*(columns_of(AllOf(part)) for part in parts))
