"""Remembered parts: some joined rows of a query in memory, with the columns of the answer and the times of all tuples.

Whether a row is in windows of time is decided by the times of its tuples. So a part answers for any NOW without looking
for its tuples, and where the windows contain all of them, it is compared with the windows by a few numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.join import parse_field
from tureen.joining.join_input import Flags, Numbers
from tureen.results.rows.placed_tuples import PlacedTuples
from tureen.stems.join_run import JoinedTuples, concatenated

MOST_PARTS = 16
"""If there are more parts, neighbours of about the same size are combined."""


class TimeWindow(NamedTuple):
    """The times of the tuples of one input that are in its window, both ends included; None is open."""

    begin: int | None
    end: int | None

    def contains(self, other: TimeWindow) -> bool:
        """Whether all times of another window are in this one.

        >>> TimeWindow(3, None).contains(TimeWindow(4, 9)), TimeWindow(3, 8).contains(TimeWindow(3, None))
        (True, False)
        >>> TimeWindow(3, None).contains(TimeWindow(2, 9)), TimeWindow(3, None).contains(TimeWindow(None, 9))
        (False, False)
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


@lru_cache(maxsize=1024)
def _columns_of(fields: pa.Schema) -> list[tuple[int, str]]:
    """The input and the column of each field of joined rows."""
    return [(field.input, field.column) for field in map(parse_field, fields.names)]


def order_of_from(numbers: Sequence[int]) -> list[int]:
    """The streams in the order of FROM, given the number of the input of each.

    >>> order_of_from([2, 0, 1])
    [1, 2, 0]
    """
    return sorted(range(len(numbers)), key=numbers.__getitem__)


@dataclass(frozen=True, eq=False)
class RememberedPart:
    """One or more joined rows, in the order of the answer."""

    tuples: JoinedTuples
    times: Sequence[Numbers]
    """The times of the tuples of each stream."""
    columns: pa.RecordBatch

    @classmethod
    def of(cls, placed: Sequence[PlacedTuples], numbers: Sequence[int], fields: pa.Schema) -> RememberedPart:
        """Rows of which the tuples of each stream are given; `numbers` has the inputs of the query that these are."""
        times = [tuples.times for tuples in placed]
        tuples = JoinedTuples([of_stream.ids for of_stream in placed], np.minimum.reduce(times))
        rows = tuples.order_of(order_of_from(numbers)) if len(tuples) > 1 else None
        if rows is not None:
            times = [of_stream[rows] for of_stream in times]
            tuples, placed = tuples.take(rows), [of_stream.at(rows) for of_stream in placed]
        of_input = dict(zip(numbers, placed, strict=True))
        columns = [of_input[number].column(name) for number, name in _columns_of(fields)]
        return cls(tuples, times, pa.RecordBatch.from_arrays(columns, schema=fields))

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.tuples)

    @cached_property
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
        for stream, (begin, end) in enumerate(windows):
            if begin is None and end is None:
                continue
            times, (earliest, latest) = self.times[stream], self.bounds[stream]
            if begin is not None and begin > earliest:
                after = times >= begin
                inside = after if inside is None else inside & after
            if end is not None and end < latest:
                before = times <= end
                inside = before if inside is None else inside & before
        return self.columns if inside is None else self.columns.filter(pa.array(inside))

    def take(self, rows: npt.NDArray[np.int64]) -> RememberedPart:
        """Some of the rows."""
        times = [of_stream[rows] for of_stream in self.times]
        return RememberedPart(self.tuples.take(rows), times, self.columns.take(pa.array(rows)))

    def is_after(self, other: RememberedPart, order: Sequence[int]) -> bool:
        """Whether all rows come after those of another part, where tuples with equal times have an order of streams."""
        return self._place(0, order) > other._place(-1, order)

    def _place(self, row: int, order: Sequence[int]) -> tuple[int, ...]:
        tuples = self.tuples
        return (int(tuples.times[row]), *(int(tuples.ids[stream][row]) for stream in order))


def combined(parts: Sequence[RememberedPart], numbers: Sequence[int]) -> tuple[RememberedPart, ...]:
    """Parts in the order of their rows: the last ones are combined if they are many, or out of order.

    Each row is copied a few times at most while more come. `numbers` has the input of the query of each stream.
    """
    order = order_of_from(numbers)
    if len(parts) < 2 or (len(parts) <= MOST_PARTS and parts[-1].is_after(parts[-2], order)):
        return tuple(parts)
    *before, last = parts
    while before:
        size, is_after = len(before[-1]), last.is_after(before[-1], order)
        if is_after and size > 2 * len(last):
            break
        last = _joined(before.pop(), last, order)
    return (*before, last)


def _joined(first: RememberedPart, second: RememberedPart, order: Sequence[int]) -> RememberedPart:
    tuples = concatenated(len(first.times), [first.tuples, second.tuples])
    times = [np.concatenate(of_stream) for of_stream in zip(first.times, second.times, strict=True)]
    part = RememberedPart(tuples, times, pa.concat_batches([first.columns, second.columns]))
    rows = None if second.is_after(first, order) else tuples.order_of(order)
    return part if rows is None else part.take(rows)
