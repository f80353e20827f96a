"""Lineages: for each stretch of a column's order, the clauses that a value there may satisfy.

In CACQ (§2.2) a tuple carries a bitmap of the clauses that it may still satisfy, and each of its attributes clears some
bits. Here the bitmaps are built in advance, one for each stretch between neighbouring cut points, so a tuple's clauses
are the AND of one bitmap for each column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tureen.queries.access_predicates import AccessIndex
from tureen.queries.arrays import Arrays, Ints, Typed, spread, typed

MOST_BYTES = 32 << 20
"""The memory limit of a query run's bitmaps."""


@dataclass(frozen=True, eq=False)
class LineageBitmaps(Typed):
    """Bitmaps of the visited clauses of a query run, in the order of their positions.

    Column `c` has the bitmaps from `slot[c]` on, one for each stretch from one of its visited cut points to the next.
    After those of the last column comes, for each derived factor, the bitmap of the clauses that do not contain it.
    """

    words: npt.NDArray[np.uint64]
    slot: Ints

    types: ClassVar[dict[str, Any]] = {"words": np.uint64}

    @classmethod
    def of(
        cls, arrays: Arrays, access: AccessIndex, derived: int, most_bytes: int = MOST_BYTES
    ) -> LineageBitmaps | None:
        """Build the bitmaps; None if they would take too much memory."""
        columns, clauses = len(arrays.cut_start) - 1, len(access.visited)
        if not clauses or lineage_bytes(access, derived, most_bytes) is None:
            return None
        slot = np.concatenate(([0], np.cumsum(np.diff(access.cut_start) - 1)))
        words = np.zeros((int(slot[-1]) + derived, (clauses + 63) // 64), np.uint64)
        position = np.repeat(np.arange(clauses), np.diff(arrays.clause_start)[access.visited])
        factor = arrays.clause_factor[spread(arrays.clause_start, access.visited)].astype(np.int64)
        ranges = len(arrays.factor_column)
        is_range = factor < ranges
        for column in range(columns):
            selected = np.flatnonzero(is_range)[arrays.factor_column[factor[is_range]] == column]
            _fill(words[slot[column] : slot[column + 1]], arrays, access, position[selected], factor[selected], clauses)
        _without(words[slot[-1] :], position[~is_range], factor[~is_range] - ranges, clauses)
        return typed(cls, {"words": words, "slot": slot})


def lineage_bytes(access: AccessIndex, derived: int, most_bytes: int = MOST_BYTES) -> int | None:
    """The memory of the bitmaps of the visited clauses, or None if it exceeds the limit."""
    slots = len(access.cut) - (len(access.cut_start) - 1) + derived
    size = 8 * slots * ((len(access.visited) + 63) // 64)
    return size if size <= most_bytes else None


def _fill(
    words: npt.NDArray[np.uint64],
    arrays: Arrays,
    access: AccessIndex,
    position: npt.NDArray[Any],
    factor: npt.NDArray[Any],
    clauses: int,
) -> None:
    """Fill a column's bitmaps: a clause is in those of the stretches where all its factors on the column hold."""
    words[:] = _packed(np.arange(clauses), clauses)
    first = np.searchsorted(access.cut, arrays.cut_start[arrays.factor_column[factor[:1]]])
    while len(position):
        # A clause may have several factors on the column: each pass handles one of every remaining clause.
        _, picked = np.unique(position, return_index=True)
        clause, picked_factor = position[picked], factor[picked]
        spans = np.repeat(clause, np.diff(arrays.factor_start)[picked_factor])
        intervals = spread(arrays.factor_start, picked_factor)
        low, high = (
            np.searchsorted(access.cut, ends[intervals]) - first for ends in (arrays.range_low, arrays.range_high)
        )
        nonempty = low < high
        turns = np.zeros_like(words)
        bit = np.uint64(1) << (spans & 63).astype(np.uint64)
        for ends in (low, high):
            # An interval that ends with the last stretch is never turned off.
            inside = nonempty & (ends < len(words))
            np.bitwise_xor.at(turns, (ends[inside], spans[inside] >> 6), bit[inside])
        np.bitwise_xor.accumulate(turns, axis=0, out=turns)
        untouched = np.ones(clauses, np.bool_)
        untouched[clause] = False
        words &= turns | _packed(np.flatnonzero(untouched), clauses)
        position, factor = np.delete(position, picked), np.delete(factor, picked)


def _without(
    words: npt.NDArray[np.uint64], position: npt.NDArray[Any], derived: npt.NDArray[Any], clauses: int
) -> None:
    """Fill the bitmaps of the clauses that do not have a derived factor."""
    words[:] = _packed(np.arange(clauses), clauses)
    bit = np.uint64(1) << (position & 63).astype(np.uint64)
    np.bitwise_and.at(words, (derived, position >> 6), ~bit)


def _packed(positions: npt.NDArray[Any], size: int) -> npt.NDArray[np.uint64]:
    """A bitmap of `size` bits with ones at the given positions."""
    mask = np.zeros(-(-size // 64) * 64, np.bool_)
    mask[positions] = True
    return np.packbits(mask, bitorder="little").view(np.uint64)
