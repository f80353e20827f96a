"""Cells: which rows of a block satisfy which clauses, as an Arrow record batch.

Only clauses with a match have an entry: the clause's id, its number of rows, and a container. The container is
a list of uint16 row ids where the rows are few and a bitmap where they are many; which, follows from the two
numbers of rows alone (`list_limit`). Containers are padded to whole 64-bit words. An entry may have none, where the
index of the block gives its rows about as quickly (`Tuning.dense_share`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.errors import DamagedFile
from tureen.stems.cells import container_kernels as reading
from tureen.stems.index import numbers_of

PLACES = 6
"""How many numbers tell compiled code where a cell lies."""


@dataclass(frozen=True, eq=False)
class Cell:
    """What a block and a query run give together.

    `batch` lies in the buffers that `match_block` was given, and is overwritten by the next call with them:
    write it out, or read it, before. `failures` has the errors of clauses that raised, which have no entry.
    """

    batch: pa.RecordBatch
    failures: dict[int, str] = field(default_factory=dict)


class CellReader:
    """The rows of each clause of a cell, read where they lie."""

    def __init__(self, batch: pa.RecordBatch, block_rows: int) -> None:
        """Look at a cell's batch (of schema `CELL_SCHEMA`) of a block with that many rows."""
        self.block_rows = block_rows
        self._batch = batch
        clause, rows, ids = batch.columns
        self._entries = len(clause)
        self._places = (0, 0, 0, 0)
        self._bytes = 0
        if self._entries:
            self._places = (
                clause.buffers()[1].address + 8 * clause.offset,
                rows.buffers()[1].address + 4 * rows.offset,
                ids.buffers()[1].address + 8 * ids.offset,
                ids.buffers()[2].address,
            )
            self._bytes = ids.buffers()[2].size

    @property
    def places(self) -> tuple[int, ...]:
        """Where the cell's parts lie, its number of entries and bytes of containers: what compiled code must know."""
        return (*self._places, self._entries, self._bytes)

    @property
    def clauses(self) -> npt.NDArray[np.int64]:
        """The ids of the clauses that have an entry, ascending."""
        return numbers_of(self._batch.column(0), np.int64)

    def rows_of(self, clause_id: int, first: int = 0, last: int | None = None) -> npt.NDArray[np.uint16]:
        """The clause's rows in [first, last), ascending; none if it has no entry.

        Raises LookupError where its container was left out.
        """
        if self.is_left_out(clause_id):
            raise LookupError("the rows are to be had from the index")
        end = self.block_rows if last is None else int(last)
        # Plain integers: any other kind would have the loop compiled for it.
        wanted = (int(clause_id), int(first), end)
        return reading.entry_rows(*self._places, self._entries, self._bytes, self.block_rows, *wanted)

    def is_left_out(self, clause_id: int) -> bool:
        """Whether the clause has an entry, but its rows are to be had from the index."""
        place = (self._places[0], self._places[2], self._entries, int(clause_id))
        return bool(self._entries and reading.is_left_out(*place))

    def count_of(self, clause_id: int) -> int:
        """The number of the clause's rows in the whole block."""
        return int(reading.entry_count(self._places[0], self._places[1], self._entries, int(clause_id)))


class RunCells:
    """The cells of all blocks of a run, from one file or, where some were published later, several."""

    def __init__(self, files: Sequence[Sequence[pa.RecordBatch]], sizes: Sequence[int]) -> None:
        """Look at files with a batch per block, the newest first, of blocks with that many rows.

        A block's batches are read when they are first asked for.
        """
        self._files = files
        self._sizes = np.array(sizes, np.int64)
        self._starts = np.concatenate([[0], np.cumsum(self._sizes)])
        self._cells = np.zeros((len(files), len(sizes), PLACES), np.int64)
        self._unread: npt.NDArray[np.bool_] | None = np.ones(len(sizes), np.bool_)
        self._batches: dict[int, list[pa.RecordBatch]] = {}

    def rows_of(
        self, clause_id: int, first: int, last: int
    ) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.int64]] | None:
        """The clause's rows among the run's tuples from `first` to before `last`.

        They are numbered within their block; the second array says where each block's rows begin. None where some
        container was left out, and the rows are to be had from the index. Raises DamagedFile.
        """
        if self._unread is not None:
            self._read(first, last)
        try:
            rows, starts = reading.run_rows(self._cells, self._sizes, int(clause_id), int(first), int(last))
        except ValueError as error:
            # They were verified: the file was changed while it was mapped.
            raise DamagedFile("cells are damaged", detail=str(error)) from error
        return None if starts[0] < 0 else (rows, starts)

    def _read(self, first: int, last: int) -> None:
        """Read the cells of the blocks that reach into an interval; threads may do so at once."""
        unread = self._unread
        if unread is None:
            return
        needed = unread & (self._starts[:-1] < last) & (self._starts[1:] > first)
        for block in np.flatnonzero(needed).tolist():
            batches = self._batches.setdefault(block, [file[block] for file in self._files])
            for number, batch in enumerate(batches):
                self._cells[number, block] = CellReader(batch, int(self._sizes[block])).places
            unread[block] = False
        if not unread.any():
            self._unread = None
