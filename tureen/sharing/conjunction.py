"""Conjunctions of leaves: whether a tuple can satisfy all of them.

A leaf is a predicate without parts and other than `<>`, or one of the two below. Columns that a comparison, an interval
or LIKE reads are not NULL. Ranges of one column are intersected; comparisons between columns are difference
constraints (`order_groups.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from tureen.keys import float_key
from tureen.language.predicates.intervals import Ranges, domain_of, intersection
from tureen.language.predicates.patterns import prefix_interval
from tureen.predicate import (
    EVERYTHING,
    Compare,
    Interval,
    IsNull,
    Like,
    Opaque,
    Within,
)
from tureen.schema import FRACTIONAL, Kind, Schema, Type
from tureen.sharing.order_groups import OrderGroups


@dataclass(frozen=True, slots=True)
class NotTrue:
    """An expression is FALSE or NULL."""

    opaque: Opaque


@dataclass(frozen=True, slots=True)
class Negated:
    """A comparison that holds because another one does not: nothing tells that its sum does not raise."""

    compare: Compare


Leaf = Within | IsNull | Like | Compare | Opaque | NotTrue | Negated


Hull = tuple[int | str | None, int | str | None]
"""The least and the greatest key of a column; None where it is unbounded."""


class Satisfiability(Enum):
    """Whether a tuple exists that satisfies a formula."""

    NEVER = "never"
    POSSIBLE = "possible"
    UNKNOWN = "unknown"


class Conjunction:
    """Leaves that hold together."""

    def __init__(self, schema: Schema, leaves: Iterable[Leaf]) -> None:
        self._schema = schema
        self._ranges: dict[str, Ranges] = {}
        self._nulls: set[str] = set()
        self._compares: dict[tuple[Compare, bool], None] = {}
        self._likes: dict[Like, None] = {}
        self._true: set[Opaque] = set()
        self._not_true: set[Opaque] = set()
        for leaf in leaves:
            self._add(leaf)
        self._apply_patterns()

    @property
    def present(self) -> frozenset[str]:
        """The columns that are not NULL."""
        return frozenset(self._ranges)

    @cached_property
    def satisfiability(self) -> Satisfiability:
        """Whether a tuple can satisfy all leaves; ranges of compared columns are taken from the first to the last."""
        contradictory = (
            self._nulls & self._ranges.keys()
            or self._true & self._not_true
            or any(not self._inhabited(name) for name in self._ranges)
            or any(_opposite(like) in self._likes for like in self._likes)
        )
        if contradictory:
            return Satisfiability.NEVER
        if not self._groups.is_satisfiable():
            return Satisfiability.NEVER
        return Satisfiability.POSSIBLE if self._is_exact() else Satisfiability.UNKNOWN

    def choice(self) -> tuple[Within, ...]:
        """The intervals of a compared column, if there are several: the tuple is in one of them."""
        compared = {name for compare, _ in self._compares for name in (compare.left, compare.right)}
        for name in sorted(compared):
            if len(self._ranges[name]) > 1:
                return tuple(Within(name, (interval,)) for interval in self._ranges[name])
        return ()

    def is_within(self, factor: Within) -> bool:
        """Whether the range of a column lies in the intervals of a factor, without regard to comparisons."""
        ranges = self._ranges.get(factor.column)
        if ranges is None:
            return False
        return intersection(domain_of(self._type(factor.column)), ranges, factor.intervals) == ranges

    def hulls(self) -> dict[str, Hull]:
        """For each column that is not NULL its least and greatest key, None where unbounded.

        Keys are integers; those of FLOAT and DOUBLE are `tureen.keys.float_key`, those of STRING are texts.
        """
        hulls: dict[str, Hull] = {}
        for name, ranges in self._ranges.items():
            low, high = self._ends(name, ranges)
            tightened = self._groups.bounds(name)
            if tightened is not None:
                low, high = _tighter(low, tightened[0], max), _tighter(high, tightened[1], min)
            hulls[name] = (low, high)
        return hulls

    def _add(self, leaf: Leaf) -> None:
        match leaf:
            case Within(column, intervals):
                self._narrow(column, intervals)
            case IsNull(column):
                self._nulls.add(column)
            case Like(column):
                self._narrow(column, (EVERYTHING,))
                self._likes[leaf] = None
            case Compare(left, _, right):
                self._narrow(left, (EVERYTHING,))
                self._narrow(right, (EVERYTHING,))
                self._compares[leaf, True] = None
            case Negated(compare):
                self._narrow(compare.left, (EVERYTHING,))
                self._narrow(compare.right, (EVERYTHING,))
                self._compares[compare, False] = None
            case Opaque():
                self._true.add(leaf)
            case NotTrue(opaque):
                self._not_true.add(opaque)

    def _narrow(self, column: str, intervals: Ranges) -> None:
        domain = domain_of(self._type(column))
        known = self._ranges.get(column, (EVERYTHING,))
        self._ranges[column] = intersection(domain, known, intervals)

    def _apply_patterns(self) -> None:
        """Use LIKE: the text before its first wildcard limits the range, and single values are matched with it."""
        for like in self._likes:
            if not like.negated:
                self._narrow(like.column, (prefix_interval(_literal_prefix(like)),))
        for like in self._likes:
            kept = tuple(interval for interval in self._ranges[like.column] if _can_match(like, interval))
            self._ranges[like.column] = kept

    @cached_property
    def _groups(self) -> OrderGroups:
        return OrderGroups(self._schema, self._compares, self._ranges)

    def _is_exact(self) -> bool:
        open_likes = any(not _is_points(self._ranges[like.column]) for like in self._likes)
        rounded = any(self._type(name).kind is Kind.FLOAT and _bounded(self._ranges[name]) for name in self._ranges)
        zeros = any("\0" in end for ranges in self._ranges.values() for end in _texts(ranges))
        has_opaque = bool(self._true or self._not_true)
        return self._groups.is_exact and not (open_likes or rounded or zeros or has_opaque or self.choice())

    def _inhabited(self, name: str) -> bool:
        ranges = self._ranges[name]
        if self._type(name).kind not in FRACTIONAL:
            return bool(ranges)
        return any(_has_double(interval) for interval in ranges)

    def _ends(self, name: str, ranges: Ranges) -> Hull:
        if not ranges:
            return None, None
        return hull_of(self._type(name), ranges)

    def _type(self, name: str) -> Type:
        column = self._schema.find(name)
        assert column is not None
        return column.type


def hull_of(type_: Type, ranges: Ranges) -> Hull:
    """The least and the greatest key of a set.

    >>> hull_of(Type.parse("INT"), (Interval(3, 4), Interval(7, None)))
    (3, None)
    """
    low, high = ranges[0].low, ranges[-1].high
    return (
        low if low is None or isinstance(low, str) else _integer(type_, low) + ranges[0].low_open,
        high if high is None or isinstance(high, str) else _integer(type_, high) - ranges[-1].high_open,
    )


def _integer(type_: Type, key: float) -> int:
    return float_key(key) if type_.kind in FRACTIONAL else int(key)


def _tighter(known: int | str | None, other: int | None, choose: Callable[[int, int], int]) -> int | str | None:
    if other is None or isinstance(known, str):
        return known
    return other if known is None else choose(known, other)


def _opposite(like: Like) -> Like:
    return Like(like.column, like.pattern, like.escape, not like.negated)


def _literal_prefix(like: Like) -> str:
    r"""The text of a pattern before its first wildcard.

    >>> _literal_prefix(Like("a", "x\\%y%z"))
    'x%y'
    """
    text: list[str] = []
    characters = iter(like.pattern)
    for character in characters:
        if character == like.escape:
            text.append(next(characters, ""))
        elif character in "%_":
            break
        else:
            text.append(character)
    return "".join(text)


def _can_match(like: Like, interval: Interval) -> bool:
    """Whether a LIKE can hold in an interval: decided for a single value, otherwise assumed."""
    if not _is_point(interval):
        return True
    assert isinstance(interval.low, str)
    return (_regex(like).fullmatch(interval.low) is not None) is not like.negated


def _regex(like: Like) -> re.Pattern[str]:
    parts: list[str] = []
    characters = iter(like.pattern)
    for character in characters:
        if character == like.escape:
            parts.append(re.escape(next(characters, "")))
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
    return re.compile("".join(parts), re.DOTALL)


def _is_point(interval: Interval) -> bool:
    return interval.low is not None and interval.low == interval.high


def _is_points(ranges: Ranges) -> bool:
    return all(map(_is_point, ranges))


def _bounded(ranges: Ranges) -> bool:
    return ranges != (EVERYTHING,) and not _is_points(ranges)


def _texts(ranges: Ranges) -> list[str]:
    return [end for interval in ranges for end in (interval.low, interval.high) if isinstance(end, str)]


def _has_double(interval: Interval) -> bool:
    if interval.low is None or interval.high is None:
        return True
    return float_key(float(interval.low)) + interval.low_open <= float_key(float(interval.high)) - interval.high_open
