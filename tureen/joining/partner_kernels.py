"""Compiled loops of joins: intervals of sorted partners, and the pairs within them."""

from __future__ import annotations

import numpy as np

from tureen.stems.key_kernels import bucket_of, hash_row
from tureen.stems.sort_kernels import compiled


@compiled
def narrow_range(
    sorted_keys: np.ndarray,
    bounds: np.ndarray,
    valid: np.ndarray,
    firsts: np.ndarray,
    lasts: np.ndarray,
    is_lower: bool,
    is_open: bool,
) -> None:
    """Narrow the interval of each row to the sorted keys on one side of its bound."""
    for row in range(bounds.size):
        low, high = firsts[row], lasts[row]
        if low >= high:
            continue
        if not valid[row]:
            lasts[row] = low
            continue
        bound = bounds[row]
        # The first index with a key at or after the bound; after it, if equal keys belong to the lower part.
        after_equal = is_open == is_lower
        while low < high:
            middle = (low + high) // 2
            key = sorted_keys[middle]
            if key < bound or (after_equal and key == bound):
                low = middle + 1
            else:
                high = middle
        if is_lower:
            firsts[row] = low
        else:
            lasts[row] = low


@compiled
def _are_equal(left: np.ndarray, left_row: int, right: np.ndarray, right_row: int) -> bool:
    """Whether two rows with the same first key have the same others."""
    same = True
    for line in range(1, left.shape[0]):
        same = same and left[line, left_row] == right[line, right_row]
    return same


@compiled
def _number_groups(
    keys: np.ndarray,
    valid: np.ndarray,
    bits: int,
    stored: np.ndarray,
    groups: np.ndarray,
    heads: np.ndarray,
    of_rows: np.ndarray,
) -> int:
    """Number the different keys of valid rows in a hash table of 2**bits slots, which is empty; returns how many.

    A slot has the first key of its group, with which most comparisons end, and the number of the group or -1. `heads`
    receives the first row of each group, `of_rows` the group of each row.
    """
    count = 0
    for row in range(valid.size):
        of_rows[row] = -1
        if valid[row]:
            slot = bucket_of(hash_row(keys, row), bits)
            group = groups[slot]
            while group >= 0:
                if stored[slot] == keys[0, row] and _are_equal(keys, row, keys, heads[group]):
                    break
                slot = (slot + 1) & (groups.size - 1)
                group = groups[slot]
            if group < 0:
                group = count
                stored[slot], groups[slot], heads[count] = keys[0, row], group, row
                count += 1
            of_rows[row] = group
    return count


@compiled
def mark_partners(
    keys: np.ndarray, valid: np.ndarray, others: np.ndarray, others_valid: np.ndarray, marked: np.ndarray
) -> int:
    """Mark the valid rows whose keys may occur in valid rows of the other side; returns how many there are.

    The keys of the other side are marked in a bitmap with eight bits for each, which is much smaller than a hash table
    of the keys.
    """
    bits = 6
    while (1 << bits) < 8 * others_valid.size:
        bits += 1
    words = np.zeros(1 << (bits - 6), np.uint64)
    for row in range(others_valid.size):
        bucket = np.uint64(bucket_of(hash_row(others, row), bits))
        words[bucket >> np.uint64(6)] |= np.uint64(others_valid[row]) << (bucket & np.uint64(63))
    count = 0
    for row in range(valid.size):
        bucket = np.uint64(bucket_of(hash_row(keys, row), bits))
        is_possible = (words[bucket >> np.uint64(6)] >> (bucket & np.uint64(63))) & np.uint64(valid[row])
        marked[row] = is_possible
        count += marked[row]
    return count


@compiled
def group_partners(
    right: np.ndarray,
    right_valid: np.ndarray,
    left: np.ndarray,
    left_valid: np.ndarray,
    sorted_rows: np.ndarray,
    firsts: np.ndarray,
    lasts: np.ndarray,
) -> int:
    """Group the valid right rows by their keys, and find the group of each left row; returns the number of pairs.

    `sorted_rows` receives the right rows, group by group, in their order within each; `firsts` and `lasts` the interval
    of each left row in them. Keys have a line per column.
    """
    bits = 1
    while (1 << bits) < 2 * sorted_rows.size:
        bits += 1
    stored, groups = np.empty(1 << bits, np.int64), np.full(1 << bits, -1, np.int32)
    heads, of_rows = np.empty(sorted_rows.size, np.int32), np.empty(right_valid.size, np.int32)
    count = _number_groups(right, right_valid, bits, stored, groups, heads, of_rows)
    # The end of a group starts as that of the group before, and moves with each row.
    ends = np.zeros(count + 1, np.int64)
    for row in range(right_valid.size):
        ends[of_rows[row] + 1] += of_rows[row] >= 0
    for group in range(count):
        ends[group + 1] += ends[group]
    for row in range(right_valid.size):
        if of_rows[row] >= 0:
            sorted_rows[ends[of_rows[row]]] = row
            ends[of_rows[row]] += 1
    pairs = 0
    for row in range(left_valid.size):
        group = -1
        if left_valid[row]:
            slot = bucket_of(hash_row(left, row), bits)
            group = groups[slot]
            while group >= 0:
                if stored[slot] == left[0, row] and _are_equal(left, row, right, heads[group]):
                    break
                slot = (slot + 1) & (groups.size - 1)
                group = groups[slot]
        firsts[row] = ends[group - 1] if group > 0 else 0
        lasts[row] = ends[group] if group >= 0 else 0
        pairs += lasts[row] - firsts[row]
    return pairs


@compiled
def fill_pairs(
    firsts: np.ndarray,
    lasts: np.ndarray,
    sorted_rows: np.ndarray,
    begin: int,
    end: int,
    left: np.ndarray,
    right: np.ndarray,
) -> None:
    """Write each pair of a row from `begin` to before `end` and a row of its interval."""
    at = 0
    for row in range(begin, end):
        for index in range(firsts[row], lasts[row]):
            left[at] = row
            right[at] = sorted_rows[index]
            at += 1
