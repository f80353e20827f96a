"""Sets of keys as disjoint, ascending intervals: union, intersection, complement.

A bound of an interval is a *cut* between keys: just before a key, or just after it. Cuts of integers are canonical,
since "after 5" is "before 6"; so equal sets are equal tuples.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from tureen.language.types import integer_range
from tureen.predicate import Interval, Key
from tureen.schema import FRACTIONAL, INTEGRAL, Kind, Type

Cut = tuple[int, bool, Key, bool]
"""(-1, 0 or 1 for below all keys, at a key, above all keys; whether the key is NaN; the key; whether after it)."""

BELOW: Cut = (-1, False, 0, False)
ABOVE: Cut = (1, False, 0, False)
Range = tuple[Cut, Cut]
Ranges = tuple[Interval, ...]


@dataclass(frozen=True, slots=True)
class Domain:
    """All keys that a column can hold, from the least to the greatest."""

    least: Key | None
    greatest: Key | None
    discrete: bool

    def before(self, key: Key) -> Cut:
        """The cut just before a key."""
        if self.least is not None and _at(key) <= _at(self.least):
            return BELOW
        if self.discrete and self.greatest is not None and _at(key) > _at(self.greatest):
            return ABOVE
        return _at(key)

    def after(self, key: Key) -> Cut:
        """The cut just after a key."""
        if self.discrete:
            return self.before(int(key) + 1)
        if self.greatest is not None and _at(key) >= _at(self.greatest):
            return ABOVE
        return (*_at(key)[:3], True)


def domain_of(type_: Type) -> Domain:
    """The keys of a type."""
    if type_.kind is Kind.BOOLEAN:
        return Domain(0, 1, True)
    if type_.kind in INTEGRAL:
        return Domain(*integer_range(type_.kind), True)
    if type_.kind is Kind.DATE:
        return Domain(*integer_range(Kind.INT), True)
    if type_.kind is Kind.TIMESTAMP:
        return Domain(*integer_range(Kind.BIGINT), True)
    if type_.kind is Kind.DECIMAL:
        greatest: int = 10**type_.precision - 1
        return Domain(-greatest, greatest, True)
    if type_.kind in FRACTIONAL:
        return Domain(-math.inf, math.nan, False)
    return Domain("", None, False)


def union(domain: Domain, parts: Iterable[Ranges]) -> Ranges:
    """The keys that are in at least one of the parts."""
    return _pack(domain, [cuts for part in parts for cuts in _unpack(domain, part)])


def intersection(domain: Domain, left: Ranges, right: Ranges) -> Ranges:
    """The keys that are in both."""
    lefts, rights = _unpack(domain, left), _unpack(domain, right)
    common: list[Range] = []
    i = j = 0
    while i < len(lefts) and j < len(rights):
        low = max(lefts[i][0], rights[j][0])
        high = min(lefts[i][1], rights[j][1])
        if low < high:
            common.append((low, high))
        if lefts[i][1] < rights[j][1]:
            i += 1
        else:
            j += 1
    return _pack(domain, common)


def complement(domain: Domain, ranges: Ranges) -> Ranges:
    """The keys that are not in the set."""
    gaps: list[Range] = []
    low = BELOW
    for start, stop in _unpack(domain, ranges):
        gaps.append((low, start))
        low = stop
    return _pack(domain, [*gaps, (low, ABOVE)])


def normal(domain: Domain, ranges: Ranges) -> Ranges:
    """The canonical form of a set: disjoint, ascending, non-empty intervals, unbounded where the domain ends."""
    return ranges if _is_normal(domain, ranges) else union(domain, [ranges])


def _is_normal(domain: Domain, ranges: Ranges) -> bool:
    """A cheap sufficient test: closed intervals that touch neither each other nor the ends of the domain."""
    below, gap = domain.least, int(domain.discrete)
    for interval in ranges:
        low, high = interval.low, interval.high
        if below is None or low is None or high is None or interval.low_open or interval.high_open:
            return False
        # All keys of a type can be compared; a comparison with NaN is false.
        if not (low > below + gap if gap else low > below) or not high >= low:  # type: ignore[operator]
            return False
        below = high
    return below is not None and (domain.greatest is None or isinstance(below, float) or below < domain.greatest)  # type: ignore[operator]


def _at(key: Key) -> Cut:
    # As `sort_key`, but without the call: this is on the path of every registration.
    return (0, True, 0.0, False) if key != key else (0, False, key, False)


def _unpack(domain: Domain, ranges: Ranges) -> list[Range]:
    cuts: list[Range] = []
    for interval in ranges:
        low, high = BELOW, ABOVE
        if interval.low is not None:
            low = domain.after(interval.low) if interval.low_open else domain.before(interval.low)
        if interval.high is not None:
            high = domain.before(interval.high) if interval.high_open else domain.after(interval.high)
        cuts.append((low, high))
    return cuts


def _pack(domain: Domain, cuts: list[Range]) -> Ranges:
    merged: list[Range] = []
    for low, high in sorted(cuts):
        if low >= high:
            continue
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(_interval(domain, low, high) for low, high in merged)


def _interval(domain: Domain, low: Cut, high: Cut) -> Interval:
    start = None if low == BELOW else _key(low)
    stop = None if high == ABOVE else _key(high)
    start_open, stop_open = low[3], high != ABOVE and not high[3]
    if domain.discrete and stop is not None:
        stop, stop_open = int(stop) - 1, False
    # A single key at the edge of the domain stays a single key.
    if start is not None and stop is None and not start_open and _same(start, domain.greatest):
        stop = start
    if stop is not None and start is None and not stop_open and _same(stop, domain.least):
        start = stop
    return Interval(start, stop, start_open, stop_open)


def _same(key: Key, edge: Key | None) -> bool:
    return edge is not None and _at(key) == _at(edge)


def _key(cut: Cut) -> Key:
    return math.nan if cut[1] else cut[2]
