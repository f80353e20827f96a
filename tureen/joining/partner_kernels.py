"""Compiled loops of joins: rows with equal keys form groups, and a hash table finds the group of a key.

Keys are an array of one line per compared column. A table has a power of two slots; a slot holds the number of a group
plus one, and the group's keys are those of its first row.
"""

from __future__ import annotations

import numpy as np

from tureen.stems.sort_kernels import compiled


@compiled
def _slot(keys: np.ndarray, row: int, mask: int) -> int:
    """The first slot of a row's keys."""
    mixed = np.uint64(0)
    for line in range(keys.shape[0]):
        mixed = (mixed ^ np.uint64(keys[line, row])) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(32)
    slot: int = np.int64(mixed & np.uint64(mask))  # type: ignore[assignment]
    return slot


@compiled
def group_rows(keys: np.ndarray, valid: np.ndarray, table: np.ndarray, firsts: np.ndarray, groups: np.ndarray) -> int:
    """Number the groups of rows with equal keys; returns how many there are.

    `groups` receives the group of each row, or -1 where a key is NULL; `firsts` the first row of each group.
    """
    mask = table.size - 1
    count = 0
    for row in range(keys.shape[1]):
        if not valid[row]:
            groups[row] = -1
            continue
        slot = _slot(keys, row, mask)
        while True:
            entry = table[slot]
            if entry == 0:
                firsts[count] = row
                groups[row] = count
                count += 1
                table[slot] = count
                break
            first = firsts[entry - 1]
            same = True
            for line in range(keys.shape[0]):
                if keys[line, first] != keys[line, row]:
                    same = False
                    break
            if same:
                groups[row] = entry - 1
                break
            slot = (slot + 1) & mask
    return count


@compiled
def find_groups(
    keys: np.ndarray,
    valid: np.ndarray,
    table: np.ndarray,
    firsts: np.ndarray,
    stored: np.ndarray,
    groups: np.ndarray,
) -> None:
    """The group of each row of the other side, or -1; `stored` are the keys that the groups were made of."""
    mask = table.size - 1
    for row in range(keys.shape[1]):
        groups[row] = -1
        if not valid[row]:
            continue
        slot = _slot(keys, row, mask)
        while table[slot] != 0:
            first = firsts[table[slot] - 1]
            same = True
            for line in range(keys.shape[0]):
                if stored[line, first] != keys[line, row]:
                    same = False
                    break
            if same:
                groups[row] = table[slot] - 1
                break
            slot = (slot + 1) & mask


@compiled
def order_by_group(groups: np.ndarray, order: np.ndarray, starts: np.ndarray, sorted_rows: np.ndarray) -> None:
    """Sort rows by group, and within a group as in `order`; rows without a group are left out.

    `starts` receives the first index of each group in `sorted_rows`, and at the end their number.
    """
    for index in range(order.size):
        group = groups[order[index]]
        if group >= 0:
            starts[group + 1] += 1
    for group in range(starts.size - 1):
        starts[group + 1] += starts[group]
    filled = starts[:-1].copy()
    for index in range(order.size):
        group = groups[order[index]]
        if group >= 0:
            sorted_rows[filled[group]] = order[index]
            filled[group] += 1


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
def fill_pairs(
    firsts: np.ndarray, lasts: np.ndarray, begin: int, end: int, left: np.ndarray, right: np.ndarray
) -> None:
    """Write each pair of a row from `begin` to before `end` and an index of its interval."""
    at = 0
    for row in range(begin, end):
        for index in range(firsts[row], lasts[row]):
            left[at] = row
            right[at] = index
            at += 1
