"""Cells: which rows of a block satisfy which clauses, as an Arrow record batch.

Only clauses with a match have an entry: the clause's id, its number of rows, and a container. The container is
a list of uint16 row ids if the rows are few and a bitmap if they are many; which of the two follows from the numbers of
rows of the clause and of the block (`list_limit`). Containers are padded to whole 64-bit words. An entry has no
container if the index of the block yields its rows about as quickly (`Tuning.dense_share`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.errors import DamagedFile
from tureen.stems.cells import container_kernels as kernels
from tureen.stems.index import numbers_of

ADDRESS_FIELDS = 6
"""The number of integers that describe a cell to compiled code: `CellReader.addresses`."""


@dataclass(frozen=True, eq=False)
class Cell:
    """The result of matching a block with a query run.

    `batch` lies in the buffers passed to `match_block`, and the next call with them overwrites it. `failures` has the
    errors of clauses that raised, which have no entry.
    """

    batch: pa.RecordBatch
    failures: dict[int, str] = field(default_factory=dict)


class CellReader:
    """Reads the rows of each clause of a cell without copying the cell."""

    def __init__(self, batch: pa.RecordBatch, block_rows: int) -> None:
        """Read a cell's batch, of schema `CELL_SCHEMA`, of a block with `block_rows` rows."""
        self.block_rows = block_rows
        self._batch = batch
        clause, rows, ids = batch.columns
        self._entries = len(clause)
        self._addresses = (0, 0, 0, 0)
        self._bytes = 0
        if self._entries:
            self._addresses = (
                clause.buffers()[1].address + 8 * clause.offset,
                rows.buffers()[1].address + 4 * rows.offset,
                ids.buffers()[1].address + 8 * ids.offset,
                ids.buffers()[2].address,
            )
            self._bytes = ids.buffers()[2].size

    @property
    def addresses(self) -> tuple[int, ...]:
        """The addresses of the cell's four buffers, its number of entries, and the bytes of its containers."""
        return (*self._addresses, self._entries, self._bytes)

    @property
    def clauses(self) -> npt.NDArray[np.int64]:
        """The ids of the clauses that have an entry, ascending."""
        return numbers_of(self._batch.column(0), np.int64)

    def rows_of(self, clause_id: int, first: int = 0, last: int | None = None) -> npt.NDArray[np.uint16]:
        """The clause's rows in [first, last), ascending; none if it has no entry.

        Raises LookupError if the entry has no container.
        """
        if self.is_left_out(clause_id):
            raise LookupError(f"the entry of clause {clause_id} has no container")
        end = self.block_rows if last is None else int(last)
        # Plain integers: the loop would be compiled again for any other type.
        selection = (int(clause_id), int(first), end)
        return kernels.entry_rows(*self._addresses, self._entries, self._bytes, self.block_rows, *selection)

    def is_left_out(self, clause_id: int) -> bool:
        """Whether the clause has an entry without a container: its rows come from the index of the block."""
        entry = (self._addresses[0], self._addresses[2], self._entries, int(clause_id))
        return bool(self._entries and kernels.is_left_out(*entry))

    def count_of(self, clause_id: int) -> int:
        """The number of the clause's rows in the whole block."""
        return int(kernels.entry_count(self._addresses[0], self._addresses[1], self._entries, int(clause_id)))


class RunCells:
    """The cells of all blocks of a run, from one file, or from several if some were published later."""

    def __init__(self, files: Sequence[Sequence[pa.RecordBatch]], sizes: Sequence[int]) -> None:
        """Read files with a batch per block, the newest first; `sizes` are the rows of the blocks.

        A block's batches are loaded on first use.
        """
        self._files = files
        self._sizes = np.array(sizes, np.int64)
        self._starts = np.concatenate([[0], np.cumsum(self._sizes)])
        self._cells = np.zeros((len(files), len(sizes), ADDRESS_FIELDS), np.int64)
        self._unread: npt.NDArray[np.bool_] | None = np.ones(len(sizes), np.bool_)
        self._batches: dict[int, list[pa.RecordBatch]] = {}

    def rows_of(
        self, clause_id: int, first: int, last: int
    ) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.int64]] | None:
        """The clause's rows among the run's tuples from `first` to before `last`.

        They are numbered within their block; the second array has the start of each block's rows. None if an entry has
        no container, so that the rows must come from the index. Raises DamagedFile.
        """
        if self._unread is not None:
            self._read(first, last)
        try:
            rows, starts = kernels.run_rows(self._cells, self._sizes, int(clause_id), int(first), int(last))
        except ValueError as error:
            # They were verified, so the file was changed while it was mapped.
            raise DamagedFile("cells are damaged", detail=str(error)) from error
        return None if starts[0] < 0 else (rows, starts)

    def _read(self, first: int, last: int) -> None:
        """Load the cells of the blocks that overlap an interval; threads may do so at the same time."""
        unread = self._unread
        if unread is None:
            return
        needed = unread & (self._starts[:-1] < last) & (self._starts[1:] > first)
        for block in np.flatnonzero(needed).tolist():
            batches = self._batches.setdefault(block, [file[block] for file in self._files])
            for number, batch in enumerate(batches):
                self._cells[number, block] = CellReader(batch, int(self._sizes[block])).addresses
            unread[block] = False
        if not unread.any():
            self._unread = None
