"""Numbers of tuples in a stream: their rank by (time, tuple id) over all segments."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tureen.results.snapshot.segment import Segment

Numbers = npt.NDArray[np.int64]


class Numbering:
    """The numbers of the tuples of segments, starting at a first number.

    If segments do not overlap in time, which is the usual case, a tuple's number is the number of its segment's first
    tuple plus its row. Otherwise the times are sorted.
    """

    def __init__(self, segments: Sequence[Segment], first: int) -> None:
        """Number the tuples of segments, which are in order of tuple id."""
        self._segments, self._first = segments, first
        sizes = [segment.rows for segment in segments]
        self._bases = [first, *(first + np.cumsum(sizes)).tolist()] if sizes else [first]
        disjoint = all(segment.max_time <= following.min_time for segment, following in pairwise(segments))
        self._numbers: list[Numbers] | None = None
        if not disjoint:
            times = np.concatenate([segment.times(0, segment.rows) for segment in segments])
            order = np.argsort(times, kind="stable")
            numbers = np.empty(len(order), np.int64)
            numbers[order] = first + np.arange(len(order))
            self._sorted = times[order]
            self._numbers = np.split(numbers, np.cumsum(sizes)[:-1])

    def base(self, index: int) -> int | None:
        """The difference of number and row in the segment of that index; None if it is not constant."""
        return self._bases[index] if self._numbers is None else None

    def of(self, index: int, rows: Numbers) -> Numbers:
        """The numbers of rows of the segment of that index."""
        if self._numbers is not None:
            return self._numbers[index][rows]
        return rows + self._bases[index]

    def rows_before(self, index: int, number: int) -> int:
        """How many tuples of the segment of that index have a smaller number."""
        if self._numbers is not None:
            return int(np.searchsorted(self._numbers[index], number))
        return min(max(number - self._bases[index], 0), self._segments[index].rows)

    def times(self, numbers: Numbers) -> Numbers:
        """The times of the tuples of those numbers."""
        if self._numbers is not None:
            times: Numbers = self._sorted[numbers - self._first]
            return times
        times = np.empty(len(numbers), np.int64)
        indexes = np.searchsorted(self._bases, numbers, side="right") - 1
        for index in np.unique(indexes).tolist():
            in_segment = indexes == index
            times[in_segment] = self._segments[index].times_at(numbers[in_segment] - self._bases[index])
        return times
