"""Joined parts: some joined rows of a query in memory, with the columns of the answer and the times of all tuples.

Whether a row is in windows of time is decided by the times of its tuples. So a part answers for any NOW without looking
for its tuples, and where the windows contain all of them, it is compared with the windows by a few numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.joining.join_input import Flags, Numbers
from tureen.stems.join_run import JoinedTuples, concatenated

COMBINED_ROWS = 1024
"""Neighbouring parts with fewer rows together are combined; of larger ones, those of about the same size."""


class TimeWindow(NamedTuple):
    """The times of the tuples of one input that are in its window, both ends included; None is open."""

    begin: int | None
    end: int | None

    def contains(self, other: TimeWindow) -> bool:
        """Whether all times of another window are in this one.

        >>> TimeWindow(3, None).contains(TimeWindow(4, 9)), TimeWindow(3, 8).contains(TimeWindow(3, None))
        (True, False)
        """
        if self.begin is not None and (other.begin is None or other.begin < self.begin):
            return False
        return self.end is None or (other.end is not None and other.end <= self.end)

    def common(self, other: TimeWindow) -> TimeWindow:
        """The times that are in both windows.

        >>> TimeWindow(3, None).common(TimeWindow(2, 9))
        TimeWindow(begin=3, end=9)
        """
        begins = [begin for begin in (self.begin, other.begin) if begin is not None]
        ends = [end for end in (self.end, other.end) if end is not None]
        return TimeWindow(max(begins, default=None), min(ends, default=None))


@dataclass(frozen=True, eq=False)
class JoinedPart:
    """One or more joined rows, in the order of the answer."""

    tuples: JoinedTuples
    times: Sequence[Numbers]
    """The times of the tuples of each stream."""
    columns: pa.RecordBatch

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.tuples)

    @property
    def nbytes(self) -> int:
        """Its size in memory."""
        return sum(of_row.nbytes for of_row in (*self.tuples.ids, *self.times, self.tuples.times, self.columns))

    @cached_property
    def bounds(self) -> list[tuple[int, int]]:
        """The earliest and the latest time of the tuples of each stream."""
        return [(int(times.min()), int(times.max())) for times in self.times]

    @cached_property
    def least_ids(self) -> list[int]:
        """The least tuple id of each stream."""
        return [int(ids.min()) for ids in self.tuples.ids]

    def in_windows(self, windows: Sequence[TimeWindow]) -> pa.RecordBatch:
        """The columns of the rows whose tuples are all in the windows of their streams."""
        inside: Flags | None = None
        for (begin, end), times, (earliest, latest) in zip(windows, self.times, self.bounds, strict=True):
            if begin is not None and begin > earliest:
                after = times >= begin
                inside = after if inside is None else inside & after
            if end is not None and end < latest:
                before = times <= end
                inside = before if inside is None else inside & before
        return self.columns if inside is None else self.columns.filter(pa.array(inside))

    def take(self, rows: npt.NDArray[np.int64]) -> JoinedPart:
        """Some of the rows."""
        times = [of_stream[rows] for of_stream in self.times]
        return JoinedPart(self.tuples.take(rows), times, self.columns.take(pa.array(rows)))

    def is_after(self, other: JoinedPart, order: Sequence[int]) -> bool:
        """Whether all rows come after those of another part, where tuples with equal times have an order of streams."""
        return self._place(0, order) > other._place(-1, order)

    def _place(self, row: int, order: Sequence[int]) -> tuple[int, ...]:
        tuples = self.tuples
        return (int(tuples.times[row]), *(int(tuples.ids[stream][row]) for stream in order))


def combined(parts: Sequence[JoinedPart], order: Sequence[int]) -> tuple[JoinedPart, ...]:
    """Parts in the order of their rows, the last ones combined while they are small, equally large, or out of order.

    Each row is copied a few times at most while more come. `order` has the streams in the order of FROM.
    """
    *before, last = parts
    while before:
        size, is_after = len(before[-1]), last.is_after(before[-1], order)
        if is_after and size > 2 * len(last) and size + len(last) > COMBINED_ROWS:
            break
        last = _joined(before.pop(), last, order)
    return (*before, last)


def _joined(first: JoinedPart, second: JoinedPart, order: Sequence[int]) -> JoinedPart:
    tuples = concatenated(len(first.times), [first.tuples, second.tuples])
    times = [np.concatenate(of_stream) for of_stream in zip(first.times, second.times, strict=True)]
    part = JoinedPart(tuples, times, pa.concat_batches([first.columns, second.columns]))
    rows = None if second.is_after(first, order) else tuples.order_of(order)
    return part if rows is None else part.take(rows)
