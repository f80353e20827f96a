"""Random streams for Hypothesis: schemas of all types, and rows with difficult values.

Values come from small pools, so that ties, duplicates and matches are frequent, mixed with extremes. The
SQL over them is in `tureen.testing.text_strategies`, and is exported here too.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from tureen.schema import INTEGRAL, Column, Kind, Schema, Type
from tureen.testing.question_strategies import Question, questions
from tureen.testing.text_strategies import QueryText, conditions, queries, windows

__all__ = [
    "BASE",
    "TYPES",
    "QueryText",
    "Question",
    "batches",
    "conditions",
    "queries",
    "questions",
    "rows",
    "schemas",
    "values",
    "wide_schema",
    "windows",
]

BASE = datetime(2026, 1, 1, tzinfo=UTC)
"""The streams' times are within two hours before or after this instant."""

TYPES = (
    Type(Kind.BOOLEAN),
    Type(Kind.TINYINT),
    Type(Kind.SMALLINT),
    Type(Kind.INT),
    Type(Kind.BIGINT),
    Type(Kind.FLOAT),
    Type(Kind.DOUBLE),
    Type(Kind.DECIMAL, 10, 2),
    Type(Kind.DECIMAL, 38, 10),
    Type(Kind.STRING),
    Type(Kind.DATE),
    Type(Kind.TIMESTAMP),
)
"""All types of columns, DECIMAL in a small and in the largest precision."""

_NAMES = ("a", "B", "c3", "Price", "qty", "sym", "Total_Sum", "x", "yY", "flag", "day", "value")

_SMALL_INTS = st.integers(-3, 5)
_FLOATS = st.sampled_from(
    [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        2.5,
        3.0,
        0.1,
        100.25,
        math.nan,
        math.inf,
        -math.inf,
        1e30,
        -1e-30,
        16777216.0,
    ]
)
_POOLS: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.BOOLEAN: st.booleans(),
    Kind.TINYINT: _SMALL_INTS | st.sampled_from([-128, 127, 100]),
    Kind.SMALLINT: _SMALL_INTS | st.sampled_from([-(2**15), 2**15 - 1, 128, 1000]),
    Kind.INT: _SMALL_INTS | st.sampled_from([-(2**31), 2**31 - 1, 2**31 - 2, 16777217, 1000]),
    Kind.BIGINT: _SMALL_INTS | st.sampled_from([-(2**63), 2**63 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**31, 10**18]),
    Kind.FLOAT: _FLOATS | st.floats(width=32),
    Kind.DOUBLE: _FLOATS | st.sampled_from([5e-324, 1.7976931348623157e308, 2.0**53]) | st.floats(),
    Kind.STRING: st.sampled_from(
        [
            "",
            " ",
            "a",
            "A",
            "ab",
            "abc",
            "b",
            "B%",
            "a_b",
            "100%",
            "it's",
            "a\\b",
            "a\nb",
            "é",
            "Z",
            "ß",
            "😀",
            "a😀",
        ]
    )
    | st.text("ab%_é😀", max_size=4),
    Kind.DATE: st.dates(date(2025, 12, 30), date(2026, 1, 3))
    | st.sampled_from([date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31), date(1970, 1, 1)]),
    Kind.TIMESTAMP: st.integers(-3, 3).map(lambda seconds: BASE + timedelta(seconds=seconds))
    | st.sampled_from(
        [
            datetime(1, 1, 1, tzinfo=UTC),
            datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
            datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
            BASE + timedelta(microseconds=1),
            BASE - timedelta(microseconds=1),
            BASE - timedelta(days=1),
        ]
    ),
}


_FEW_FLOATS = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 2.5, 3.0, 100.25, 0.1, 0.3, math.nan, math.inf])
_TAME: dict[Kind, st.SearchStrategy[Any]] = {
    **_POOLS,
    **dict.fromkeys(INTEGRAL, _SMALL_INTS),
    Kind.FLOAT: _FEW_FLOATS,
    Kind.DOUBLE: _FEW_FLOATS,
    Kind.DATE: st.dates(date(2025, 12, 30), date(2026, 1, 3)),
    Kind.TIMESTAMP: st.integers(-3, 3).map(lambda seconds: BASE + timedelta(seconds=seconds)),
}


def values(type_: Type, nulls: bool = True, tame: bool = False) -> st.SearchStrategy[Any]:
    """Values of a type, as Python objects; about one in six is NULL.

    With `tame`, no sum of the values overflows, and no sum of floats loses digits.
    """
    pools = _TAME if tame else _POOLS
    pool = _decimals(type_, tame) if type_.kind is Kind.DECIMAL else pools[type_.kind]
    if not nulls:
        return pool
    return st.integers(0, 5).flatmap(lambda roll: st.none() if roll == 0 else pool)


def _decimals(type_: Type, tame: bool) -> st.SearchStrategy[Decimal]:
    """Decimals at the type's scale: small values and, unless `tame`, the extremes."""
    largest = 10**type_.precision - 1
    unit = 10**type_.scale
    ends = [] if tame else [largest, -largest, largest - 1]
    unscaled = (
        st.integers(-3, 5).map(lambda whole: whole * unit)
        | st.integers(-300, 300)
        | st.sampled_from([unit // 2, 5 * unit // 2, *ends])
    )
    return unscaled.map(lambda digits: Decimal(f"{digits}e-{type_.scale}"))


def times() -> st.SearchStrategy[datetime]:
    """Times of tuples: often equal, unordered, sometimes very late."""
    return st.one_of(
        st.integers(-5, 5).map(lambda seconds: BASE + timedelta(seconds=seconds)),
        st.integers(-100, 100).map(lambda minutes: BASE + timedelta(minutes=minutes)),
        st.integers(-1_000_000, 1_000_000).map(lambda micros: BASE + timedelta(microseconds=micros)),
    )


@st.composite
def schemas(draw: st.DrawFn, timed: bool | None = None, types: tuple[Type, ...] = TYPES) -> Schema:
    """A schema of one to eight columns, with a time column if `timed`; at random if `timed` is None."""
    names = draw(st.lists(st.sampled_from(_NAMES), min_size=1, max_size=8, unique=True))
    columns = [Column(name, draw(st.sampled_from(types))) for name in names]
    if not (draw(st.booleans()) if timed is None else timed):
        return Schema(tuple(columns)).checked()
    time_index = draw(st.integers(0, len(columns)))
    columns.insert(time_index, Column("Ts", Type(Kind.TIMESTAMP)))
    return Schema(tuple(columns), "Ts").checked()


def wide_schema(each: int = 2) -> Schema:
    """The schema with `each` columns of every type and a time column."""
    columns = [Column(f"{_short_name(type_)}{number}", type_) for type_ in TYPES for number in range(1, each + 1)]
    return Schema((*columns, Column("Ts", Type(Kind.TIMESTAMP))), "Ts").checked()


def _short_name(type_: Type) -> str:
    return f"{type_.kind.lower()}{type_.precision or ''}_"


@st.composite
def rows(
    draw: st.DrawFn, schema: Schema, min_size: int = 0, max_size: int = 12, tame: bool = False
) -> list[dict[str, Any]]:
    """Rows for one push; the time column, if there is one, is never NULL."""
    pools = {
        column.name: times() if column.name == schema.time else values(column.type, tame=tame)
        for column in schema.columns
    }
    drawn: list[dict[str, Any]] = draw(st.lists(st.fixed_dictionaries(pools), min_size=min_size, max_size=max_size))
    repeat_first: bool = draw(st.booleans())
    return [*drawn, dict(drawn[0])] if drawn and repeat_first else drawn


def batches(schema: Schema, max_batches: int = 4, max_rows: int = 8) -> st.SearchStrategy[list[list[dict[str, Any]]]]:
    """Consecutive pushes, some of them empty."""
    return st.lists(rows(schema, max_size=max_rows), max_size=max_batches)
