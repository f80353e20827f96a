"""Compiled loops over prefix bitmaps: for selected ranks of a column, the rows of lower rank.

A range of ranks is then the difference of two bitmaps, whatever its size.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from tureen.stems.cells.bitmaps import clear_bit, set_bit
from tureen.stems.sort_kernels import PERM, ROWS, Int, compiled, pointer


class Prefixes(NamedTuple):
    """The prefix bitmaps of all columns: slot s has the rows of a rank below `rank[s]`.

    A cut point lies between the slots `floor` and `ceil`, which are the same if the cut point has a slot of its own.
    """

    floor: np.ndarray
    ceil: np.ndarray
    rank: np.ndarray
    words: np.ndarray


@compiled
def plan_prefixes(
    cuts: np.ndarray,
    cut_start: np.ndarray,
    ranks: np.ndarray,
    block_rows: Int,
    exact_slots: Int,
    grain: Int,
    floor: np.ndarray,
    ceil: np.ndarray,
    slot_rank: np.ndarray,
    column_slot: np.ndarray,
) -> Int:
    """Decide at which ranks each column gets a prefix bitmap; returns the number of bitmaps.

    Column `c` has the cut points `cuts[cut_start[c] : cut_start[c + 1]]`, ascending, with its edges. If these have few
    distinct ranks, each rank gets a bitmap (`floor` and `ceil` of a cut point are the same slot); otherwise every
    `grain`-th rank does, and a cut point lies between two slots.
    """
    slot = 0
    for c in range(cut_start.size - 1):
        column_slot[c] = slot
        column_cuts = cuts[cut_start[c] : cut_start[c + 1]]
        distinct = 1
        for i in range(1, column_cuts.size):
            if ranks[column_cuts[i]] != ranks[column_cuts[i - 1]]:
                distinct += 1
        if distinct <= exact_slots:
            slot_rank[slot] = 0
            for cut in column_cuts:
                if ranks[cut] != slot_rank[slot]:
                    slot += 1
                    slot_rank[slot] = ranks[cut]
                floor[cut] = slot
                ceil[cut] = slot
            slot += 1
        else:
            last = (block_rows + grain - 1) // grain
            for step in range(last + 1):
                slot_rank[slot + step] = min(step * grain, block_rows)
            for cut in column_cuts:
                rank = ranks[cut]
                floor[cut] = slot + (last if rank == block_rows else rank // grain)
                ceil[cut] = slot + (rank + grain - 1) // grain
            slot += last + 1
    column_slot[cut_start.size - 1] = slot
    return slot


@compiled
def fill_prefixes(table: np.ndarray, slot_rank: np.ndarray, column_slot: np.ndarray, prefixes: np.ndarray) -> None:
    """Fill the prefix bitmaps: slot s has the rows of its column with a rank below `slot_rank[s]`."""
    for c in range(table.shape[0]):
        perm = numba.carray(pointer(table[c, PERM]), table[c, ROWS], np.uint16)
        begin = column_slot[c]
        prefixes[begin, :] = 0
        for slot in range(begin + 1, column_slot[c + 1]):
            words = prefixes[slot]
            words[:] = prefixes[slot - 1]
            for i in range(slot_rank[slot - 1], slot_rank[slot]):
                set_bit(words, np.int64(perm[i]))


@compiled
def and_range(
    words: np.ndarray,
    fresh: bool,
    low: Int,
    high: Int,
    perm: np.ndarray,
    ranks: np.ndarray,
    prefixes: Prefixes,
) -> None:
    """AND the rows between two cut points into a bitmap, or initialize a fresh bitmap with them.

    With coarse prefixes this includes excess rows at first, at most a grain at either end; they are cleared one by one,
    as listed by the permutation.
    """
    below, upto = prefixes.floor[low], prefixes.ceil[high]
    open_below = prefixes.rank[below] == 0
    lower, upper = prefixes.words[below], prefixes.words[upto]
    if fresh:
        if open_below:
            for i in range(words.size):
                words[i] = upper[i]
        else:
            for i in range(words.size):
                words[i] = upper[i] & ~lower[i]
    elif open_below:
        for i in range(words.size):
            words[i] &= upper[i]
    elif prefixes.rank[upto] == perm.size:
        for i in range(words.size):
            words[i] &= ~lower[i]
    else:
        for i in range(words.size):
            words[i] &= upper[i] & ~lower[i]
    for i in range(prefixes.rank[below], ranks[low]):
        clear_bit(words, np.int64(perm[i]))
    for i in range(ranks[high], prefixes.rank[upto]):
        clear_bit(words, np.int64(perm[i]))


@compiled
def or_range(words: np.ndarray, low: Int, high: Int, perm: np.ndarray, ranks: np.ndarray, prefixes: Prefixes) -> None:
    """OR the rows between two cut points into a bitmap: whole prefixes within, single rows at the ends."""
    first, last = ranks[low], ranks[high]
    inner_first, inner_last = prefixes.rank[prefixes.ceil[low]], prefixes.rank[prefixes.floor[high]]
    if inner_first >= inner_last or last - first <= words.size:
        for i in range(first, last):
            set_bit(words, np.int64(perm[i]))
        return
    lower, upper = prefixes.words[prefixes.ceil[low]], prefixes.words[prefixes.floor[high]]
    for i in range(words.size):
        words[i] |= upper[i] & ~lower[i]
    for i in range(first, inner_first):
        set_bit(words, np.int64(perm[i]))
    for i in range(inner_last, last):
        set_bit(words, np.int64(perm[i]))
