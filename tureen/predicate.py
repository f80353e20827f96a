"""Predicates in normal form: what a query's WHERE clause becomes once it is bound.

NOT is pushed down to the leaves, so that only TRUE matters from there on: a predicate holds for a
tuple or it does not, and unknown (NULL) has become "does not". A **factor** is a leaf or an OR of
such; a **clause** is a conjunction of factors (PSoup's standing query clause, §3.1, less the select
list).

Constants are kept in the *key domain* of their column, where comparing is plain (see also `tureen.keys`):
BOOLEAN 0/1, INT and BIGINT as they are, DATE as days and TIMESTAMP as microseconds since 1970,
DECIMAL as the unscaled integer at the column's scale, FLOAT and DOUBLE as a float (NaN is the largest value
and equals itself, -0.0 equals 0.0), STRING as text compared by its UTF-8 bytes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

Key = int | float | str
"""A constant in the key domain of its column."""


@dataclass(frozen=True, slots=True)
class Interval:
    """The keys between two ends; None is open without end. NaN counts as the largest float."""

    low: Key | None = None
    high: Key | None = None
    low_open: bool = False
    high_open: bool = False


EVERYTHING = Interval()


@dataclass(frozen=True, slots=True)
class Within:
    """The column is not NULL and lies in one of some disjoint, ascending intervals.

    One interval is =, <, <=, >, >=, BETWEEN or LIKE 'prefix%'; several are <>, IN, or an OR over the same
    column; the interval without ends is IS NOT NULL; no interval never holds.
    """

    column: str
    intervals: tuple[Interval, ...]


@dataclass(frozen=True, slots=True)
class IsNull:
    """The column is NULL."""

    column: str


@dataclass(frozen=True, slots=True)
class Like:
    """A STRING column matches (or, negated, does not match) a LIKE pattern; NULL does neither."""

    column: str
    pattern: str
    escape: str = "\\"
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Compare:
    """Two columns of one stream: `left op right + offset`, with op one of = <> < <= > >=.

    `domain` says how both sides are compared: "int" (INT, BIGINT, DATE, TIMESTAMP, BOOLEAN; exact), "double"
    (either side cast to DOUBLE; NaN largest), "decimal" (exact) or "string". `limit` is the number of bits
    (32 or 64) that `right + offset` must fit in; beyond it the query fails, as in Spark's ANSI mode.
    """

    left: str
    op: str
    right: str
    offset: int | float = 0
    domain: str = "int"
    limit: int = 64


@dataclass(frozen=True, slots=True)
class Opaque:
    """Any other boolean expression: DuckDB SQL over the named columns, with all coercions written out."""

    sql: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every part holds; with no parts it always holds."""

    parts: tuple[Predicate, ...] = ()


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Some part holds; with no parts it never holds."""

    parts: tuple[Predicate, ...] = ()


Predicate = Within | IsNull | Like | Compare | Opaque | AllOf | AnyOf
Factor = Predicate
"""One conjunct of a clause: anything but an AllOf at the top."""

Clause = tuple[Factor, ...]
"""A conjunction of factors in canonical order; the empty one holds for every tuple."""

NEVER = AnyOf()

_TAGS: dict[str, type] = {kind.__name__: kind for kind in (Within, IsNull, Like, Compare, Opaque, AllOf, AnyOf)}


def columns_of(predicate: Predicate) -> frozenset[str]:
    """The columns that a predicate looks at."""
    match predicate:
        case AllOf(parts) | AnyOf(parts):
            return frozenset().union(*(columns_of(part) for part in parts))
        case Compare(left, _, right):
            return frozenset({left, right})
        case Opaque(_, columns):
            return frozenset(columns)
        case Within(column) | IsNull(column) | Like(column):
            return frozenset({column})


def dump_clause(clause: Clause) -> str:
    """A clause as canonical text: equal clauses give equal texts."""
    return json.dumps([_dump(factor) for factor in clause], separators=(",", ":"))


def load_clause(text: str) -> Clause:
    """The clause that `dump_clause` wrote.

    >>> load_clause(dump_clause((IsNull("a"),)))
    (IsNull(column='a'),)
    """
    return tuple(_load(item) for item in json.loads(text))


def _dump(predicate: Predicate) -> list[Any]:
    tag = type(predicate).__name__
    match predicate:
        case Within(column, intervals):
            ends = [[one.low, one.high, one.low_open, one.high_open] for one in intervals]
            return [tag, column, ends]
        case AllOf(parts) | AnyOf(parts):
            return [tag, [_dump(part) for part in parts]]
        case IsNull(column):
            return [tag, column]
        case Like(column, pattern, escape, negated):
            return [tag, column, pattern, escape, negated]
        case Compare(left, op, right, offset, domain, limit):
            return [tag, left, op, right, offset, domain, limit]
        case Opaque(sql, columns):
            return [tag, sql, list(columns)]


def _load(item: list[Any]) -> Predicate:
    tag, *rest = item
    kind = _TAGS[tag]
    predicate: Predicate
    if kind is Within:
        predicate = Within(rest[0], tuple(Interval(*ends) for ends in rest[1]))
    elif kind is AllOf or kind is AnyOf:
        predicate = kind(tuple(_load(part) for part in rest[0]))
    elif kind is Opaque:
        predicate = Opaque(rest[0], tuple(rest[1]))
    else:
        predicate = kind(*rest)
    return predicate
