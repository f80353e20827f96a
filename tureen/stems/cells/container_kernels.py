"""Compiled loops that read containers: one call finds a clause's entry and lists its rows."""

from __future__ import annotations

import numba
import numpy as np

from tureen.stems.cells.bitmaps import list_limit
from tureen.stems.cells.decoding import list_bytes
from tureen.stems.sort_kernels import Int, compiled, pointer


@compiled
def _find(clauses: np.ndarray, clause: Int) -> Int:
    begin, end = 0, clauses.size
    while begin < end:
        middle = (begin + end) >> 1
        if clauses[middle] < clause:
            begin = middle + 1
        else:
            end = middle
    return begin if begin < clauses.size and clauses[begin] == clause else -1


@compiled
def _first_not_below(rows: np.ndarray, bound: Int) -> Int:
    begin, end = 0, rows.size
    while begin < end:
        middle = (begin + end) >> 1
        if rows[middle] < bound:
            begin = middle + 1
        else:
            end = middle
    return begin


@compiled
def entry_rows(
    clause_at: Int,
    rows_at: Int,
    offset_at: Int,
    data_at: Int,
    entries: Int,
    data_bytes: Int,
    block_rows: Int,
    clause: Int,
    first: Int,
    last: Int,
) -> np.ndarray:
    """The rows in [first, last) of a clause's entry, ascending.

    Raises ValueError, as `list_bytes` does, if an entry points outside of its cell or its block.
    """
    first, last = max(first, 0), min(last, block_rows)
    entry = _find(numba.carray(pointer(clause_at), entries, np.int64), clause)
    if entry < 0 or first >= last:
        return np.empty(0, np.uint16)
    count = np.int64(numba.carray(pointer(rows_at), entries, np.int32)[entry])
    offset = numba.carray(pointer(offset_at), entries, np.int64)[entry]
    dense = count > list_limit(block_rows)
    size = (block_rows + 7) >> 3 if dense else 2 * count
    if count < 0 or count > block_rows or offset < 0 or offset + size > data_bytes:
        raise ValueError("an entry of a cell points outside of it")
    container_at = data_at + offset
    if dense:
        words = numba.carray(pointer(container_at), (block_rows + 7) >> 3, np.uint8)
        return list_bytes(words, first, last, min(count, last - first))
    listed: np.ndarray = numba.carray(pointer(container_at), count, np.uint16)
    begin = _first_not_below(listed, first) if first > 0 else 0
    end = _first_not_below(listed, last) if last < block_rows else count
    rows = listed[begin:end].copy()
    highest = np.int64(0)
    for i in range(rows.size):
        highest = max(highest, np.int64(rows[i]))
    if highest >= block_rows:
        raise ValueError("an entry of a cell points outside of its block")
    return rows


@compiled
def entry_count(clause_at: Int, rows_at: Int, entries: Int, clause: Int) -> Int:
    """The number of rows of a clause's entry."""
    entry = _find(numba.carray(pointer(clause_at), entries, np.int64), clause)
    if entry < 0:
        return 0
    return np.int64(numba.carray(pointer(rows_at), entries, np.int32)[entry])


@compiled
def is_left_out(clause_at: Int, offset_at: Int, entries: Int, clause: Int) -> bool:
    """Whether a clause has an entry without a container."""
    entry = _find(numba.carray(pointer(clause_at), entries, np.int64), clause)
    offsets = numba.carray(pointer(offset_at), entries + 1, np.int64)
    return bool(entry >= 0 and offsets[entry] == offsets[entry + 1])


@compiled
def run_rows(cells: np.ndarray, sizes: np.ndarray, clause: Int, first: Int, last: Int) -> tuple[np.ndarray, np.ndarray]:
    """A clause's rows in a run's blocks: the rows within each block, block after block, and the start of each block's.

    `cells[file, block]` has the fields of `CellReader.addresses`, the newest file first; `first` and `last` count the
    tuples of the run. The first start is -1 if an entry has no container, so that the rows must come from the index.
    """
    blocks = sizes.size
    starts = np.zeros(blocks + 1, np.int64)
    total, begin = np.int64(0), np.int64(0)
    for block in range(blocks):
        if first < begin + sizes[block] and last > begin:
            file, count = _find_file(cells, block, clause)
            total += count
            if count and is_left_out(cells[file, block, 0], cells[file, block, 2], cells[file, block, 4], clause):
                starts[0] = -1
                return np.empty(0, np.uint16), starts
        begin += sizes[block]
    all_rows = np.empty(total, np.uint16)
    filled, begin = np.int64(0), np.int64(0)
    for block in range(blocks):
        size = sizes[block]
        if first < begin + size and last > begin:
            file, count = _find_file(cells, block, clause)
            if count:
                cell = cells[file, block]
                rows = entry_rows(
                    cell[0], cell[1], cell[2], cell[3], cell[4], cell[5], size, clause, first - begin, last - begin
                )
                all_rows[filled : filled + rows.size] = rows
                filled += rows.size
        begin += size
        starts[block + 1] = filled
    return all_rows[:filled], starts


@compiled
def _find_file(cells: np.ndarray, block: Int, clause: Int) -> tuple[Int, Int]:
    """The first file with an entry of the clause in a block, and the entry's number of rows."""
    for file in range(cells.shape[0]):
        cell = cells[file, block]
        count = entry_count(cell[0], cell[1], cell[4], clause)
        if count:
            return np.int64(file), np.int64(count)
    return np.int64(0), np.int64(0)
