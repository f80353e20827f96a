"""Remembered parts: some joined rows of a query in memory, with the columns of the answer and the times of all tuples.

Whether a row is in windows of time is decided by the times of its tuples. So a part answers for any NOW without looking
for its tuples, and where the windows contain all of them, it is compared with the windows by a few numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

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


OPEN = TimeWindow(None, None)
"""The window that contains all times."""


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
    def of(
        cls,
        placed: Sequence[PlacedTuples],
        order: Sequence[int],
        columns: Sequence[tuple[int, str]],
        schema: pa.Schema,
    ) -> RememberedPart:
        """Rows of which the tuples of each stream are given; `order` has the streams in the order of FROM.

        The rows have the named columns of streams, with the names and types of a schema.
        """
        times, ids = [], []
        for of_stream in placed:
            times.append(of_stream.times)
            ids.append(of_stream.ids)
        tuples = JoinedTuples(ids, reduce(np.minimum, times))
        rows = tuples.order_of(order) if len(tuples.times) > 1 else None
        if rows is not None:
            times = [of_tuples[rows] for of_tuples in times]
            tuples, placed = tuples.take(rows), [of_stream.at(rows) for of_stream in placed]
        arrays = [placed[stream].column(name) for stream, name in columns]
        return cls(tuples, times, pa.RecordBatch.from_arrays(arrays, schema=schema))

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.tuples)

    @cached_property
    def nbytes(self) -> int:
        """Its size in memory."""
        return 8 * len(self) * (2 * len(self.times) + 1) + int(self.columns.get_total_buffer_size())

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
        first, last = self.tuples.times[0], other.tuples.times[-1]
        if first != last:
            return bool(first > last)
        ids, others = self.tuples.ids, other.tuples.ids
        return [ids[stream][0] for stream in order] > [others[stream][-1] for stream in order]


def combined(parts: Sequence[RememberedPart], order: Sequence[int]) -> tuple[RememberedPart, ...]:
    """Parts in the order of their rows: the last ones are combined if they are many, or out of order.

    All but the last are in order. Each row is copied a few times at most while more come. `order` has the streams in
    the order of FROM.
    """
    if len(parts) < 2 or (len(parts) <= MOST_PARTS and parts[-1].is_after(parts[-2], order)):
        return tuple(parts)
    first, size = len(parts) - 1, len(parts[-1])
    while first and (len(parts[first - 1]) <= 2 * size or not parts[-1].is_after(parts[first - 1], order)):
        first -= 1
        size += len(parts[first])
    return (*parts[:first], _concatenated(parts[first:], order))


def _concatenated(parts: Sequence[RememberedPart], order: Sequence[int]) -> RememberedPart:
    """The rows of parts of which all but the last are in order."""
    if len(parts) == 1:
        return parts[0]
    tuples = concatenated(len(order), [part.tuples for part in parts])
    times = [np.concatenate(of_stream) for of_stream in zip(*(part.times for part in parts), strict=True)]
    part = RememberedPart(tuples, times, pa.concat_batches([part.columns for part in parts]))
    rows = None if parts[-1].is_after(parts[-2], order) else tuples.order_of(order)
    return part if rows is None else part.take(rows)
