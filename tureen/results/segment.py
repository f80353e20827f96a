"""A segment: one indexed run, or some neighbouring unindexed ones, as an invocation sees them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.matching import RunCells, Selector
from tureen.pot.queries import Registered
from tureen.stems.run import OpenRun


class Hits(NamedTuple):
    """The tuples of one segment that belong to an answer.

    `rows` are numbered within their block, ascending; those of block n are `rows[starts[n] : starts[n + 1]]`.
    """

    segment: Segment
    run: OpenRun
    rows: npt.NDArray[np.uint16]
    starts: npt.NDArray[np.int64]

    def positions(self) -> npt.NDArray[np.int64]:
        """The rows, numbered within their segment instead of their block."""
        sizes = [block.rows for block in self.run.blocks]
        before = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
        return self.rows.astype(np.int64) + np.repeat(before, np.diff(self.starts))


@dataclass(eq=False)
class Segment:
    """Tuples in time order, opened when first needed."""

    key: tuple[int, ...]
    """The runs it is of: two segments of one key hold the same tuples."""
    first_id: int
    """The least tuple id that it may hold."""
    rows: int
    min_time: int
    max_time: int
    _open: Callable[[], OpenRun]
    _later_cells: Callable[[], Sequence[Sequence[pa.RecordBatch]]]
    matched_seq: int | None
    """Up to which commit eager clauses were matched; None for a tail, which is scanned."""
    _cells: RunCells | None = field(default=None, init=False)
    _ends: list[int] = field(default_factory=list, init=False)
    _starts: list[int] = field(default_factory=list, init=False)
    """The last time of each block and the number of tuples before it, once they were asked for."""

    def place(self, time: int, *, after: bool) -> int:
        """How many tuples come before that time; with `after`, before or at it."""
        if time < self.min_time or (time == self.min_time and not after):
            return 0
        if time > self.max_time or (time == self.max_time and after):
            return self.rows
        run = self._open()
        side: Any = "right" if after else "left"
        if not self._ends:
            # The ends come last: other threads take them for the sign that both are there.
            self._starts = [0, *np.cumsum([len(times) for times in run.times]).tolist()]
            self._ends = [int(times[-1]) for times in run.times]
        number = (bisect_right if after else bisect_left)(self._ends, time)
        return int(self._starts[number]) + int(run.times[number].searchsorted(time, side=side))

    def times(self, first: int, last: int) -> npt.NDArray[np.int64]:
        """The times of the tuples from `first` to before `last`."""
        run = self._open()
        return np.concatenate([run.times[number][low:high] for number, low, high in _parts(run, first, last)])

    def times_at(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The times of some tuples."""
        run = self._open()
        starts = np.cumsum([0, *map(len, run.times)])
        blocks = np.searchsorted(starts, rows, side="right") - 1
        found = np.empty(len(rows), np.int64)
        for block in np.unique(blocks).tolist():
            here = blocks == block
            found[here] = run.times[block][rows[here] - starts[block]]
        return found

    def ids_at(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The tuple ids of some tuples: where they stand in the stream's order of arrival."""
        nth = self._open().nth
        return self.first_id + (rows if nth is None else nth[rows].astype(np.int64))

    def publishes(self, query: Registered) -> bool:
        """Whether the query's cell is written, and not owed or lazy or a matter of scanning."""
        return query.number is not None and self.matched_seq is not None and query.clause_seq <= self.matched_seq

    def hits(self, query: Registered, selector: Selector, first: int, last: int) -> Hits:
        """The query's tuples among those from `first` to before `last`."""
        run = self._open()
        found = None
        if query.number is not None and self.publishes(query):
            found = self._published(run).rows_of(query.number, first, last)
        rows, starts = found or _selected(run, selector, first, last)
        return Hits(self, run, rows, starts)

    def _published(self, run: OpenRun) -> RunCells:
        if self._cells is None:
            files = [*self._later_cells(), *run.cells]
            self._cells = RunCells(files, [block.rows for block in run.blocks])
        return self._cells


def _selected(
    run: OpenRun, selector: Selector, first: int, last: int
) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.int64]]:
    """A clause's tuples by evaluation: from the index of each block, or by scanning it."""
    found: list[npt.NDArray[np.uint16]] = [_NONE] * len(run.blocks)
    for number, low, high in _parts(run, first, last):
        found[number] = selector.rows(run.blocks[number], low, high)
    return np.concatenate(found), np.cumsum([0, *map(len, found)])


def _parts(run: OpenRun, first: int, last: int) -> Iterator[tuple[int, int, int]]:
    """The blocks that reach into an interval of tuples, with the interval within each."""
    start = 0
    for number, times in enumerate(run.times):
        end = start + len(times)
        if first < end and last > start:
            yield number, max(first - start, 0), min(last, end) - start
        start = end


_NONE: npt.NDArray[np.uint16] = np.empty(0, np.uint16)
