"""Compiled loops of key indexes: rows with equal keys form groups, and a hash table finds the group of a key.

Keys are an array of one line per compared column. A table has a power of two slots; a slot holds the code of a group
and its number plus one, side by side, so that looking up a key reads one place in memory. The code is the key or, of
several columns, a hash of their keys, which are then compared with those of the group's first row.
"""

from __future__ import annotations

import numpy as np

from tureen.stems.sort_kernels import compiled

AT_ONCE = 256
"""The number of keys whose slots are read before they are compared."""


def empty_table(size: int) -> np.ndarray:
    """A table for at most `size` groups, at most two thirds full."""
    return np.zeros((slots_for(size), 2), np.int64)


def slots_for(size: int) -> int:
    """The number of slots of such a table."""
    return 1 << max(size * 3 // 2, 1).bit_length()


@compiled
def _code(keys: np.ndarray, row: int) -> int:
    """The key of a row or, of several columns, a hash of their keys."""
    if keys.shape[0] == 1:
        only: int = keys[0, row]
        return only
    mixed = np.uint64(0)
    for line in range(keys.shape[0]):
        mixed = (mixed ^ np.uint64(keys[line, row])) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(32)
    code: int = np.int64(mixed & np.uint64(0x7FFFFFFFFFFFFFFF))  # type: ignore[assignment]
    return code


@compiled
def _slot(code: int, mask: int) -> int:
    """The first slot of a code."""
    mixed = np.uint64(code) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(32)
    slot: int = np.int64(mixed & np.uint64(mask))  # type: ignore[assignment]
    return slot


@compiled
def group_rows(keys: np.ndarray, valid: np.ndarray, table: np.ndarray, firsts: np.ndarray, groups: np.ndarray) -> int:
    """Number the groups of rows with equal keys; returns how many there are.

    `groups` receives the group of each row, or -1 where a key is NULL; `firsts` the first row of each group.
    """
    mask = table.shape[0] - 1
    count = 0
    for row in range(keys.shape[1]):
        if not valid[row]:
            groups[row] = -1
            continue
        code = _code(keys, row)
        slot = _slot(code, mask)
        while True:
            entry = table[slot, 1]
            if entry == 0:
                firsts[count] = row
                groups[row] = count
                count += 1
                table[slot, 0] = code
                table[slot, 1] = count
                break
            if table[slot, 0] == code:
                same = True
                if keys.shape[0] > 1:
                    first = firsts[entry - 1]
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
    """The group of each row of the other side, or -1; `stored` are the keys that the groups were made of.

    The first slots of many rows are read before any is compared: a large table is not in the processor's cache, and
    reads that do not depend on each other wait for memory together.
    """
    mask = table.shape[0] - 1
    codes, slots = np.empty(AT_ONCE, np.int64), np.empty(AT_ONCE, np.int64)
    heads, entries = np.empty(AT_ONCE, np.int64), np.empty(AT_ONCE, np.int64)
    for begin in range(0, keys.shape[1], AT_ONCE):
        size = min(AT_ONCE, keys.shape[1] - begin)
        for number in range(size):
            code = _code(keys, begin + number)
            slot = _slot(code, mask)
            codes[number], slots[number] = code, slot
            heads[number], entries[number] = table[slot, 0], table[slot, 1]
        for number in range(size):
            row, code, slot = begin + number, codes[number], slots[number]
            head, entry = heads[number], entries[number]
            groups[row] = -1
            while entry != 0 and valid[row]:
                if head == code:
                    same = True
                    if keys.shape[0] > 1:
                        first = firsts[entry - 1]
                        for line in range(keys.shape[0]):
                            if stored[line, first] != keys[line, row]:
                                same = False
                                break
                    if same:
                        groups[row] = entry - 1
                        break
                slot = (slot + 1) & mask
                head, entry = table[slot, 0], table[slot, 1]


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
def hash_texts(bounds: np.ndarray, data: np.ndarray, hashes: np.ndarray) -> np.ndarray:
    """A hash of each text: the bytes from `bounds[n]` to `bounds[n + 1]`."""
    for row in range(hashes.size):
        mixed = np.uint64(0xCBF29CE484222325)
        for index in range(bounds[row], bounds[row + 1]):
            mixed = (mixed ^ np.uint64(data[index])) * np.uint64(0x100000001B3)
        mixed ^= mixed >> np.uint64(29)
        hashes[row] = np.int64(mixed & np.uint64(0x7FFFFFFFFFFFFFFF))
    return hashes


@compiled
def hash_decimals(words: np.ndarray, factor: int, hashes: np.ndarray) -> np.ndarray:
    """The hash of each number `unscaled × factor`, modulo 2**61 - 1.

    `words` has for each row the low and the high 64 bits of the unscaled number. With the inverse of a power of ten as
    the factor, numbers that are equal at different scales have the same hash.
    """
    prime = np.uint64((1 << 61) - 1)
    half, quarter = np.uint64((1 << 31) - 1), np.uint64((1 << 30) - 1)
    factor_low, factor_high = np.uint64(factor) & half, np.uint64(factor) >> np.uint64(31)
    for row in range(hashes.size):
        # Modulo the prime, 2**64 is 8.
        high = np.uint64(words[row, 1] & 0x7FFFFFFFFFFFFFFF) % prime
        low = np.uint64(words[row, 0]) % prime
        value = (high * np.uint64(8) % prime + low) % prime
        if words[row, 1] < 0:
            # The sign bit counts -2**127, and 2**127 = 2**5.
            value = (value + prime - np.uint64(32)) % prime
        value_low, value_high = value & half, value >> np.uint64(31)
        middle = value_low * factor_high + value_high * factor_low
        product = value_high * factor_high * np.uint64(2) + (middle >> np.uint64(30))
        product += ((middle & quarter) << np.uint64(31)) + value_low * factor_low
        hashes[row] = np.int64(product % prime)
    return hashes
