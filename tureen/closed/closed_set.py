"""The closed set of a stream: all its punctuations, compacted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tureen.closed.closed_ranges import CodeIntervals, TextIntervals, within
from tureen.closed.key_codes import Codes, code_arrays, codes_of, combined_codes, has_order
from tureen.closed.key_set import NO_MARK, KeySet
from tureen.closed.pattern import Code, CodeRange, Pattern, ValueList, decimal_code
from tureen.schema import Schema, Type

MAX_COMBINATIONS = 100_000
"""The number of combinations of values of several columns up to which each is a key of its own."""

KEYS_PER_RANGE = 10_000
"""The number of values that are checked for being covered by ranges, for each range that is added."""


class FirstMatches(NamedTuple):
    """For each row the mark of the first punctuation that it matches, or `NO_MARK`; and in which part that is."""

    marks: np.ndarray
    parts: np.ndarray


class BatchCodes:
    """The codes of a batch's columns, computed when they are first needed."""

    def __init__(self, schema: Schema, batch: pa.RecordBatch) -> None:
        """Of a batch with all columns of the schema."""
        self._schema, self.batch = schema, batch
        self._codes: dict[tuple[str, ...], Codes] = {}

    def values(self, name: str) -> pa.Array:
        """The values of a column."""
        return self.batch.column(name)

    def of(self, names: tuple[str, ...]) -> Codes:
        """The codes of one column, or of several together."""
        codes = self._codes.get(names)
        if codes is None:
            if len(names) == 1:
                codes = codes_of(type_of(self._schema, names[0]), self.values(names[0]))
            else:
                codes = combined_codes([self.of((name,)) for name in names])
            self._codes[names] = codes
        return codes


class ClosedSet:
    """What punctuations close; a mark tells when a punctuation was pushed, or its place within a push."""

    def __init__(self, schema: Schema) -> None:
        """Nothing is closed."""
        self._schema = schema
        self.keys: dict[tuple[str, ...], KeySet] = {}
        """Closed values, by column or columns."""
        self.ranges: dict[str, CodeIntervals | TextIntervals] = {}
        self.others: list[tuple[Pattern, int]] = []
        """Patterns of several columns with ranges."""
        self._ranges_added: dict[str, int] = {}

    def __bool__(self) -> bool:
        """Whether anything is closed."""
        return bool(self.keys or self.ranges or self.others)

    def add(self, pattern: Pattern, mark: int) -> None:
        """Add a punctuation; `mark` is not smaller than that of earlier ones."""
        names = tuple(name for name, _ in pattern.columns)
        lists = _combinable(pattern)
        if len(names) == 1:
            self._add_single(names[0], pattern.columns[0][1], mark)
        elif lists is not None:
            codes = self._combinations(names, lists)
            self.key_set(names).add(codes, np.full(len(codes.first), mark, np.uint32))
        elif all(known != pattern for known, _ in self.others):
            self.others.append((pattern, mark))

    def _combinations(self, names: tuple[str, ...], lists: Sequence[Sequence[Code]]) -> Codes:
        """The codes of all combinations of values of several columns."""
        columns = zip(*product(*lists), strict=True)
        types = (type_of(self._schema, name) for name in names)
        return combined_codes([code_arrays(kind, values) for kind, values in zip(types, columns, strict=True)])

    def add_all(self, patterns: Sequence[Pattern], marks: Sequence[int]) -> None:
        """Add punctuations in order; values of one column are added together."""
        codes: dict[str, list[Code]] = {}
        code_marks: dict[str, list[int]] = {}
        for pattern, mark in zip(patterns, marks, strict=True):
            (name, part), *more = pattern.columns
            if more or isinstance(part, CodeRange):
                self.add(pattern, mark)
            else:
                codes.setdefault(name, []).extend(part.codes)
                code_marks.setdefault(name, []).extend([mark] * len(part.codes))
        for name, values in codes.items():
            self._add_values(name, values, np.array(code_marks[name], np.uint32))

    def _add_single(self, name: str, part: ValueList | CodeRange, mark: int) -> None:
        column_type = type_of(self._schema, name)
        if isinstance(part, CodeRange):
            added = self._range_set(name, column_type).add(part, mark)
            if added and (name,) in self.keys:
                self._drop_covered(name)
            return
        self._add_values(name, part.codes, np.full(len(part.codes), mark, np.uint32))

    def _add_values(self, name: str, values: Sequence[Code], marks: np.ndarray) -> None:
        codes = code_arrays(type_of(self._schema, name), values)
        ranges = self.ranges.get(name)
        if isinstance(ranges, CodeIntervals):
            codes = codes._replace(valid=ranges.marks_of(codes.first) == NO_MARK)
        self.key_set((name,)).add(codes, marks)

    def _drop_covered(self, name: str) -> None:
        """Drop values that a range covers; of many values, after many ranges were added."""
        keys, ranges = self.keys[name,], self.ranges[name]
        self._ranges_added[name] = self._ranges_added.get(name, 0) + 1
        if not isinstance(ranges, CodeIntervals) or len(keys) > KEYS_PER_RANGE * self._ranges_added[name]:
            return
        self._ranges_added[name] = 0
        level = keys.as_level()
        outside = ranges.marks_of(level.first) == NO_MARK
        if not outside.all():
            keys.keep_only(outside)

    def key_set(self, names: tuple[str, ...]) -> KeySet:
        """The closed values of a column or of several, as a set that can be added to."""
        if names not in self.keys:
            self.keys[names] = KeySet(hashed=len(names) > 1 or not has_order(type_of(self._schema, names[0])))
        return self.keys[names]

    def _range_set(self, name: str, column_type: Type) -> CodeIntervals | TextIntervals:
        if name not in self.ranges:
            self.ranges[name] = CodeIntervals() if has_order(column_type) else TextIntervals(column_type)
        return self.ranges[name]

    def closes_all(self, patterns: Sequence[Pattern]) -> list[bool]:
        """For each punctuation whether it closes nothing new, as one does that was added before."""
        singles: dict[str, list[int]] = {}
        closed = [False] * len(patterns)
        for index, pattern in enumerate(patterns):
            (name, part), *more = pattern.columns
            if not more and isinstance(part, ValueList):
                singles.setdefault(name, []).append(index)
            else:
                closed[index] = self._closes(pattern)
        # Values of one column are looked up together, which is many times faster.
        for name, indexes in singles.items():
            lists = [patterns[index].columns[0][1] for index in indexes]
            values = [part.codes for part in lists if isinstance(part, ValueList)]
            known = self._closed_values(name, [code for codes in values for code in codes])
            ends = np.cumsum([len(codes) for codes in values])
            for index, inside in zip(indexes, np.split(known, ends[:-1]), strict=True):
                closed[index] = bool(inside.all())
        return closed

    def _closed_values(self, name: str, values: Sequence[Code]) -> np.ndarray:
        codes, ranges = code_arrays(type_of(self._schema, name), values), self.ranges.get(name)
        keys = self.keys.get((name,))
        closed = np.zeros(len(values), np.bool_) if keys is None else keys.find(codes) != NO_MARK
        if isinstance(ranges, CodeIntervals):
            closed |= ranges.marks_of(codes.first) != NO_MARK
        return closed

    def _closes(self, pattern: Pattern) -> bool:
        """Whether a range, or a pattern of several columns, closes nothing new."""
        names = tuple(name for name, _ in pattern.columns)
        (_, part), *_ = pattern.columns
        if len(names) == 1 and isinstance(part, CodeRange):
            return names[0] in self.ranges and self.ranges[names[0]].contains(part)
        lists = _combinable(pattern)
        if lists is None:
            return any(known == pattern for known, _ in self.others)
        keys = self.keys.get(names)
        return keys is not None and bool((keys.find(self._combinations(names, lists)) != NO_MARK).all())

    def find(self, codes: BatchCodes) -> FirstMatches:
        """The first punctuation that each row matches."""
        rows = codes.batch.num_rows
        marks, parts = np.full(rows, NO_MARK), np.zeros(rows, np.int32)
        for number, part_marks in enumerate(self._part_marks(codes)):
            earlier = part_marks < marks
            marks[earlier] = part_marks[earlier]
            parts[earlier] = number
        return FirstMatches(marks, parts)

    def closes(self, codes: BatchCodes) -> np.ndarray:
        """Which rows of a batch that lacks columns are closed, whatever these are."""
        names = set(codes.batch.schema.names)
        closed = np.zeros(codes.batch.num_rows, np.bool_)
        for columns, keys in self.keys.items():
            if names.issuperset(columns):
                closed |= keys.find(codes.of(columns)) != NO_MARK
        for name, ranges in self.ranges.items():
            if name in names:
                closed |= ranges.find(codes.of((name,)), codes.values(name)) != NO_MARK
        for pattern, _ in self.others:
            if names.issuperset(name for name, _ in pattern.columns):
                closed |= matching(self._schema, pattern, codes)
        return closed

    def _part_marks(self, codes: BatchCodes) -> Iterator[np.ndarray]:
        for names, keys in self.keys.items():
            yield keys.find(codes.of(names))
        for name, ranges in self.ranges.items():
            yield ranges.find(codes.of((name,)), codes.values(name))
        for pattern, mark in self.others:
            yield np.where(matching(self._schema, pattern, codes), np.int64(mark), NO_MARK)

    def text(self, codes: BatchCodes, part: int, row: int) -> str:
        """The punctuation that a row matches, as a condition."""
        if part < len(self.keys):
            names = list(self.keys)[part]
            values = [Pattern(((name, ValueList((row_code(self._schema, codes, name, row),))),)) for name in names]
            return " AND ".join(value.text(self._schema) for value in values)
        part -= len(self.keys)
        if part < len(self.ranges):
            name, ranges = list(self.ranges.items())[part]
            interval = ranges.containing(codes.of((name,)), codes.values(name), row)
            return Pattern(((name, interval),)).text(self._schema)
        return self.others[part - len(self.ranges)][0].text(self._schema)

    def summary(self) -> Mapping[str, object]:
        """What is closed, in numbers: values by columns, ranges by column, and other patterns."""
        ranges = {name: list(ranges.intervals()) for name, ranges in self.ranges.items()}
        return {
            "values": [{"columns": list(names), "count": len(keys)} for names, keys in self.keys.items()],
            "ranges": [
                Pattern(((name, interval),)).text(self._schema)
                for name, intervals in ranges.items()
                for interval, _ in intervals
            ],
            "patterns": [pattern.text(self._schema) for pattern, _ in self.others],
        }


def _combinable(pattern: Pattern) -> list[tuple[Code, ...]] | None:
    """The values of each column, if each combination of them is a key of its own; None otherwise."""
    lists = [part.codes for _, part in pattern.columns if isinstance(part, ValueList)]
    is_small = len(lists) == len(pattern.columns) and prod(map(len, lists)) <= MAX_COMBINATIONS
    return lists if is_small else None


def matching(schema: Schema, pattern: Pattern, codes: BatchCodes) -> np.ndarray:
    """Which rows match a pattern."""
    mask = np.ones(codes.batch.num_rows, np.bool_)
    for name, part in pattern.columns:
        column_type = type_of(schema, name)
        column = codes.of((name,))
        if isinstance(part, CodeRange) and not has_order(column_type):
            mask &= within(part, column_type, codes.values(name))
        elif isinstance(part, CodeRange):
            ranges = CodeIntervals()
            ranges.add(part, 0)
            mask &= ranges.find(column, codes.values(name)) != NO_MARK
        else:
            keys = KeySet(hashed=not has_order(column_type))
            keys.add(code_arrays(column_type, part.codes), np.zeros(len(part.codes), np.uint32))
            mask &= keys.find(column) != NO_MARK
    return mask


def codes_within(schema: Schema, name: str, interval: CodeRange, values: pa.Array) -> tuple[Code, ...]:
    """The codes of the values of a column that are in a range, sorted and distinct."""
    batch = pa.RecordBatch.from_arrays([values], names=[name])
    inside = matching(schema, Pattern(((name, interval),)), BatchCodes(schema, batch))
    codes = BatchCodes(schema, pa.RecordBatch.from_arrays([values.filter(pa.array(inside))], names=[name]))
    return tuple(sorted({row_code(schema, codes, name, row) for row in range(codes.batch.num_rows)}))


def row_code(schema: Schema, codes: BatchCodes, name: str, row: int) -> int | str:
    """The code of a value of a row, for a text."""
    if has_order(type_of(schema, name)):
        return int(codes.of((name,)).first[row])
    value = codes.values(name)[row].as_py()
    return value if isinstance(value, str) else decimal_code(value, type_of(schema, name).scale)


def type_of(schema: Schema, name: str) -> Type:
    """The type of a column that exists."""
    column = schema.find(name)
    assert column is not None, "patterns are checked against the schema"
    return column.type
