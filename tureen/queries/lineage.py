"""Lineages: for each part of a column's order, the clauses that a value there leaves in play.

This is CACQ's way (§2.2): a tuple carries a bitmap of the clauses that it still may satisfy, and each of its attributes
takes some out. Here the bitmaps are made before any tuple comes, one for each stretch between neighbouring cut
points, so a tuple's clauses are the AND of one bitmap for each column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tureen.queries.access_predicates import AccessIndex
from tureen.queries.arrays import Arrays, Ints, Typed, spread, typed

MOST_BYTES = 32 << 20
"""The most memory that the bitmaps of a query run may take."""


@dataclass(frozen=True, eq=False)
class Lineage(Typed):
    """Bitmaps of the visited clauses of a query run, in the order of their positions.

    Column `c` has the bitmaps from `slot[c]` on, one for each stretch from one of its visited cut points to the next.
    After those of the last column come the bitmaps of the clauses that each derived factor has no say about.
    """

    words: npt.NDArray[np.uint64]
    slot: Ints

    types: ClassVar[dict[str, Any]] = {"words": np.uint64}

    @classmethod
    def of(cls, arrays: Arrays, access: AccessIndex, derived: int, most_bytes: int = MOST_BYTES) -> Lineage | None:
        """Make the bitmaps, or None where they would take too much memory."""
        columns, clauses = len(arrays.cut_start) - 1, len(access.visited)
        if not clauses or lineage_bytes(access, derived, most_bytes) is None:
            return None
        slot = np.concatenate(([0], np.cumsum(np.diff(access.cut_start) - 1)))
        words = np.zeros((int(slot[-1]) + derived, (clauses + 63) // 64), np.uint64)
        place = np.repeat(np.arange(clauses), np.diff(arrays.clause_start)[access.visited])
        factor = arrays.clause_factor[spread(arrays.clause_start, access.visited)].astype(np.int64)
        ranges = len(arrays.factor_column)
        known = factor < ranges
        for column in range(columns):
            mine = np.flatnonzero(known)[arrays.factor_column[factor[known]] == column]
            _fill(words[slot[column] : slot[column + 1]], arrays, access, place[mine], factor[mine], clauses)
        _without(words[slot[-1] :], place[~known], factor[~known] - ranges, clauses)
        return typed(cls, {"words": words, "slot": slot})


def lineage_bytes(access: AccessIndex, derived: int, most_bytes: int = MOST_BYTES) -> int | None:
    """The memory that the bitmaps of the visited clauses take, or None if it is too much."""
    slots = len(access.cut) - (len(access.cut_start) - 1) + derived
    size = 8 * slots * ((len(access.visited) + 63) // 64)
    return size if size <= most_bytes else None


def _fill(
    words: npt.NDArray[np.uint64],
    arrays: Arrays,
    access: AccessIndex,
    place: npt.NDArray[Any],
    factor: npt.NDArray[Any],
    clauses: int,
) -> None:
    """Fill a column's bitmaps: a clause is in those of which all its factors on the column hold."""
    words[:] = _packed(np.arange(clauses), clauses)
    first = np.searchsorted(access.cut, arrays.cut_start[arrays.factor_column[factor[:1]]])
    while len(place):
        # Of the clauses that have several factors on the column one is taken each time.
        _, mine = np.unique(place, return_index=True)
        which, one = place[mine], factor[mine]
        spans = np.repeat(which, np.diff(arrays.factor_start)[one])
        some = spread(arrays.factor_start, one)
        low, high = (np.searchsorted(access.cut, ends[some]) - first for ends in (arrays.range_low, arrays.range_high))
        real = low < high
        turns = np.zeros_like(words)
        bit = np.uint64(1) << (spans & 63).astype(np.uint64)
        for ends in (low, high):
            # What ends with the last stretch is never turned off.
            inside = real & (ends < len(words))
            np.bitwise_xor.at(turns, (ends[inside], spans[inside] >> 6), bit[inside])
        np.bitwise_xor.accumulate(turns, axis=0, out=turns)
        others = np.ones(clauses, np.bool_)
        others[which] = False
        words &= turns | _packed(np.flatnonzero(others), clauses)
        place, factor = np.delete(place, mine), np.delete(factor, mine)


def _without(words: npt.NDArray[np.uint64], place: npt.NDArray[Any], derived: npt.NDArray[Any], clauses: int) -> None:
    """Fill the bitmaps of the clauses that do not have a derived factor."""
    words[:] = _packed(np.arange(clauses), clauses)
    bit = np.uint64(1) << (place & 63).astype(np.uint64)
    np.bitwise_and.at(words, (derived, place >> 6), ~bit)


def _packed(places: npt.NDArray[Any], size: int) -> npt.NDArray[np.uint64]:
    """The bitmap of some places of so many."""
    mask = np.zeros(-(-size // 64) * 64, np.bool_)
    mask[places] = True
    return np.packbits(mask, bitorder="little").view(np.uint64)
