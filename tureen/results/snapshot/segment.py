"""A segment: one indexed run, or neighbouring runs of the tail joined in memory."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.errors import DamagedFile
from tureen.keys import KeyColumns
from tureen.matching import RunCells, Selector
from tureen.matching.kept_selector import KeptSelector
from tureen.pot.registered import RegisteredInput
from tureen.stems.index import BLOCK_ROWS, index_block
from tureen.stems.run import OpenRun, log_damage
from tureen.stems.stored_keys import Report, StoredKeys

SCANS_BEFORE_INDEX = 8
"""How often a segment without an index is scanned before it gets one in memory."""


OpenKeyFile = Callable[[], StoredKeys | None]
"""Opens a key file; None if it is damaged or missing."""


class Hits(NamedTuple):
    """The tuples of one segment that belong to an answer.

    `rows` are numbered within their block, ascending; those of block n are `rows[starts[n] : starts[n + 1]]`.
    """

    segment: Segment
    run: OpenRun
    rows: npt.NDArray[np.uint16]
    starts: npt.NDArray[np.int64]
    columns: dict[str, pa.Array] | None = None
    """Columns of the tuples that were read before; None if none are kept."""

    def positions(self) -> npt.NDArray[np.int64]:
        """The rows, numbered within their segment instead of their block."""
        return np.repeat(self.run.block_starts, np.diff(self.starts)) + self.rows


@dataclass(eq=False)
class Segment:
    """Tuples in time order, opened when first needed."""

    key: tuple[int, ...]
    """The ids of its runs: segments with the same key contain the same tuples."""
    first_id: int
    """A lower bound of its tuple ids."""
    rows: int
    min_time: int
    max_time: int
    _open: Callable[[], OpenRun]
    _later_cells: Callable[[], Sequence[Sequence[pa.RecordBatch]]]
    matched_seq: int | None
    """The commit up to which eager clauses were matched; None for a tail, which is scanned."""
    _report: Report = log_damage
    _key_files: Mapping[KeyColumns, OpenKeyFile] = field(default_factory=dict)
    _run: OpenRun | None = field(default=None, init=False)
    _cells: RunCells | None = field(default=None, init=False)
    _scans: int = field(default=0, init=False)
    _by_nth: npt.NDArray[np.int64] | None = field(default=None, init=False)
    """The number of each tuple, by its position in the order of arrival."""

    def run(self) -> OpenRun:
        """The tuples; once they are mapped, the file may be removed."""
        if self._run is None:
            self._run = self._open()
        return self._run

    def stored_keys(self, columns: KeyColumns) -> StoredKeys | None:
        """The file that has the index by columns, of the run itself or one beside it; None if there is none."""
        in_run = self.run().keys
        if in_run is not None and columns in in_run:
            return in_run
        open_file = self._key_files.get(columns)
        return None if open_file is None else open_file()

    def hold(self) -> None:
        """Map all its files now; damage is reported when the damaged part is used."""
        with suppress(DamagedFile):
            self._published(self.run())

    def rows_before(self, time: int, *, inclusive: bool) -> int:
        """The number of tuples before a time; with `inclusive`, before or at it."""
        if time < self.min_time or (time == self.min_time and not inclusive):
            return 0
        if time > self.max_time or (time == self.max_time and inclusive):
            return self.rows
        run = self.run()
        number = (bisect_right if inclusive else bisect_left)(run.ends, time)
        side: Any = "right" if inclusive else "left"
        return run.starts[number] + int(run.times(number).searchsorted(time, side=side))

    def times(self, first: int, last: int) -> npt.NDArray[np.int64]:
        """The times of the tuples from `first` to before `last`."""
        run = self.run()
        return np.concatenate([run.times(number)[low:high] for number, low, high in run.parts(first, last)])

    def times_at(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The times of tuples."""
        run = self.run()
        return _by_block(run, rows, run.times)

    def ids_at(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The tuple ids of tuples."""
        run = self.run()
        return self.first_id + (rows if run.in_order else _by_block(run, rows, run.nth))

    def positions_of(self, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The numbers of the tuples with these ids; -1 where the segment does not have one."""
        nth = ids - self.first_id
        run = self.run()
        if not run.in_order:
            if self._by_nth is None:
                self._by_nth = _inverse(np.concatenate([run.nth(number) for number in range(len(run.blocks))]))
            by_nth = self._by_nth
            inside = (nth >= 0) & (nth < len(by_nth))
            return np.where(inside, by_nth[np.where(inside, nth, 0)], -1)
        return np.where((nth >= 0) & (nth < self.rows), nth, -1)

    def positions_between(self, first_id: int, end_id: int) -> npt.NDArray[np.int64]:
        """The numbers of the tuples with ids in an interval, ascending."""
        if self.run().in_order:
            return np.arange(max(first_id - self.first_id, 0), min(end_id - self.first_id, self.rows))
        positions = self.positions_of(np.arange(first_id, end_id))
        return np.sort(positions[positions >= 0])

    def positions_within(self, first: int, last: int, ids: tuple[int, int]) -> tuple[int, int]:
        """The part of an interval of tuples outside of which no tuple has an id in another interval.

        So the clauses of followers, whose factors may be expensive, are evaluated on few tuples that were read before.
        """
        if not self.run().in_order:
            return first, last
        return max(first, ids[0] - self.first_id), min(last, ids[1] - self.first_id)

    def publishes(self, query_input: RegisteredInput) -> bool:
        """Whether the cell of an input's clause is written; otherwise it is owed, lazy, or the segment is a tail."""
        return self._publishes(query_input.number, query_input.clause_seq)

    def _publishes(self, number: int | None, seq: int) -> bool:
        return number is not None and self.matched_seq is not None and seq <= self.matched_seq

    def _looked_up(
        self, run: OpenRun, number: int | None, seq: int, first: int, last: int
    ) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.int64]] | None:
        """The tuples of an eager clause, if its cell is written."""
        if number is not None and self._publishes(number, seq):
            try:
                return self._published(run).rows_of(number, first, last)
            except DamagedFile as damage:
                self._report(damage)
        return None

    def hits(self, query_input: RegisteredInput, selector: Selector, first: int, last: int) -> Hits:
        """The tuples from `first` to before `last` that satisfy an input's clause."""
        run = self.run()
        published = self._looked_up(run, query_input.number, query_input.clause_seq, first, last)
        if published is None and isinstance(selector, KeptSelector):
            wider = self._looked_up(run, selector.number, selector.seq, first, last)
            published = None if wider is None else selector.rows_among(run, *wider)
        if self.matched_seq is None:
            self._note_scan(run)
        rows, starts = published or _selected(run, selector, first, last)
        return Hits(self, run, rows, starts)

    def _note_scan(self, run: OpenRun) -> None:
        """Index a segment in memory once it has been scanned often."""
        self._scans += 1
        if self._scans == SCANS_BEFORE_INDEX:
            for block in run.blocks:
                block.index = index_block(block.columns, block.columns.schema.names)

    def _published(self, run: OpenRun) -> RunCells:
        if self._cells is None:
            files = [*self._later_cells(), *run.cells]
            self._cells = RunCells(files, [block.rows for block in run.blocks])
        return self._cells


def _selected(
    run: OpenRun, selector: Selector, first: int, last: int
) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.int64]]:
    """A clause's tuples by evaluation: from the index of each block, or by scanning it."""
    if not selector.clause and run.starts[-1] <= len(_ALL_ROWS) and _has_full_blocks(run):
        starts = np.clip(np.array(run.starts, np.int64), first, last) - first
        return _ALL_ROWS[first:last], starts
    return selector.rows_of_run(run, first, last)


def _by_block(
    run: OpenRun, rows: npt.NDArray[np.int64], values_of: Callable[[int], npt.NDArray[np.int64]]
) -> npt.NDArray[np.int64]:
    """The values of tuples; `values_of` is called only for the blocks that contain them."""
    starts = np.array(run.starts)
    blocks = np.searchsorted(starts, rows, side="right") - 1
    values = np.empty(len(rows), np.int64)
    for block in np.unique(blocks).tolist():
        in_block = blocks == block
        values[in_block] = values_of(block)[rows[in_block] - starts[block]]
    return values


def _inverse(nth: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The index of each of different values, by the value; -1 for those that do not occur."""
    indexes = np.full(int(nth.max()) + 1 if len(nth) else 0, -1)
    indexes[nth] = np.arange(len(nth))
    return indexes


def _has_full_blocks(run: OpenRun) -> bool:
    """Whether all blocks of a run but the last have the greatest number of rows."""
    return len(run.blocks) > 0 and run.starts[-2] == (len(run.blocks) - 1) * BLOCK_ROWS


_ALL_ROWS: npt.NDArray[np.uint16] = np.tile(np.arange(BLOCK_ROWS, dtype=np.uint16), 16)
"""The rows of consecutive full blocks, of which those of a clause without factors are a slice."""
