"""Compiled loops for one clause over one block: candidates from the smallest factor, or a scan of the ranks."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from tureen.matching.clause_kernels import Ranges, count_factor, filter_by_factor, in_factor, list_factor
from tureen.queries.arrays import Arrays
from tureen.stems.cells.bitmaps import SLACK, sort_rows
from tureen.stems.cells.decoding import list_mask
from tureen.stems.index import address_of
from tureen.stems.sort_kernels import FIELDS, RANK, Int, compiled, cut_ranks, pointer

_SCAN_SHARE = 16
"""A scan costs less than candidates if the smallest factor has more than 1 in _SCAN_SHARE rows."""


def program_of(arrays: Arrays) -> npt.NDArray[np.int64]:
    """The addresses and sizes of a query run's arrays, which `select_rows` reads instead of arrays.

    Passing ten arrays would cost several times the work on a block; two addresses cost next to nothing. The owner of
    the program must keep the arrays alive.
    """
    parts = (
        arrays.cut_start,
        arrays.high,
        arrays.low,
        arrays.text_start,
        arrays.text,
        arrays.factor_column,
        arrays.factor_start,
        arrays.range_low,
        arrays.range_high,
    )
    return np.array([number for part in parts for number in (address_of(part), part.size)], np.int64)


@compiled
def _scan(table: np.ndarray, ranges: Ranges, counts: np.ndarray, block_rows: Int, first: Int, last: Int) -> np.ndarray:
    """The rows in [first, last) that pass all factors, by scanning their ranks in row order."""
    size = last - first
    mask = np.zeros((size + 7) & ~7, np.uint8)
    mask[:size] = 1
    for factor in range(ranges.column.size):
        if counts[factor] == block_rows:
            continue
        column = ranges.column[factor]
        rank = numba.carray(pointer(table[column, RANK]), block_rows, np.uint16)[first:last]
        begin = ranges.start[factor]
        if ranges.start[factor + 1] - begin == 1:
            low = np.uint16(ranges.ranks[ranges.low[begin]])
            # The factor is not empty, so its last rank is at least its first.
            span = np.uint16(ranges.ranks[ranges.high[begin]] - 1 - np.int32(low))
            for i in range(size):
                mask[i] &= np.uint8(np.uint16(rank[i] - low) <= span)
        else:
            for i in range(size):
                if mask[i]:
                    mask[i] = in_factor(ranges, factor, np.int64(rank[i]))
    return list_mask(mask, first)


@compiled
def _ints(program: np.ndarray, part: Int) -> np.ndarray:
    array: np.ndarray = numba.carray(pointer(program[2 * part]), program[2 * part + 1], np.int32)
    return array


@compiled
def select_rows(table_at: Int, program_at: Int, block_rows: Int, first: Int, last: Int) -> np.ndarray:
    """The rows in [first, last) that satisfy a program's range factors, ascending."""
    first, last = max(first, 0), min(last, block_rows)
    if first >= last:
        return np.empty(0, np.uint16)
    program = numba.carray(pointer(program_at), 18, np.int64)
    cut_start = _ints(program, 0)
    high = numba.carray(pointer(program[2]), program[3], np.int64)
    low = numba.carray(pointer(program[4]), program[5], np.uint64)
    text_start = numba.carray(pointer(program[6]), program[7], np.int64)
    text = numba.carray(pointer(program[8]), program[9], np.uint8)
    table = numba.carray(pointer(table_at), (cut_start.size - 1, FIELDS), np.int64)
    ranks = np.empty(high.size, np.int32)
    cut_ranks(table, cut_start, high, low, text_start, text, ranks)
    ranges = Ranges(_ints(program, 5), _ints(program, 6), _ints(program, 7), _ints(program, 8), ranks)
    counts = np.empty(ranges.column.size, np.int32)
    access = 0
    for factor in range(counts.size):
        counts[factor] = count_factor(ranges, factor)
        if counts[factor] == 0:
            return np.empty(0, np.uint16)
        if counts[factor] < counts[access]:
            access = factor
    if counts.size == 0 or np.int64(counts[access]) * _SCAN_SHARE > last - first:
        return _scan(table, ranges, counts, block_rows, first, last)
    rows = np.empty(counts[access] + SLACK, np.uint16)
    count = list_factor(table, ranges, access, rows)
    if first > 0 or last < block_rows:
        remaining = np.int64(0)
        for i in range(count):
            rows[remaining] = rows[i]
            remaining += np.int64((rows[i] >= first) & (rows[i] < last))
        count = remaining
    for factor in range(counts.size):
        if factor != access:
            count = filter_by_factor(table, ranges, factor, rows, count)
    sort_rows(rows, count, np.zeros((block_rows + 63) >> 6, np.uint64))
    return rows[:count].copy()


@compiled
def select_rows_of_blocks(blocks: np.ndarray, program_at: Int, first: Int, last: Int, starts: np.ndarray) -> np.ndarray:
    """`select_rows` for the blocks of a run at once, because calling it takes longer than the work on a block.

    A line of `blocks` has the address of a block's table, the number of tuples before it, and that of its tuples.
    `starts` receives the number of selected rows before each block, and at the end their total.
    """
    parts = [np.empty(0, np.uint16)]
    starts[0] = 0
    for number in range(blocks.shape[0]):
        table_at, before, block_rows = blocks[number]
        rows = parts[0]
        if first < before + block_rows and last > before:
            rows = select_rows(table_at, program_at, block_rows, first - before, last - before)
        starts[number + 1] = starts[number] + rows.size
        parts.append(rows)
    selected = np.empty(starts[-1], np.uint16)
    for number in range(blocks.shape[0]):
        selected[starts[number] : starts[number + 1]] = parts[number + 1]
    return selected
