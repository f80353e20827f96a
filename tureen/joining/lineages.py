"""Lineages: for each tuple, joined or not, the set of queries that still want it (CACQ §2.2 and §2.4).

A query has a *slot*: the number of its bit. Queries with the same clauses on all inputs share one. The lineage of a
joined tuple is the AND of those of its tuples. Lineages are dictionary-coded: most tuples have one of few, and each
pair of lineages is combined once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tureen.joining.join_input import Flags, Numbers
from tureen.stems.key_index import KeyIndex

Bitmaps = npt.NDArray[np.uint64]
"""A line for each lineage, with a bit for each slot."""


@dataclass(frozen=True)
class Lineages:
    """The lineage of each of several rows."""

    bits: Bitmaps
    """The distinct lineages; two of them may be equal."""
    of_row: Numbers
    """The index in `bits` of each row's lineage."""

    @classmethod
    def of_rows(cls, bits: Bitmaps) -> Lineages:
        """The lineages of rows, one line each.

        >>> lineages = Lineages.of_rows(np.array([[5], [1], [5]], np.uint64))
        >>> len(lineages.bits), lineages.bits[lineages.of_row].ravel().tolist()
        (2, [5, 1, 5])
        """
        rows, of_row = distinct_keys(bits.T.view(np.int64))
        return cls(bits[rows], of_row)

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.of_row)

    @property
    def words(self) -> int:
        """The number of words of a bitmap."""
        return int(self.bits.shape[1])

    @property
    def folded(self) -> Bitmaps:
        """For each row a word with the bit of each of its slots, modulo 64."""
        words: Bitmaps = np.bitwise_or.reduce(self.bits, axis=1)[self.of_row]
        return words

    @property
    def capacity(self) -> int:
        """The number of slots that a bitmap has bits for."""
        return 64 * self.words

    def take(self, rows: Numbers) -> Lineages:
        """The lineages of the given rows."""
        return Lineages(self.bits, self.of_row[rows])

    def both(self, other: Lineages) -> Lineages:
        """The intersection of both lineages of each row.

        >>> left = Lineages(np.array([[6], [1]], np.uint64), np.array([0, 0, 1]))
        >>> both = left.both(Lineages(np.array([[3]], np.uint64), np.array([0, 0, 0])))
        >>> both.bits[both.of_row].ravel().tolist()
        [2, 2, 1]
        """
        if len(self.bits) * len(other.bits) == 1:
            return Lineages(self.bits & other.bits, self.of_row)
        codes, of_row = np.unique(self.of_row * len(other.bits) + other.of_row, return_inverse=True)
        left, right = np.divmod(codes, max(len(other.bits), 1))
        return Lineages(self.bits[left] & other.bits[right], of_row.reshape(-1))

    @cached_property
    def nonempty(self) -> Numbers:
        """The rows that some query wants."""
        has_any: Flags = np.any(self.bits, axis=1)
        return np.arange(len(self)) if has_any.all() else np.flatnonzero(has_any[self.of_row])

    def rows_with(self, slots: Bitmaps) -> Numbers:
        """The rows whose lineage has at least one of the slots of a bitmap."""
        has_any: Flags = np.any(self.bits & slots, axis=1)
        return np.flatnonzero(has_any[self.of_row])

    def without(self, slots: Bitmaps, rows: Flags) -> Lineages:
        """The lineages, without the slots of a bitmap in the given rows.

        >>> Lineages(np.array([[6]], np.uint64), np.array([0, 0])).without(
        ...     np.array([2], np.uint64), np.array([False, True])
        ... ).rows_of(1).tolist()
        [0]
        """
        bits = np.concatenate([self.bits, self.bits & ~slots])
        return Lineages(bits, self.of_row + len(self.bits) * rows)

    def compacted(self) -> Lineages:
        """The same lineages, each once, without those that no row has."""
        if len(self.bits) == 1 and len(self):
            return self
        used, of_row = np.unique(self.of_row, return_inverse=True)
        coded = Lineages.of_rows(self.bits[used])
        return Lineages(coded.bits, coded.of_row[of_row.reshape(-1)])

    @cached_property
    def _slots(self) -> Bitmaps:
        return np.bitwise_or.reduce(self.bits, axis=0) if len(self.bits) else np.zeros(self.words, np.uint64)

    @property
    def slots(self) -> Numbers:
        """The slots of all lineages; after `compacted`, those of all rows."""
        return np.flatnonzero(np.unpackbits(self._slots.view(np.uint8), bitorder="little"))

    def rows_of(self, slot: int) -> Numbers:
        """The rows that the queries of a slot want.

        >>> Lineages(np.array([[6], [1]], np.uint64), np.array([0, 1, 0])).rows_of(1).tolist()
        [0, 2]
        """
        word, bit = slot >> 6, np.uint64(slot & 63)
        if word >= self.bits.shape[1] or not self._slots[word] >> bit & np.uint64(1):
            return _NO_ROWS
        has_slot = (self.bits[:, word] >> bit & np.uint64(1)).astype(np.bool_)
        return np.flatnonzero(has_slot[self.of_row])

    def pairs(self, rows: Numbers, slots: Bitmaps, at_most: int) -> tuple[Numbers, Numbers] | None:
        """The pairs of a row and a slot, of the given rows and the slots of a bitmap; None if more than `at_most`.

        >>> lineages = Lineages(np.array([[6], [1]], np.uint64), np.array([0, 1, 0]))
        >>> [each.tolist() for each in lineages.pairs(np.array([1, 2]), np.array([7], np.uint64), 9)]
        [[1, 2, 2], [0, 1, 2]]
        """
        bits = self.bits & slots
        lines, words = np.nonzero(bits)
        of_words = np.unpackbits(bits[lines, words].view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
        index, bit = np.nonzero(of_words)
        slots_of_lines = 64 * words[index] + bit
        counts = np.bincount(lines[index], minlength=len(bits))
        starts = np.cumsum(counts) - counts
        of_rows = self.of_row[rows]
        repeated = counts[of_rows]
        ends = np.cumsum(repeated)
        if len(ends) and ends[-1] > at_most:
            return None
        offsets = np.arange(int(repeated.sum())) - np.repeat(ends - repeated, repeated)
        return np.repeat(rows, repeated), slots_of_lines[np.repeat(starts[of_rows], repeated) + offsets]


def distinct_keys(keys: Numbers) -> tuple[Numbers, Numbers]:
    """A row of each distinct key, and for each row the index of its key among these; keys have a line per column."""
    size = keys.shape[1]
    index = KeyIndex.of_keys(keys, np.ones(size, np.bool_), is_filtered=False)
    firsts, ends = index.starts[:-1], index.starts[1:]
    of_row = np.empty(size, np.int64)
    of_row[index.rows] = np.repeat(np.arange(len(firsts)), ends - firsts)
    return index.rows[firsts].astype(np.int64), of_row


def bitmap_of(slots: Sequence[int], words: int) -> Bitmaps:
    """A bitmap with the bits of slots.

    >>> bitmap_of([1, 64], 2).tolist()
    [2, 1]
    """
    mask = np.zeros(64 * words, np.bool_)
    mask[list(slots)] = True
    return np.packbits(mask, bitorder="little").view(np.uint64)


_NO_ROWS: Numbers = np.empty(0, np.int64)
