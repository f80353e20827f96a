"""Row-major matching, compiled: for each row its lineage, a bitmap of the clauses that it satisfies.

It costs nothing for a clause that no row satisfies, but for its bit; so it is for blocks of a few rows, where visiting
each clause costs more than the rows do.
"""

from __future__ import annotations

import numba
import numpy as np

from tureen.matching.access_kernels import Staged
from tureen.stems.cells.bitmaps import has_bit, trailing_zeros
from tureen.stems.sort_kernels import DATA, KIND, OFFSETS, RANK, ROWS, VALID, Int, Keys, below_cut, compiled, pointer

_AT_ONCE = 64


@compiled
def _stretch(column: np.ndarray, row: Int, cuts: np.ndarray, keys: Keys) -> Int:
    """Between which two of a column's cut points a row stands; the last stretch is that of NULL."""
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
def find_stretches(
    table: np.ndarray, cuts: np.ndarray, cut_start: np.ndarray, keys: Keys, slot: np.ndarray, found: np.ndarray
) -> None:
    """For each row and column the number of the bitmap that stands for the row's value."""
    for c in range(table.shape[0]):
        for row in range(found.shape[0]):
            mine = cuts[cut_start[c] : cut_start[c + 1]]
            found[row, c] = slot[c] + _stretch(table[c], row, mine, keys)


@compiled
def _lineages(
    words: np.ndarray,
    found: np.ndarray,
    derived: np.ndarray,
    first_derived: Int,
    begin: Int,
    size: Int,
    alive: np.ndarray,
) -> None:
    """The part of all rows' lineages that has the words from `begin` on; for each row an AND of bitmaps."""
    for row in range(found.shape[0]):
        mine = alive[row]
        for i in range(size):
            mine[i] = ~np.uint64(0)
        for c in range(found.shape[1]):
            other = words[found[row, c]]
            for i in range(size):
                mine[i] &= other[begin + i]
        for number in range(words.shape[0] - first_derived):
            if not has_bit(derived[number], row):
                other = words[first_derived + number]
                for i in range(size):
                    mine[i] &= other[begin + i]


@compiled
def match_rows(
    words: np.ndarray,
    found: np.ndarray,
    derived: np.ndarray,
    first_derived: Int,
    visited: np.ndarray,
    state: np.ndarray,
    staged: Staged,
) -> bool:
    """Stage the clauses that some row satisfies, in ascending order, until all are done or there is no more room.

    `state` has the next word of the lineages (a multiple of those that are done at once), the number of matches and of
    ids so far.
    """
    rows, width = found.shape[0], words.shape[1]
    alive = np.empty((rows, _AT_ONCE), np.uint64)
    following, done, used = state[0], state[1], state[2]
    while following < width:
        size = min(_AT_ONCE, width - following)
        if done + 64 * size > staged.marks.size or used + 64 * size * (rows + 1) > staged.ids.size:
            state[0], state[1], state[2] = following, done, used
            return False
        _lineages(words, found, derived, first_derived, following, size, alive)
        for w in range(size):
            some = np.uint64(0)
            for row in range(rows):
                some |= alive[row, w]
            if following + w == width - 1 and visited.size & 63:
                some &= (np.uint64(1) << np.uint64(visited.size & 63)) - np.uint64(1)
            while some:
                bit = trailing_zeros(some)
                some &= some - np.uint64(1)
                end = used + 1
                for row in range(rows):
                    staged.ids[end] = row
                    end += np.int64((alive[row, w] >> bit) & np.uint64(1))
                clause = np.int64(visited[((following + w) << 6) + np.int64(bit)])
                staged.ids[used] = end - used - 2
                staged.marks[done] = (clause << 32) | used
                used = end
                done += 1
        following += size
    state[0], state[1], state[2] = following, done, used
    return True
