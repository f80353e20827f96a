"""Bitmaps of rows, compiled: one bit per row of a block, in 64-bit words, with zeros past the last row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numba
import numpy as np
from numba.core import types
from numba.extending import intrinsic

from tureen.stems.sort_kernels import Int, compiled, pointer

LIST_SHARE = 32
"""A clause that holds for at most 1 in LIST_SHARE rows is stored as a list of row ids, any other as a bitmap."""

SLACK = 4
"""The number of elements past its last row id that may be overwritten when a list is written."""

_SORTED_BY_INSERTION = 24
_ONE = np.uint64(1)
_SIXTY_THREE = np.uint64(63)


def _bit_count(_context: Any, _word: Any) -> Any:
    def code(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), code


def _trailing_zeros(_context: Any, _word: Any) -> Any:
    def code(target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], target.get_constant(types.boolean, False))

    return types.uint64(types.uint64), code


bit_count = cast(Callable[[Any], Any], intrinsic(_bit_count))
"""The number of ones in a word (in compiled code only)."""
trailing_zeros = cast(Callable[[Any], Any], intrinsic(_trailing_zeros))
"""The position of the lowest one of a word, 64 if there is none (in compiled code only)."""


@compiled
def list_limit(block_rows: Int) -> Int:
    """The maximum number of rows that are stored as a list; this rule decides how a container is written and read."""
    return max(block_rows // LIST_SHARE, 4)


@compiled
def set_bit(words: np.ndarray, row: Int) -> None:
    """Add a row to a bitmap."""
    words[row >> 6] |= _ONE << (np.uint64(row) & _SIXTY_THREE)


@compiled
def clear_bit(words: np.ndarray, row: Int) -> None:
    """Remove a row from a bitmap."""
    words[row >> 6] &= ~(_ONE << (np.uint64(row) & _SIXTY_THREE))


@compiled
def count_bits(words: np.ndarray) -> Int:
    """The number of rows in a bitmap."""
    total = np.uint64(0)
    for i in range(words.size):
        total += bit_count(words[i])
    return np.int64(total)


@compiled
def list_bits(words: np.ndarray, rows: np.ndarray) -> Int:
    """Write the rows of a bitmap in ascending order, with room for SLACK more; returns their number.

    At least four rows are written for every word, and those of the next word overwrite any excess: words with few rows
    then cost no mispredicted branch.
    """
    count = np.int64(0)
    for i in range(words.size):
        word = words[i]
        base = np.uint64(i << 6)
        ones = np.int64(bit_count(word))
        rows[count] = base + trailing_zeros(word)
        word &= word - _ONE
        rows[count + 1] = base + trailing_zeros(word)
        word &= word - _ONE
        rows[count + 2] = base + trailing_zeros(word)
        word &= word - _ONE
        rows[count + 3] = base + trailing_zeros(word)
        for j in range(count + 4, count + ones):
            word &= word - _ONE
            rows[j] = base + trailing_zeros(word)
        count += ones
    return count


@compiled
def has_bit(words: np.ndarray, row: Int) -> Int:
    """Whether a row is in a bitmap."""
    return bool((words[row >> 6] >> (np.uint64(row) & _SIXTY_THREE)) & _ONE)


@compiled
def fill_bits(words: np.ndarray, block_rows: Int) -> None:
    """Add every row of a block to a bitmap."""
    words[:] = ~np.uint64(0)
    if block_rows & 63:
        words[words.size - 1] = (_ONE << np.uint64(block_rows & 63)) - _ONE


@compiled
def pack_mask(mask_at: Int, size: Int, words: np.ndarray) -> Int:
    """Convert the mask at an address, one byte per row, to a bitmap; returns the number of rows in it."""
    mask = numba.carray(pointer(mask_at), size, np.uint8)
    words[:] = 0
    for row in range(mask.size):
        words[row >> 6] |= np.uint64(mask[row]) << (np.uint64(row) & _SIXTY_THREE)
    return count_bits(words)


@compiled
def sort_rows(rows: np.ndarray, count: Int, words: np.ndarray) -> None:
    """Sort distinct row ids, with room for SLACK more; `words` is a bitmap of zeros before and after the call."""
    ascending = True
    for i in range(1, count):
        ascending &= rows[i - 1] < rows[i]
    if ascending:
        # This is the case for an equality: the index keeps equal values in row order.
        return
    if count <= _SORTED_BY_INSERTION:
        for i in range(1, count):
            row = rows[i]
            j = i
            while j > 0 and rows[j - 1] > row:
                rows[j] = rows[j - 1]
                j -= 1
            rows[j] = row
        return
    for i in range(count):
        set_bit(words, np.int64(rows[i]))
    list_bits(words, rows)
    words[:] = 0
