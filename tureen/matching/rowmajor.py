"""Compiled loops for row-major matching: for each row its lineage, a bitmap of the clauses that it satisfies.

A clause that no row satisfies costs only its bit, so this is for blocks of few rows, where visiting each clause would
cost more than the rows do.
"""

from __future__ import annotations

import numba
import numpy as np

from tureen.matching.access_kernels import Staged
from tureen.stems.cells.bitmaps import has_bit, trailing_zeros
from tureen.stems.sort_kernels import (
    DATA,
    KIND,
    OFFSETS,
    RANK,
    ROWS,
    VALID,
    Int,
    KeyAddresses,
    below_cut,
    compiled,
    pointer,
)

_BATCH_WORDS = 64


@compiled
def _find_stretch(column: np.ndarray, row: Int, cuts: np.ndarray, keys: KeyAddresses) -> Int:
    """The number of the stretch between two of a column's cut points that a row is in; the last is that of NULL."""
    if numba.carray(pointer(column[RANK]), column[ROWS], np.uint16)[row] >= column[VALID]:
        return np.int64(cuts.size - 2)
    first, last = np.int64(0), np.int64(cuts.size - 2)
    while last - first > 1:
        middle = (first + last) >> 1
        if below_cut(column[KIND], column[DATA], column[OFFSETS], row, np.int64(cuts[middle]), keys):
            last = middle
        else:
            first = middle
    return first


@compiled
def find_slots(
    table: np.ndarray,
    cuts: np.ndarray,
    cut_start: np.ndarray,
    keys: KeyAddresses,
    first_slot: np.ndarray,
    slots: np.ndarray,
) -> None:
    """Find for each row and column the slot of the bitmap for the row's value."""
    for c in range(table.shape[0]):
        for row in range(slots.shape[0]):
            column_cuts = cuts[cut_start[c] : cut_start[c + 1]]
            slots[row, c] = first_slot[c] + _find_stretch(table[c], row, column_cuts, keys)


@compiled
def _lineages(
    words: np.ndarray,
    slots: np.ndarray,
    derived: np.ndarray,
    first_derived: Int,
    begin: Int,
    size: Int,
    alive: np.ndarray,
) -> None:
    """Compute `size` words of all rows' lineages, from word `begin` on: for each row an AND of bitmaps."""
    for row in range(slots.shape[0]):
        lineage = alive[row]
        for i in range(size):
            lineage[i] = ~np.uint64(0)
        for c in range(slots.shape[1]):
            bitmap = words[slots[row, c]]
            for i in range(size):
                lineage[i] &= bitmap[begin + i]
        for number in range(words.shape[0] - first_derived):
            if not has_bit(derived[number], row):
                bitmap = words[first_derived + number]
                for i in range(size):
                    lineage[i] &= bitmap[begin + i]


@compiled
def match_rows(
    words: np.ndarray,
    slots: np.ndarray,
    derived: np.ndarray,
    first_derived: Int,
    visited: np.ndarray,
    state: np.ndarray,
    staged: Staged,
) -> bool:
    """Stage the clauses that any row satisfies, in ascending order, until all are done or the buffers are full.

    `state` has the next word of the lineages (a multiple of _BATCH_WORDS), the numbers of matches and of ids so far.
    """
    rows, width = slots.shape[0], words.shape[1]
    alive = np.empty((rows, _BATCH_WORDS), np.uint64)
    word, matches, used = state[0], state[1], state[2]
    while word < width:
        size = min(_BATCH_WORDS, width - word)
        if matches + 64 * size > staged.marks.size or used + 64 * size * (rows + 1) > staged.ids.size:
            state[0], state[1], state[2] = word, matches, used
            return False
        _lineages(words, slots, derived, first_derived, word, size, alive)
        for w in range(size):
            matched = np.uint64(0)
            for row in range(rows):
                matched |= alive[row, w]
            if word + w == width - 1 and visited.size & 63:
                matched &= (np.uint64(1) << np.uint64(visited.size & 63)) - np.uint64(1)
            while matched:
                bit = trailing_zeros(matched)
                matched &= matched - np.uint64(1)
                end = used + 1
                for row in range(rows):
                    staged.ids[end] = row
                    end += np.int64((alive[row, w] >> bit) & np.uint64(1))
                clause = np.int64(visited[((word + w) << 6) + np.int64(bit)])
                staged.ids[used] = end - used - 2
                staged.marks[matches] = (clause << 32) | used
                used = end
                matches += 1
        word += size
    state[0], state[1], state[2] = word, matches, used
    return True
