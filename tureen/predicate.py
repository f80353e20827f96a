"""Predicates in normal form: what a query's WHERE clause becomes once it is bound.

NOT is pushed down to the leaves, so that two truth values suffice: a tuple satisfies a predicate or does not, and
unknown (NULL) counts as not satisfied. A **factor** is a leaf or an OR of factors; a **clause** is a conjunction of
factors (PSoup's standing query clause, §3.1, without the select list).

Constants are in the *key domain* of their column, in which keys are compared directly (see also `tureen.keys`):
BOOLEAN is 0 or 1, INT and BIGINT are unchanged, DATE is days and TIMESTAMP microseconds since 1970, DECIMAL is the
unscaled integer at the column's scale, FLOAT and DOUBLE are floats (NaN is the largest value and equals itself, -0.0
equals 0.0), STRING is text that is compared by its UTF-8 bytes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Key = int | float | str
"""A constant in the key domain of its column."""


@dataclass(frozen=True, slots=True)
class Interval:
    """The keys between two ends; None is unbounded. NaN is the largest float."""

    low: Key | None = None
    high: Key | None = None
    low_open: bool = False
    high_open: bool = False


EVERYTHING = Interval()


@dataclass(frozen=True, slots=True)
class Within:
    """The column is not NULL and lies in one of several disjoint, ascending intervals.

    One interval is =, <, <=, >, >=, BETWEEN or LIKE 'prefix%'; several are <>, IN, or an OR over the same
    column; the unbounded interval is IS NOT NULL; without intervals the predicate is never satisfied.
    """

    column: str
    intervals: tuple[Interval, ...]


@dataclass(frozen=True, slots=True)
class IsNull:
    """The column is NULL."""

    column: str


@dataclass(frozen=True, slots=True)
class Like:
    """A STRING column matches (or, negated, does not match) a LIKE pattern; NULL satisfies neither."""

    column: str
    pattern: str
    escape: str = "\\"
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Compare:
    """Two columns of one stream: `left op right + offset`, with op one of = <> < <= > >=.

    `domain` is how both sides are compared: "int" (INT, BIGINT, DATE, TIMESTAMP, BOOLEAN; exact), "double" (both
    sides cast to DOUBLE; NaN is the largest), "decimal" (exact) or "string". If `right + offset` does not fit in
    `limit` bits (32 or 64), the query fails, as in Spark's ANSI mode.
    """

    left: str
    op: str
    right: str
    offset: int | float = 0
    domain: str = "int"
    limit: int = 64


@dataclass(frozen=True, slots=True)
class Opaque:
    """Any other boolean expression: DuckDB SQL over the named columns, with explicit casts."""

    sql: str
    columns: tuple[str, ...]
    functions: tuple[str, ...] = ()
    """The definitions of the user functions that it calls, so that any process can evaluate it."""
    text: str = field(default="", compare=False, repr=False)
    """How it was written, for people, with columns in double quotes; empty in a clause that was read from the pot."""


@dataclass(frozen=True, slots=True)
class AllOf:
    """All parts are satisfied; always true without parts."""

    parts: tuple[Predicate, ...] = ()


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one part is satisfied; never true without parts."""

    parts: tuple[Predicate, ...] = ()


Predicate = Within | IsNull | Like | Compare | Opaque | AllOf | AnyOf
Factor = Predicate
"""One conjunct of a clause: anything but an AllOf at the top."""

Clause = tuple[Factor, ...]
"""A conjunction of factors in canonical order; every tuple satisfies the empty one."""

NEVER = AnyOf()

FLIPPED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
"""The operator of a comparison with its sides exchanged."""

BATCH_INTERVALS = 1024
"""Intervals that one call of the JSON encoder writes: no other thread runs during a call."""

_TAGS: dict[str, type] = {kind.__name__: kind for kind in (Within, IsNull, Like, Compare, Opaque, AllOf, AnyOf)}


def columns_of(predicate: Predicate) -> frozenset[str]:
    """The columns that a predicate reads."""
    match predicate:
        case AllOf(parts) | AnyOf(parts):
            return frozenset().union(*(columns_of(part) for part in parts))
        case Compare(left, _, right):
            return frozenset({left, right})
        case Opaque(_, columns, _):
            return frozenset(columns)
        case Within(column) | IsNull(column) | Like(column):
            return frozenset({column})


def calls_functions(predicate: Predicate) -> bool:
    """Whether a predicate calls a user function."""
    if isinstance(predicate, AllOf | AnyOf):
        return any(map(calls_functions, predicate.parts))
    return isinstance(predicate, Opaque) and bool(predicate.functions)


def may_raise(predicate: Predicate) -> bool:
    """Whether a predicate may fail for a tuple."""
    match predicate:
        case AllOf(parts) | AnyOf(parts):
            return any(map(may_raise, parts))
        case Compare(offset=offset, domain=domain):
            return bool(offset) and domain == "int"
        case Opaque():
            return True
    return False


def dump_clause(clause: Clause) -> str:
    """A clause as canonical text: equal clauses have equal texts."""
    return f"[{','.join(map(_dump, clause))}]"


def load_clause(text: str) -> Clause:
    """The clause that `dump_clause` wrote.

    >>> load_clause(dump_clause((IsNull("a"),)))
    (IsNull(column='a'),)
    """
    return tuple(_load(item) for item in json.loads(text))


def _dump(predicate: Predicate) -> str:
    tag = type(predicate).__name__
    match predicate:
        case Within(column, intervals):
            pieces = (intervals[start : start + BATCH_INTERVALS] for start in range(0, len(intervals), BATCH_INTERVALS))
            return f'["{tag}",{_json(column)},[{",".join(map(_dump_intervals, pieces))}]]'
        case AllOf(parts) | AnyOf(parts):
            return f'["{tag}",[{",".join(map(_dump, parts))}]]'
        case IsNull(column):
            return _json([tag, column])
        case Like(column, pattern, escape, negated):
            return _json([tag, column, pattern, escape, negated])
        case Compare(left, op, right, offset, domain, limit):
            return _json([tag, left, op, right, offset, domain, limit])
        case Opaque(sql, columns, functions):
            return _json([tag, sql, list(columns), *([list(functions)] if functions else [])])


def _dump_intervals(intervals: Sequence[Interval]) -> str:
    return _json([[piece.low, piece.high, piece.low_open, piece.high_open] for piece in intervals])[1:-1]


_json = json.JSONEncoder(separators=(",", ":")).encode


def _load(item: list[Any]) -> Predicate:
    tag, *rest = item
    kind = _TAGS[tag]
    predicate: Predicate
    if kind is Within:
        predicate = Within(rest[0], tuple(Interval(*ends) for ends in rest[1]))
    elif kind is AllOf or kind is AnyOf:
        predicate = kind(tuple(_load(part) for part in rest[0]))
    elif kind is Opaque:
        predicate = Opaque(*rest[:1], *map(tuple, rest[1:]))
    else:
        predicate = kind(*rest)
    return predicate
