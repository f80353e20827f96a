"""Compiled loops of lineages."""

from __future__ import annotations

import numpy as np

from tureen.stems.sort_kernels import compiled


@compiled
def add_slots(
    bits: np.ndarray,
    rows: np.ndarray,
    clauses: np.ndarray,
    starts: np.ndarray,
    slots: np.ndarray,
    wide: np.ndarray,
    wide_bits: np.ndarray,
) -> None:
    """For each pair of a row and a clause, add the clause's slots to the bitmap of the row.

    The slots of clause `c` are `slots[starts[c] : starts[c + 1]]` or, if there are many of them, the bitmap
    `wide_bits[wide[c]]`.
    """
    for pair in range(rows.size):
        row, clause = rows[pair], clauses[pair]
        if wide[clause] >= 0:
            for word in range(bits.shape[1]):
                bits[row, word] |= wide_bits[wide[clause], word]
        else:
            for index in range(starts[clause], starts[clause + 1]):
                slot = slots[index]
                bits[row, slot >> 6] |= np.uint64(1) << np.uint64(slot & 63)
