"""What the punctuations of a stream had closed when those up to a number were read.

A closed set knows what is closed now. Readers that follow a stream need to know what was closed at their position: the
number of the first punctuation that closes a value is kept, and ranges are not merged with later ones.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from itertools import product
from math import prod

import numpy as np
import pyarrow as pa

from tureen.closed.closed_ranges import CodeIntervals, TextIntervals, difference, intersection
from tureen.closed.closed_set import MAX_COMBINATIONS, BatchCodes, ClosedSet, matching, type_of
from tureen.closed.key_codes import code_arrays, combined_codes, has_order
from tureen.closed.key_set import NO_MARK, KeySet
from tureen.closed.pattern import CodeRange, Pattern, ValueList
from tureen.closed.pattern_block import PatternBlock
from tureen.schema import Schema

KEPT_MERGES = 4
"""For how many numbers the merged ranges before them are kept."""

_MOST = (1 << 62) - 1


class ClosingHistory:
    """The punctuations of a stream with their numbers, and what earlier ones close."""

    def __init__(self, schema: Schema, first: int = 0, earlier: ClosedSet | None = None) -> None:
        """Know those from a number on; `earlier` has what all of them close up to now, if there are earlier ones."""
        self.schema = schema
        self.first = self.end = first
        self._earlier = earlier
        self._keys: dict[tuple[str, ...], KeySet] = {}
        self._ranges: dict[str, RangeHistory] = {}
        self._others: list[tuple[Pattern, int]] = []
        self._lock = threading.Lock()

    def add(self, block: PatternBlock) -> None:
        """Add the next punctuations."""
        assert block.first == self.end, "punctuations are added in their order"
        with self._lock:
            for name, (codes, numbers) in block.values.items():
                keys = code_arrays(type_of(self.schema, name), codes)
                self._key_set((name,)).add(keys, np.array(numbers, np.uint32))
            for number, pattern in block.others:
                self._add(pattern, number)
            self.end = block.end

    def _add(self, pattern: Pattern, number: int) -> None:
        names = tuple(name for name, _ in pattern.columns)
        parts = [part for _, part in pattern.columns]
        lists = [part.codes for part in parts if isinstance(part, ValueList)]
        if len(parts) == 1 and isinstance(parts[0], CodeRange):
            self._ranges.setdefault(names[0], RangeHistory(self.schema, names[0])).add(parts[0], number)
        elif len(lists) == len(names) and prod(map(len, lists)) <= MAX_COMBINATIONS:
            columns = zip(*product(*lists), strict=True)
            types = (type_of(self.schema, name) for name in names)
            by_column = [code_arrays(kind, values) for kind, values in zip(types, columns, strict=True)]
            codes = by_column[0] if len(by_column) == 1 else combined_codes(by_column)
            self._key_set(names).add(codes, np.full(len(codes.first), number, np.uint32))
        else:
            self._others.append((pattern, number))

    def _key_set(self, names: tuple[str, ...]) -> KeySet:
        if names not in self._keys:
            self._keys[names] = KeySet(hashed=len(names) > 1 or not has_order(type_of(self.schema, names[0])))
        return self._keys[names]

    def closes(self, columns: Mapping[str, pa.Array], number: int) -> np.ndarray:
        """Which tuples are closed by punctuations before a number, whatever their other columns are."""
        arrays = list(columns.values())
        batch = pa.RecordBatch.from_arrays(arrays, names=list(columns))
        codes = BatchCodes(self.schema, batch)
        with self._lock:
            closed = self._closed_before(codes, number)
            if self._earlier is not None and number >= self.first:
                rest = ~closed & self._earlier.closes(codes)
                if rest.any():
                    # What a known one closes too may have been closed by that one only.
                    closed |= rest & ~self._closed_before(codes, _MOST)
        return closed

    def closes_value(self, columns: Mapping[str, pa.Array], number: int) -> np.ndarray:
        """Which tuples are closed by punctuations without ranges before a number, as far as these are known."""
        codes = BatchCodes(self.schema, pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns)))
        with self._lock:
            return self._closed_by_keys(codes, number)

    def closed_within(self, name: str, interval: CodeRange, number: int) -> list[ValueList | CodeRange]:
        """What punctuations before a number close of a range of a column: ranges, and values if they have an order."""
        with self._lock:
            parts: list[ValueList | CodeRange] = []
            if name in self._ranges:
                parts += _overlaps(self._ranges[name].before(number), interval)
            parts += _values_within(self._keys.get((name,)), interval, number)
            if self._earlier is not None and number >= self.first:
                if name in self._earlier.ranges:
                    parts += _overlaps(self._earlier.ranges[name], interval)
                parts += _values_within(self._earlier.keys.get((name,)), interval, _MOST)
            return parts

    def ranges_before(self, name: str, number: int) -> list[CodeRange]:
        """The ranges of a column that punctuations before a number close."""
        with self._lock:
            ranges = self._ranges.get(name)
            known = [] if ranges is None else [interval for interval, _ in ranges.before(number).intervals()]
            if self._earlier is None or number < self.first or name not in self._earlier.ranges:
                return known
            # Of what earlier ones close, what known ones close too may have been closed by these only.
            later = [] if ranges is None else [interval for interval, _ in ranges.before(_MOST).intervals()]
            earlier = [interval for interval, _ in self._earlier.ranges[name].intervals()]
            for interval in later:
                earlier = [rest for part in earlier for rest in difference(part, interval)]
            return known + earlier

    def others_before(self, number: int) -> list[Pattern]:
        """The patterns of several columns with ranges before a number, as far as they are known one by one."""
        with self._lock:
            return [pattern for pattern, known in self._others if known < number]

    def _closed_before(self, codes: BatchCodes, number: int) -> np.ndarray:
        names, closed = set(codes.batch.schema.names), self._closed_by_keys(codes, number)
        for name, ranges in self._ranges.items():
            if name in names:
                closed |= ranges.before(number).find(codes.of((name,)), codes.values(name)) != NO_MARK
        for pattern, known in self._others:
            if known < number and names.issuperset(name for name, _ in pattern.columns):
                closed |= matching(self.schema, pattern, codes)
        return closed

    def _closed_by_keys(self, codes: BatchCodes, number: int) -> np.ndarray:
        names = set(codes.batch.schema.names)
        closed = np.zeros(codes.batch.num_rows, np.bool_)
        for columns, keys in self._keys.items():
            if names.issuperset(columns):
                closed |= keys.find(codes.of(columns)) < number
        return closed


def _overlaps(ranges: CodeIntervals | TextIntervals, interval: CodeRange) -> list[CodeRange]:
    overlaps = (intersection(interval, known) for known, _ in ranges.intervals())
    return [overlap for overlap in overlaps if overlap is not None]


def _values_within(keys: KeySet | None, interval: CodeRange, number: int) -> list[ValueList]:
    """The values of a set within a range that were closed before a number; none of hashed ones."""
    if keys is None or keys.hashed:
        return []
    level = keys.as_level()
    low = 0 if interval.low is None else int(np.searchsorted(level.first, interval.low))
    high = len(level.first) if interval.high is None else int(np.searchsorted(level.first, interval.high, "right"))
    codes = level.first[low:high][level.marks[low:high] < number]
    return [ValueList(tuple(codes.tolist()))] if len(codes) else []


class RangeHistory:
    """The closed ranges of one column, with their numbers."""

    def __init__(self, schema: Schema, name: str) -> None:
        """No ranges."""
        self._type = type_of(schema, name)
        self._intervals: list[CodeRange] = []
        self._numbers: list[int] = []
        self._merged: dict[int, CodeIntervals | TextIntervals] = {}
        """Merged ranges, by how many of them."""

    def add(self, interval: CodeRange, number: int) -> None:
        """Add a range."""
        self._intervals.append(interval)
        self._numbers.append(number)

    def before(self, number: int) -> CodeIntervals | TextIntervals:
        """The ranges with smaller numbers, merged."""
        count = int(np.searchsorted(self._numbers, number)) if self._numbers[-1] >= number else len(self._numbers)
        merged = self._merged.get(count)
        if merged is None:
            known = max((size for size in self._merged if size < count), default=0)
            merged = CodeIntervals() if has_order(self._type) else TextIntervals(self._type)
            for interval, mark in self._merged[known].intervals() if known else []:
                merged.add(interval, mark)
            for interval in self._intervals[known:count]:
                merged.add(interval, 0)
            self._merged[count] = merged
            if len(self._merged) > KEPT_MERGES:
                del self._merged[min(self._merged)]
        return merged
