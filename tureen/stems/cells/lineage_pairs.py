"""A cell as pairs of a row and a clause: CACQ's lineage, for row-by-row processing."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.stems.cells.bitmaps import has_bit, list_limit
from tureen.stems.cells.cell import CellReader
from tureen.stems.sort_kernels import Int, compiled, pointer


def pairs_of(batch: pa.RecordBatch, block_rows: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The rows of a cell and the ids of the clauses they satisfy, ordered by row and then by id."""
    reader = CellReader(batch, block_rows)
    clause_at, rows_at, offset_at, data_at, entries, _ = reader.addresses
    if not entries:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    rows, ids = unfold(clause_at, rows_at, offset_at, data_at, entries, block_rows)
    # Entries ascend by id, so a stable sort by row keeps ids in order.
    order = np.argsort(rows, kind="stable")
    return rows[order], ids[order]


@compiled
def unfold(
    clause_at: Int, rows_at: Int, offset_at: Int, data_at: Int, entries: Int, block_rows: Int
) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of a cell, entry by entry."""
    clauses = numba.carray(pointer(clause_at), entries, np.int64)
    counts = numba.carray(pointer(rows_at), entries, np.int32)
    offsets = numba.carray(pointer(offset_at), entries, np.int64)
    total = np.int64(0)
    for entry in range(entries):
        total += counts[entry]
    rows, ids = np.empty(total, np.int64), np.empty(total, np.int64)
    filled = np.int64(0)
    for entry in range(entries):
        count, container_at = np.int64(counts[entry]), data_at + offsets[entry]
        ids[filled : filled + count] = clauses[entry]
        if count <= list_limit(block_rows):
            listed = numba.carray(pointer(container_at), count, np.uint16)
            for i in range(count):
                rows[filled + i] = listed[i]
            filled += count
        else:
            words = numba.carray(pointer(container_at), (block_rows + 63) >> 6, np.uint64)
            for row in range(block_rows):
                if has_bit(words, row):
                    rows[filled] = row
                    filled += 1
    return rows, ids
