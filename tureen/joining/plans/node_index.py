"""Finds the joined tuples of a node by the key that another part of a join is joined by (X-Join)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tureen.joining.join_input import Numbers
from tureen.joining.plans.plan_kernels import link, mix_keys
from tureen.joining.plans.plan_store import PlanStore, grown

KeyLines = tuple[tuple[int, int], ...]
"""The parts of a key: inputs, each with a line of the keys of the store."""

NOTHING = -1
"""The end of a chain."""


class NodeIndex:
    """Chains of joined tuples with the same key, see `plan_kernels`."""

    def __init__(self, key: KeyLines) -> None:
        """Start without joined tuples."""
        self.key, self.size = key, 0
        self.hashes, self.nexts = np.empty(0, np.int64), np.empty(0, np.int32)
        self.heads = np.full(self._slots(), NOTHING, np.int32)

    def extend(self, rows: Mapping[int, Numbers], store: PlanStore) -> None:
        """Add joined tuples, given by the numbers of their tuples."""
        hashes = hashed_keys(self.key, rows, store)
        begin, self.size = self.size, self.size + len(hashes)
        if self.size > self.hashes.size:
            capacity = max(64, 2 * self.size)
            self.hashes, self.nexts = grown(self.hashes, capacity), grown(self.nexts, capacity)
        self.hashes[begin : self.size] = hashes
        if self.size > self.heads.size and self._slots() > self.heads.size:
            self._link()
        else:
            link(self.heads, self.nexts, self.hashes, begin, self.size)

    def keep(self, rows: Numbers) -> None:
        """Remove all but some of the joined tuples."""
        self.hashes, self.size = self.hashes[rows], len(rows)
        self.nexts = np.empty(self.size, np.int32)
        self._link()

    def _slots(self) -> int:
        """The number of slots, a power of two."""
        return 1 << max(6, (2 * self.size).bit_length())

    def _link(self) -> None:
        self.heads = np.full(self._slots(), NOTHING, np.int32)
        link(self.heads, self.nexts, self.hashes, 0, self.size)

    @property
    def bytes(self) -> int:
        """The memory that it takes."""
        return 12 * self.size + self.heads.nbytes


def hashed_keys(key: Sequence[tuple[int, int]], rows: Mapping[int, Numbers], store: PlanStore) -> Numbers:
    """A hash of the key of each joined tuple."""
    number, _ = key[0]
    hashes = np.zeros(len(rows[number]), np.int64)
    for number, line in key:
        mix_keys(hashes, store.keys[line], rows[number])
    return hashes
