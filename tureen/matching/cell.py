"""Cells: which rows of a block satisfy which clauses, as an Arrow record batch.

Only clauses with a match have an entry: the clause's id, its number of rows, and a container. The container is
a list of uint16 row ids where the rows are few and a bitmap where they are many; which, follows from the two
numbers of rows alone (`list_limit`). Containers are padded to whole 64-bit words.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.matching import reading
from tureen.stems.index import numbers_of

CELL_SCHEMA = pa.schema([("clause", pa.int64()), ("rows", pa.int32()), ("ids", pa.large_binary())])
"""The columns of a cell's record batch."""


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
        """Look at a cell's batch (schema CELL_SCHEMA) of a block with that many rows."""
        self.block_rows = block_rows
        self._batch = batch
        clause, rows, ids = batch.columns
        self._entries = len(clause)
        self._places = (0, 0, 0, 0)
        if self._entries:
            self._places = (
                clause.buffers()[1].address + 8 * clause.offset,
                rows.buffers()[1].address + 4 * rows.offset,
                ids.buffers()[1].address + 8 * ids.offset,
                ids.buffers()[2].address,
            )

    @property
    def clauses(self) -> npt.NDArray[np.int64]:
        """The ids of the clauses that have an entry, ascending."""
        return numbers_of(self._batch.column(0), np.int64)

    def rows_of(self, clause_id: int, first: int = 0, last: int | None = None) -> npt.NDArray[np.uint16]:
        """The clause's rows in [first, last), ascending; none if it has no entry."""
        end = self.block_rows if last is None else int(last)
        # Plain integers: any other kind would have the loop compiled for it.
        wanted = (int(clause_id), int(first), end)
        return reading.entry_rows(*self._places, self._entries, self.block_rows, *wanted)

    def count_of(self, clause_id: int) -> int:
        """The number of the clause's rows in the whole block."""
        return int(reading.entry_count(self._places[0], self._places[1], self._entries, int(clause_id)))
