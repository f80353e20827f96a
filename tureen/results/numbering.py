"""Tuples by their number in the stream: the order by (time, tuple id) over all segments."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tureen.results.segment import Segment

Numbers = npt.NDArray[np.int64]


class Numbering:
    """Numbers each tuple of some segments, from a first number on.

    Where segments follow one another in time, as they mostly do, a tuple's number is that of its segment's first
    plus its own place; only where they overlap are their times sorted.
    """

    def __init__(self, segments: Sequence[Segment], first: int) -> None:
        """Number the tuples of the segments, which come in order of tuple id."""
        self._segments, self._first = segments, first
        sizes = [segment.rows for segment in segments]
        self._bases = [first, *(first + np.cumsum(sizes)).tolist()] if sizes else [first]
        follows = all(one.max_time <= other.min_time for one, other in pairwise(segments))
        self._numbers: list[Numbers] | None = None
        if not follows:
            times = np.concatenate([segment.times(0, segment.rows) for segment in segments])
            order = np.argsort(times, kind="stable")
            numbers = np.empty(len(order), np.int64)
            numbers[order] = first + np.arange(len(order))
            self._sorted = times[order]
            self._numbers = np.split(numbers, np.cumsum(sizes)[:-1])

    def base(self, place: int) -> int | None:
        """What added to a row of the segment at that place is its number; None where it is no one thing."""
        return self._bases[place] if self._numbers is None else None

    def of(self, place: int, rows: Numbers) -> Numbers:
        """The numbers of some rows of the segment at that place."""
        if self._numbers is not None:
            return self._numbers[place][rows]
        return rows + self._bases[place]

    def rows_before(self, place: int, number: int) -> int:
        """How many tuples of the segment at that place have a smaller number."""
        if self._numbers is not None:
            return int(np.searchsorted(self._numbers[place], number))
        return min(max(number - self._bases[place], 0), self._segments[place].rows)

    def times(self, numbers: Numbers) -> Numbers:
        """The times of the tuples of those numbers."""
        if self._numbers is not None:
            found: Numbers = self._sorted[numbers - self._first]
            return found
        found = np.empty(len(numbers), np.int64)
        places = np.searchsorted(self._bases, numbers, side="right") - 1
        for place in np.unique(places).tolist():
            here = places == place
            found[here] = self._segments[place].times_at(numbers[here] - self._bases[place])
        return found
