"""Closed ranges of one column, merged where they overlap or touch."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tureen.closed.key_codes import Codes
from tureen.closed.key_set import NO_MARK
from tureen.closed.pattern import Code, CodeRange, code_decimal
from tureen.schema import Kind, Type

_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1


class CodeIntervals:
    """Ranges of a column whose values have 64-bit codes: sorted, disjoint, with both ends included."""

    def __init__(self) -> None:
        """No ranges."""
        self._lows: list[int] = []
        self._highs: list[int] = []
        self._marks: list[int] = []
        self._arrays: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    def __len__(self) -> int:
        """The number of ranges."""
        return len(self._lows)

    def add(self, interval: CodeRange, mark: int) -> bool:
        """Add a range; False if it was closed before. A merged range has the latest mark."""
        low = _LEAST if interval.low is None else int(interval.low)
        high = _GREATEST if interval.high is None else int(interval.high)
        begin, end = bisect_left(self._highs, low - 1), bisect_right(self._lows, high + 1)
        if begin < end:
            if end - begin == 1 and self._lows[begin] <= low and high <= self._highs[begin]:
                return False
            low, high = min(low, self._lows[begin]), max(high, self._highs[end - 1])
            mark = max(mark, *self._marks[begin:end])
        self._lows[begin:end], self._highs[begin:end], self._marks[begin:end] = [low], [high], [mark]
        self._arrays = None
        return True

    def find(self, codes: Codes, values: pa.Array) -> np.ndarray:  # noqa: ARG002 - as `TextIntervals`
        """The mark of the range that contains each value, or `NO_MARK`."""
        return np.where(codes.valid, self.marks_of(codes.first), NO_MARK)

    def marks_of(self, first: np.ndarray) -> np.ndarray:
        """The mark of the range that contains each code, or `NO_MARK`."""
        lows, highs, marks = self._sorted_arrays()
        if not len(lows):
            return np.full(len(first), NO_MARK)
        index = np.searchsorted(lows, first, "right") - 1
        within = (index >= 0) & (first <= highs[index])
        return np.where(within, marks[index], NO_MARK)

    def contains(self, interval: CodeRange) -> bool:
        """Whether all of a range is closed."""
        low = _LEAST if interval.low is None else int(interval.low)
        high = _GREATEST if interval.high is None else int(interval.high)
        index = bisect_right(self._lows, low) - 1
        return index >= 0 and high <= self._highs[index]

    def covers(self, firsts: np.ndarray, lasts: np.ndarray) -> np.ndarray:
        """For each of several intervals, whether a range contains all of it."""
        lows, highs, _ = self._sorted_arrays()
        if not len(lows):
            return np.zeros(len(firsts), np.bool_)
        index = np.searchsorted(lows, firsts, "right") - 1
        covered: np.ndarray = (index >= 0) & (lasts <= highs[index])
        return covered

    def _sorted_arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if self._arrays is None:
            lows, highs, marks = (np.array(ends, np.int64) for ends in (self._lows, self._highs, self._marks))
            self._arrays = lows, highs, marks
        return self._arrays

    def containing(self, codes: Codes, values: pa.Array, row: int) -> CodeRange:  # noqa: ARG002 - as `TextIntervals`
        """The range that contains the value of a row."""
        index = bisect_right(self._lows, int(codes.first[row])) - 1
        return self.intervals()[index][0]

    def intervals(self) -> list[tuple[CodeRange, int]]:
        """The ranges with their marks, in ascending order."""
        return [
            (CodeRange(None if low == _LEAST else low, None if high == _GREATEST else high), mark)
            for low, high, mark in zip(self._lows, self._highs, self._marks, strict=True)
        ]


class TextIntervals:
    """Ranges of a STRING column, or of DECIMALs of more than 18 digits: a list that is compared one by one."""

    def __init__(self, column_type: Type) -> None:
        """No ranges."""
        self._type = column_type
        self._intervals: list[tuple[CodeRange, int]] = []

    def __len__(self) -> int:
        """The number of ranges."""
        return len(self._intervals)

    def add(self, interval: CodeRange, mark: int) -> bool:
        """Add a range; False if it was closed before. A merged range has the latest mark."""
        if self.contains(interval):
            return False
        apart: list[tuple[CodeRange, int]] = []
        for known, known_mark in self._intervals:
            union = _merged(known, interval)
            if union is None:
                apart.append((known, known_mark))
            else:
                interval, mark = union, max(mark, known_mark)
        self._intervals = [*apart, (interval, mark)]
        return True

    def contains(self, interval: CodeRange) -> bool:
        """Whether all of a range is closed."""
        return any(_merged(known, interval) == known for known, _ in self._intervals)

    def find(self, codes: Codes, values: pa.Array) -> np.ndarray:  # noqa: ARG002 - as `CodeIntervals`
        """The mark of the range that contains each value, or `NO_MARK`."""
        marks = np.full(len(values), NO_MARK)
        for interval, mark in self._intervals:
            np.minimum(marks, np.where(within(interval, self._type, values), np.int64(mark), NO_MARK), out=marks)
        return marks

    def containing(self, codes: Codes, values: pa.Array, row: int) -> CodeRange:  # noqa: ARG002 - as `CodeIntervals`
        """The range that contains the value of a row."""
        value = values.slice(row, 1)
        return next(interval for interval, _ in self._intervals if within(interval, self._type, value)[0])

    def intervals(self) -> list[tuple[CodeRange, int]]:
        """The ranges with their marks."""
        return list(self._intervals)


def within(interval: CodeRange, column_type: Type, values: pa.Array) -> np.ndarray:
    """Which values of a column without 64-bit codes are in a range; NULL is not."""
    inside = values.is_valid()
    if interval.low is not None:
        compare = pc.greater if interval.low_open else pc.greater_equal
        inside = pc.and_(inside, pc.fill_null(compare(values, _scalar(column_type, interval.low)), False))
    if interval.high is not None:
        compare = pc.less if interval.high_open else pc.less_equal
        inside = pc.and_(inside, pc.fill_null(compare(values, _scalar(column_type, interval.high)), False))
    mask: np.ndarray = inside.to_numpy(zero_copy_only=False)
    return mask


def intersection(left: CodeRange, right: CodeRange) -> CodeRange | None:
    """The values in both of two ranges of a column; None if there are none.

    >>> intersection(CodeRange(1, 5), CodeRange(low=4))
    CodeRange(low=4, high=5, low_open=False, high_open=False)
    """
    lows = [(interval.low, interval.low_open) for interval in (left, right) if interval.low is not None]
    highs = [(interval.high, not interval.high_open) for interval in (left, right) if interval.high is not None]
    low, low_open = max(lows, default=(None, False))
    high, closed = min(highs, default=(None, True))
    if low is not None and high is not None:
        is_empty = low > high or (low == high and (low_open or not closed))  # type: ignore[operator]
        if is_empty:
            return None
    return CodeRange(low, high, low_open, not closed)


def difference(interval: CodeRange, known: CodeRange) -> list[CodeRange]:
    """The values of a range that are not in another one; a range of texts stays whole unless the other covers it.

    >>> [(rest.low, rest.high) for rest in difference(CodeRange(1, 9), CodeRange(3, 4))]
    [(1, 2), (5, 9)]
    """
    common = intersection(interval, known)
    if common is None:
        return [interval]
    if common == interval:
        return []
    if isinstance(common.low, str) or isinstance(common.high, str):
        return [interval]
    rest = []
    if common.low is not None and common.low != interval.low:
        rest.append(CodeRange(interval.low, common.low - 1))
    if common.high is not None and common.high != interval.high:
        rest.append(CodeRange(common.high + 1, interval.high))
    return rest


def _scalar(column_type: Type, code: Code) -> pa.Scalar:
    if column_type.kind is Kind.DECIMAL:
        return pa.scalar(code_decimal(int(code), column_type.scale), column_type.arrow)
    return pa.scalar(code, column_type.arrow)


def _merged(left: CodeRange, right: CodeRange) -> CodeRange | None:
    """The union of two ranges, if it is one range; their ends are codes of one column."""
    if _is_apart(left, right) or _is_apart(right, left):
        return None
    low, low_open = min((_low_end(left), _low_end(right)))[1:] if None not in (left.low, right.low) else (None, False)
    high, closed = max((_high_end(left), _high_end(right)))[1:] if None not in (left.high, right.high) else (None, True)
    return CodeRange(low, high, bool(low_open), not closed)


def _low_end(interval: CodeRange) -> tuple[int, Code | None, bool]:
    return 0, interval.low, interval.low_open


def _high_end(interval: CodeRange) -> tuple[int, Code | None, bool]:
    return 0, interval.high, not interval.high_open


def _is_apart(left: CodeRange, right: CodeRange) -> bool:
    """Whether there is a value between the end of one range and the start of another, or may be one."""
    if left.high is None or right.low is None:
        return False
    if left.high == right.low:
        return left.high_open and right.low_open
    return left.high < right.low  # type: ignore[operator]  # codes of one column have one type
