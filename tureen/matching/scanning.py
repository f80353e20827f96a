"""One clause over one block, compiled: candidates from the smallest factor, or a scan of the ranks."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from tureen.matching.bitmaps import sort_rows
from tureen.matching.kernels import Ranges, in_factor, keep_factor, list_factor
from tureen.stems.kernels import RANK, compiled, cut_ranks, pointer

_SCAN_SHARE = 4


@compiled
def _scan(
    table: np.ndarray, ranges: Ranges, counts: np.ndarray, block_rows: int, first: int, last: int
) -> npt.NDArray[np.uint16]:
    """The rows in [first, last) that all factors let through, by going over their ranks in row order."""
    mask = np.ones(last - first, np.uint8)
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
            for i in range(mask.size):
                mask[i] &= np.uint8(np.uint16(rank[i] - low) <= span)
        else:
            for i in range(mask.size):
                if mask[i]:
                    mask[i] = in_factor(ranges, factor, np.int64(rank[i]))
    rows = np.empty(mask.size + 1, np.uint16)
    count = 0
    for i in range(mask.size):
        rows[count] = first + i
        count += np.int64(mask[i])
    return rows[:count].copy()


@compiled
def select_rows(
    table: np.ndarray,
    cut_start: np.ndarray,
    high: np.ndarray,
    low: np.ndarray,
    text_start: np.ndarray,
    text: np.ndarray,
    factor_column: np.ndarray,
    factor_start: np.ndarray,
    range_low: np.ndarray,
    range_high: np.ndarray,
    block_rows: int,
    first: int,
    last: int,
) -> npt.NDArray[np.uint16]:
    """The rows in [first, last) that satisfy a clause of range factors, ascending."""
    ranks = np.empty(high.size, np.int32)
    cut_ranks(table, cut_start, high, low, text_start, text, ranks)
    ranges = Ranges(factor_column, factor_start, range_low, range_high, ranks)
    counts = np.empty(factor_column.size, np.int32)
    access = -1
    least = np.int64(last - first)
    if least <= 0:
        return np.empty(0, np.uint16)
    for factor in range(factor_column.size):
        total = np.int32(0)
        for i in range(factor_start[factor], factor_start[factor + 1]):
            total += max(np.int32(0), ranks[range_high[i]] - ranks[range_low[i]])
        if total == 0:
            return np.empty(0, np.uint16)
        counts[factor] = total
        if total * _SCAN_SHARE < least or (access >= 0 and total < counts[access]):
            access = factor
            least = np.int64(total) * _SCAN_SHARE
    if access < 0:
        return _scan(table, ranges, counts, block_rows, first, last)
    rows = np.empty(counts[access], np.uint16)
    count = list_factor(table, ranges, access, rows)
    if first > 0 or last < block_rows:
        left = 0
        for i in range(count):
            rows[left] = rows[i]
            left += np.int64((rows[i] >= first) & (rows[i] < last))
        count = left
    for factor in range(factor_column.size):
        if factor != access:
            count = keep_factor(table, ranges, factor, rows, count)
    marks = np.zeros((block_rows + 63) >> 6 if count > 24 else 0, np.uint64)
    sort_rows(rows, count, marks)
    return rows[:count].copy()
