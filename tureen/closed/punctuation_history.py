"""The punctuations of a stream with their numbers: which groups of tuples are closed after any of them.

A group is a set of tuples that may still arrive: those with certain values of some columns, and a time between two
instants. It is closed if no such tuple would be accepted.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.closed.closed_ranges import CodeIntervals, TextIntervals
from tureen.closed.closed_set import BatchCodes, ClosedSet, matching, type_of
from tureen.closed.key_codes import has_order
from tureen.closed.key_set import NO_MARK
from tureen.closed.pattern import CodeRange, Pattern
from tureen.schema import Schema

LEAST_TIME, GREATEST_TIME = -(1 << 63), (1 << 63) - 1
"""The ends of an interval of times that is not bounded."""

Mask = npt.NDArray[np.bool_]
Times = npt.NDArray[np.int64]
Ranges = Mapping[str, CodeIntervals | TextIntervals]

_BEFORE_ALL = -1
"""The number of punctuations that are known only by what they close together."""

_KEPT = 4
"""The number of moments whose ranges are kept merged."""


class TupleGroups(NamedTuple):
    """Groups of tuples: for each the values of some columns, and the times that its tuples may have."""

    size: int
    """The number of groups."""
    values: Mapping[str, pa.Array]
    time: str | None
    """The time column; None if it is not declared, so that punctuations cannot be about it."""
    first: Times
    last: Times

    def take(self, rows: npt.NDArray[np.int64]) -> TupleGroups:
        """Some of the groups."""
        picked = pa.array(rows)
        values = {name: column.take(picked) for name, column in self.values.items()}
        return TupleGroups(len(rows), values, self.time, self.first[rows], self.last[rows])


class PunctuationHistory:
    """All punctuations of a stream up to `end`, in the order of its log."""

    def __init__(self, schema: Schema) -> None:
        """Without punctuations."""
        self._schema = schema
        self._lock = threading.RLock()
        self._values = ClosedSet(schema)
        """Values and patterns of several columns; the marks are the numbers of punctuations."""
        self._range_numbers: list[int] = []
        self._ranges: list[tuple[str, CodeRange]] = []
        self._merged: dict[int, Ranges] = {}
        self.end = 0
        """The number of the next punctuation."""
        self.known_from = 0
        """The number from which on punctuations are known one by one: nothing is known of moments before it."""

    def start_from(self, closed: ClosedSet, number: int) -> None:
        """Begin with what the punctuations before a number close together."""
        for names, keys in closed.keys.items():
            level = keys.as_level()
            self._values.key_set(names).add_level(level._replace(marks=np.zeros_like(level.marks)))
        for name, intervals in closed.ranges.items():
            for interval, _ in intervals.intervals():
                self._add_range(_BEFORE_ALL, name, interval)
        self._values.others += [(pattern, 0) for pattern, _ in closed.others]
        self.end = self.known_from = number

    def add(self, patterns: Sequence[Pattern]) -> None:
        """Add the punctuations from `end` on."""
        values: list[Pattern] = []
        numbers: list[int] = []
        with self._lock:
            for number, pattern in enumerate(patterns, self.end):
                name, part = pattern.columns[0]
                if len(pattern.columns) == 1 and isinstance(part, CodeRange):
                    # Merged ranges would lose their numbers, and values in them.
                    self._add_range(number, name, part)
                else:
                    values.append(pattern)
                    numbers.append(number)
            self._values.add_all(values, numbers)
            self.end += len(patterns)

    def _add_range(self, number: int, name: str, interval: CodeRange) -> None:
        self._range_numbers.append(number)
        self._ranges.append((name, interval))

    def closed(self, groups: TupleGroups, number: int, late_before: int | None = None) -> Mask:
        """Which groups are closed by the punctuations before a number, and by a lateness that rejects earlier times."""
        with self._lock:
            ranges = dict(self._ranges_before(number))
            if late_before is not None and groups.time is not None:
                ranges[groups.time] = _with_range(ranges.get(groups.time), CodeRange(high=late_before - 1))
            return self._closed(groups, number, ranges)

    def _closed(self, groups: TupleGroups, number: int, ranges: Ranges) -> Mask:
        mask: Mask = np.zeros(groups.size, np.bool_)
        if groups.time is not None and groups.time in ranges:
            mask |= _covered(ranges[groups.time], groups)
        if not groups.values or not groups.size:
            return mask
        batch = pa.RecordBatch.from_arrays(list(groups.values.values()), list(groups.values))
        codes = BatchCodes(self._schema, batch)
        for names, keys in self._values.keys.items():
            if groups.values.keys() >= set(names):
                mask |= keys.find(codes.of(names)) < number
        for name in groups.values.keys() & ranges.keys():
            mask |= ranges[name].find(codes.of((name,)), codes.values(name)) != NO_MARK
        self._add_others(mask, groups, codes, number, ranges)
        return mask

    def _add_others(self, mask: Mask, groups: TupleGroups, codes: BatchCodes, number: int, ranges: Ranges) -> None:
        """Add the groups that patterns of several columns close, alone or together."""
        times: dict[int, list[CodeRange]] = {}
        for pattern, mark in self._values.others:
            fixed = tuple((name, part) for name, part in pattern.columns if name in groups.values)
            rest = [(name, part) for name, part in pattern.columns if name not in groups.values]
            if mark >= number or not fixed or len(rest) > 1:
                continue
            matched = matching(self._schema, Pattern(fixed), codes)
            if not rest:
                mask |= matched
            elif rest[0][0] == groups.time and isinstance(rest[0][1], CodeRange):
                for row in np.flatnonzero(matched & ~mask).tolist():
                    times.setdefault(row, []).append(rest[0][1])
        for row, intervals in times.items():
            union = ranges.get(groups.time or "")
            for interval in intervals:
                union = _with_range(union, interval)
            assert union is not None
            mask[row] |= _covered(union, groups.take(np.array([row])))[0]

    def least_open_time(self, number: int) -> int:
        """The earliest time that a later tuple may have, by the punctuations before a number."""
        with self._lock:
            intervals = self._ranges_before(number).get(self._schema.time or "")
        if not isinstance(intervals, CodeIntervals) or not len(intervals):
            return LEAST_TIME
        first, _ = intervals.intervals()[0]
        if first.low is not None:
            return LEAST_TIME
        return GREATEST_TIME if first.high is None else int(first.high) + 1

    def _ranges_before(self, number: int) -> Ranges:
        """The merged ranges of the punctuations before a number."""
        count = bisect_left(self._range_numbers, number)
        known = self._merged.get(count)
        if known is not None:
            return known
        start = max((each for each in self._merged if each < count), default=0)
        merged: dict[str, CodeIntervals | TextIntervals] = dict(deepcopy(self._merged[start])) if start else {}
        for name, interval in self._ranges[start:count]:
            if name not in merged:
                column_type = type_of(self._schema, name)
                merged[name] = CodeIntervals() if has_order(column_type) else TextIntervals(column_type)
            merged[name].add(interval, 0)
        self._merged[count] = merged
        if len(self._merged) > _KEPT:
            del self._merged[next(iter(self._merged))]
        return merged


def _with_range(intervals: CodeIntervals | TextIntervals | None, interval: CodeRange) -> CodeIntervals | TextIntervals:
    """A copy of merged ranges with another one."""
    merged = CodeIntervals() if intervals is None else deepcopy(intervals)
    merged.add(interval, 0)
    return merged


def _covered(intervals: CodeIntervals | TextIntervals, groups: TupleGroups) -> Mask:
    """Which groups have all their times in one of the intervals, which are merged."""
    nothing: Mask = np.zeros(groups.size, np.bool_)
    if not isinstance(intervals, CodeIntervals) or not len(intervals):
        return nothing
    return intervals.covers(groups.first, groups.last)
