"""Compiled loops that find buckets: which keys of the queries occur in the rows of a block.

Both a block's rows and the buckets' keys are sorted by the access column, so one galloping merge finds which rows reach
which bucket. It needs no hash table, and treats texts like numbers.
"""

from __future__ import annotations

import numba
import numpy as np

from tureen.stems.sort_kernels import (
    DATA,
    KIND,
    OFFSETS,
    PERM,
    TEXT,
    VALID,
    WIDE,
    Int,
    KeyAddresses,
    below_cut,
    compiled,
    cut_rank,
    key_at,
    pointer,
)


@compiled
def find_buckets(column: np.ndarray, keys: KeyAddresses, cuts: np.ndarray, hits: np.ndarray) -> Int:
    """Find the buckets that the rows of a block reach, with the ranks of these rows; returns their number.

    `cuts` are the cut points of one column's buckets. A row of `hits` becomes the number of a bucket among these, and
    the first and the last (exclusive) rank of its rows. Both sides gallop, so the cost is that of the shorter side.
    """
    if column[KIND] == TEXT or column[KIND] == WIDE:
        return _find_any(column, keys, cuts, hits)
    return _find_numbers(column, keys, cuts, hits)


@compiled
def _find_numbers(column: np.ndarray, keys: KeyAddresses, cuts: np.ndarray, hits: np.ndarray) -> Int:
    """Find buckets by 64-bit integer keys."""
    kind, data, valid = column[KIND], column[DATA], column[VALID]
    perm = numba.carray(pointer(column[PERM]), max(valid, 1), np.uint16)
    high = numba.carray(pointer(keys.high), cuts[cuts.size - 1] + 2, np.int64)
    values = np.empty(valid, np.int64)
    for i in range(valid):
        values[i] = key_at(kind, data, np.int64(perm[i]))
    rank, bucket, hit_count = np.int64(0), np.int64(0), np.int64(0)
    while rank < valid and bucket < cuts.size:
        value = values[rank]
        if high[cuts[bucket] + 1] <= value:
            first, step = bucket + 1, np.int64(1)
            last = first
            while last < cuts.size and high[cuts[last] + 1] <= value:
                first = last + 1
                last = min(last + step, np.int64(cuts.size))
                step *= 2
            while first < last:
                middle = (first + last) >> 1
                if high[cuts[middle] + 1] <= value:
                    first = middle + 1
                else:
                    last = middle
            bucket = first
            continue
        lower, upper = high[cuts[bucket]], high[cuts[bucket] + 1]
        while rank < valid and values[rank] < lower:
            rank += 1
        end = rank
        while end < valid and values[end] < upper:
            end += 1
        if end > rank:
            hits[hit_count, 0], hits[hit_count, 1], hits[hit_count, 2] = bucket, rank, end
            hit_count += 1
        rank = end
        bucket += 1
    return hit_count


@compiled
def _find_any(column: np.ndarray, keys: KeyAddresses, cuts: np.ndarray, hits: np.ndarray) -> Int:
    """Find buckets by texts and wide DECIMALs."""
    kind, data, offsets, perm_at, valid = column[KIND], column[DATA], column[OFFSETS], column[PERM], column[VALID]
    perm = numba.carray(pointer(perm_at), max(valid, 1), np.uint16)
    rank: Int = np.int64(0)
    bucket, hit_count = np.int64(0), np.int64(0)
    while rank < valid and bucket < cuts.size:
        row = np.int64(perm[rank])
        if not below_cut(kind, data, offsets, row, np.int64(cuts[bucket]) + 1, keys):
            first, step = bucket + 1, np.int64(1)
            last = first
            while last < cuts.size and not below_cut(kind, data, offsets, row, np.int64(cuts[last]) + 1, keys):
                first = last + 1
                last = min(last + step, np.int64(cuts.size))
                step *= 2
            while first < last:
                middle = (first + last) >> 1
                if below_cut(kind, data, offsets, row, np.int64(cuts[middle]) + 1, keys):
                    last = middle
                else:
                    first = middle + 1
            bucket = first
            continue
        cut = np.int64(cuts[bucket])
        # This row is mostly the first that is not below the key, and the next is mostly beyond it.
        if below_cut(kind, data, offsets, row, cut, keys):
            rank = cut_rank(kind, data, offsets, perm_at, valid, rank, cut, keys)
        end = rank
        if rank < valid and below_cut(kind, data, offsets, np.int64(perm[rank]), cut + 1, keys):
            end = cut_rank(kind, data, offsets, perm_at, valid, rank + 1, cut + 1, keys)
            hits[hit_count, 0], hits[hit_count, 1], hits[hit_count, 2] = bucket, rank, end
            hit_count += 1
        rank = end
        bucket += 1
    return hit_count
