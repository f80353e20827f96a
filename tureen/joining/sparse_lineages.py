"""Lineages as pairs of a row and a slot, for rows that few of many queries want.

A bitmap has a bit for each query. If there are many thousands of them, and a row satisfies the clauses of a few, the
pairs take less memory and time; see docs/decisions/0040. Combined with bitmaps, the result is sparse again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tureen.joining.join_input import Flags, Numbers
from tureen.joining.lineages import Bitmaps, Lineages


@dataclass(frozen=True)
class SparseLineages:
    """The lineage of each of several rows."""

    rows: Numbers
    """The row of each pair, ascending; and in `slots_of_rows` its slot. Each pair occurs once."""
    slots_of_rows: Numbers
    count: int
    """The number of rows; some may have no pair."""
    words: int
    """The number of words that a bitmap would have."""

    def __len__(self) -> int:
        """The number of rows."""
        return self.count

    @property
    def folded(self) -> Bitmaps:
        """For each row a word with the bit of each of its slots, modulo 64."""
        words = np.zeros(self.count, np.uint64)
        np.bitwise_or.at(words, self.rows, np.uint64(1) << (self.slots_of_rows & 63).astype(np.uint64))
        return words

    @property
    def capacity(self) -> int:
        """The number of slots that a bitmap would have bits for."""
        return 64 * self.words

    def take(self, rows: Numbers) -> SparseLineages:
        """The lineages of the given rows.

        >>> lineages = SparseLineages(np.array([0, 1, 1]), np.array([5, 3, 4]), 3, 1)
        >>> taken = lineages.take(np.array([1, 2, 1]))
        >>> taken.rows.tolist(), taken.slots_of_rows.tolist()
        ([0, 0, 2, 2], [3, 4, 3, 4])
        """
        counts = self._counts[rows]
        return SparseLineages(
            np.repeat(np.arange(len(rows)), counts), self.slots_of_rows[self._pairs_of(rows)], len(rows), self.words
        )

    def both(self, other: Lineages | SparseLineages) -> SparseLineages:
        """The intersection of both lineages of each row.

        >>> lineages = SparseLineages(np.array([0, 0, 1]), np.array([1, 2, 1]), 2, 1)
        >>> lineages.both(Lineages(np.array([[2]], np.uint64), np.array([0, 0]))).slots_of_rows.tolist()
        [1, 1]
        >>> lineages.both(SparseLineages(np.array([0, 1]), np.array([2, 2]), 2, 1)).rows.tolist()
        [0]
        """
        if isinstance(other, Lineages):
            return self._where(self._bits(other.bits, other.of_row[self.rows]))
        keys, others = (lineages.rows * self.capacity + lineages.slots_of_rows for lineages in (self, other))
        return self._where(np.isin(keys, others, assume_unique=True))

    @cached_property
    def nonempty(self) -> Numbers:
        """The rows that some query wants."""
        return np.flatnonzero(self._counts)

    def rows_with(self, slots: Bitmaps) -> Numbers:
        """The rows whose lineage has at least one of the slots of a bitmap."""
        return np.unique(self.rows[self._in(slots)])

    def without(self, slots: Bitmaps, rows: Flags) -> SparseLineages:
        """The lineages, without the slots of a bitmap in the given rows."""
        return self._where(~(rows[self.rows] & self._in(slots)))

    def compacted(self) -> SparseLineages:
        """The same lineages."""
        return self

    @property
    def slots(self) -> Numbers:
        """The slots of all rows."""
        return np.unique(self.slots_of_rows)

    def rows_of(self, slot: int) -> Numbers:
        """The rows that the queries of a slot want.

        >>> SparseLineages(np.array([0, 1, 1]), np.array([5, 3, 5]), 2, 1).rows_of(5).tolist()
        [0, 1]
        """
        slots, rows = self._by_slot
        begin, end = np.searchsorted(slots, (slot, slot + 1))
        return rows[begin:end]

    def pairs(self, rows: Numbers, slots: Bitmaps, at_most: int) -> tuple[Numbers, Numbers] | None:
        """The pairs of a row and a slot, of the given rows and the slots of a bitmap; None if more than `at_most`."""
        indexes = self._pairs_of(rows)
        indexes = indexes[self._in(slots)[indexes]]
        return (self.rows[indexes], self.slots_of_rows[indexes]) if len(indexes) <= at_most else None

    @cached_property
    def _by_slot(self) -> tuple[Numbers, Numbers]:
        order = np.argsort(self.slots_of_rows, kind="stable")
        return self.slots_of_rows[order], self.rows[order]

    @cached_property
    def _counts(self) -> Numbers:
        return np.bincount(self.rows, minlength=self.count)

    def _pairs_of(self, rows: Numbers) -> Numbers:
        """The indexes of the pairs of the given rows."""
        counts = self._counts[rows]
        ends, starts = np.cumsum(counts), (np.cumsum(self._counts) - self._counts)[rows]
        indexes: Numbers = np.arange(int(counts.sum())) + np.repeat(starts - (ends - counts), counts)
        return indexes

    def _where(self, kept: Flags) -> SparseLineages:
        return SparseLineages(self.rows[kept], self.slots_of_rows[kept], self.count, self.words)

    def _in(self, slots: Bitmaps) -> Flags:
        return self._bits(slots.reshape(1, -1), np.zeros(len(self.rows), np.int64))

    def _bits(self, bits: Bitmaps, lines: Numbers) -> Flags:
        """Whether the slot of each pair is in the bitmap of that line."""
        words = bits[lines, self.slots_of_rows >> 6] >> (self.slots_of_rows & 63).astype(np.uint64)
        is_set: Flags = (words & np.uint64(1)).astype(np.bool_)
        return is_set


def combined(left: Lineages | SparseLineages, right: Lineages | SparseLineages) -> Lineages | SparseLineages:
    """For each row, the queries that are in both of its lineages; sparse if one of them is."""
    if isinstance(left, SparseLineages):
        return left.both(right)
    return left.both(right) if isinstance(right, Lineages) else right.both(left)
