"""A segment: one indexed run, or some neighbouring unindexed ones, as an invocation sees them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tureen.matching import CellReader, Selector
from tureen.pot.queries import Registered
from tureen.stems.index import Block
from tureen.stems.run import OpenRun


class Hits(NamedTuple):
    """The rows of one block that belong to an answer, ascending."""

    block: Block
    times: npt.NDArray[np.int64]
    rows: npt.NDArray[np.uint16]


@dataclass(eq=False)
class Segment:
    """Tuples in time order, opened when first needed."""

    rows: int
    min_time: int
    max_time: int
    _open: Callable[[], OpenRun]
    _later_cells: Callable[[], Sequence[Any]]
    matched_seq: int | None
    """Up to which commit eager clauses were matched; None for a tail, which is scanned."""
    _readers: list[list[CellReader]] | None = field(default=None, init=False)

    def place(self, time: int, *, after: bool) -> int:
        """How many tuples come before that time; with `after`, before or at it."""
        if time < self.min_time or (time == self.min_time and not after):
            return 0
        if time > self.max_time or (time == self.max_time and after):
            return self.rows
        run = self._open()
        side: Any = "right" if after else "left"
        ends = [span[1] for span in run.spans]
        number = (bisect_right if after else bisect_left)(ends, time)
        before = sum(len(times) for times in run.times[:number])
        return before + int(np.searchsorted(run.times[number], time, side=side))

    def times(self, first: int, last: int) -> npt.NDArray[np.int64]:
        """The times of the tuples from `first` to before `last`."""
        return np.concatenate([times[low:high] for _, times, low, high in self._parts(first, last)])

    def publishes(self, query: Registered) -> bool:
        """Whether the query's cell is written, and not owed or lazy or a matter of scanning."""
        return query.eager and self.matched_seq is not None and query.clause_seq <= self.matched_seq

    def hits(self, query: Registered, selector: Selector, first: int, last: int) -> Iterator[Hits]:
        """The query's tuples among those from `first` to before `last`, block by block."""
        published = self.publishes(query)
        for number, times, low, high in self._parts(first, last):
            block = self._open().blocks[number]
            rows = self._published(number, query.clause_id, low, high) if published else selector.rows(block, low, high)
            if len(rows):
                yield Hits(block, times, rows)

    def _published(self, block: int, clause: int, low: int, high: int) -> npt.NDArray[np.uint16]:
        """A cell's rows: from the file that was published last and has the clause."""
        if self._readers is None:
            run = self._open()
            files = [*self._later_cells(), *([run.cells] if run.cells else [])]
            self._readers = [
                [CellReader(file[place], one.rows) for file in files] for place, one in enumerate(run.blocks)
            ]
        rows = _NONE
        for reader in self._readers[block]:
            if reader.count_of(clause):
                return reader.rows_of(clause, low, high)
        return rows

    def _parts(self, first: int, last: int) -> Iterator[tuple[int, npt.NDArray[np.int64], int, int]]:
        """The blocks that reach into an interval of tuples, with the interval within each."""
        start = 0
        for number, times in enumerate(self._open().times):
            end = start + len(times)
            if first < end and last > start:
                yield number, times, max(first - start, 0), min(last, end) - start
            start = end


_NONE: npt.NDArray[np.uint16] = np.empty(0, np.uint16)
