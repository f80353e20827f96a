"""A node of a plan: joined tuples of a part of a join, for all joins that contain this part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tureen.joining.join_input import Numbers
from tureen.joining.plans.node_index import KeyLines, NodeIndex
from tureen.joining.plans.plan_store import PlanStore, Wants, grown


@dataclass(frozen=True)
class IntermediateResults:
    """Joined tuples of a part of the join."""

    rows: Mapping[int, Numbers]
    """For each input, the numbers of the tuples in the store."""
    latest: Numbers
    """The time of the latest tuple of each."""
    until: Numbers
    """The last time of a tuple that each can be joined with: that when the first of its tuples leaves its window."""
    wants: Wants

    def __len__(self) -> int:
        """The number of joined tuples."""
        return len(self.latest)

    @classmethod
    def of_input(cls, number: int, store: PlanStore, tuples: Numbers) -> IntermediateResults:
        """Tuples of one input."""
        return cls({number: tuples}, store.times[tuples], store.until[tuples], store.wants[tuples])


class PlanNode:
    """Holds the joined tuples of some inputs once, with an index for each key that other parts are joined by."""

    def __init__(self, inputs: Sequence[int], store: PlanStore) -> None:
        """Start without joined tuples and without indexes."""
        self.inputs = tuple(inputs)
        self._store = store
        self.indexes: dict[KeyLines, NodeIndex] = {}
        self.size = 0
        self.made = 0
        """The number of joined tuples so far."""
        self.rows: Numbers = np.empty((len(self.inputs), 0), np.int64)
        self.latest, self.until = np.empty(0, np.int64), np.empty(0, np.int64)
        self.wants = np.empty(0, np.uint64)

    def insert(self, joined: IntermediateResults) -> None:
        """Add joined tuples."""
        begin, self.size = self.size, self.size + len(joined)
        self.made += len(joined)
        if self.size > self.latest.size:
            for name in _ARRAYS:
                setattr(self, name, grown(getattr(self, name), max(64, 2 * self.size)))
        rows = slice(begin, self.size)
        for line, number in enumerate(self.inputs):
            self.rows[line, rows] = joined.rows[number]
        self.latest[rows], self.until[rows], self.wants[rows] = joined.latest, joined.until, joined.wants
        for index in self.indexes.values():
            index.extend(joined.rows, self._store)

    def expire(self, horizon: int, numbers: Numbers | None = None) -> None:
        """Remove what joined only tuples before a time, unless it is little.

        If the tuples have new numbers, what contains a forgotten one is removed too.
        """
        lasting = self.until[: self.size] >= horizon
        if numbers is not None:
            lasting &= (numbers[self.rows[:, : self.size]] >= 0).all(axis=0)
        kept = np.flatnonzero(lasting)
        if numbers is None and 4 * len(kept) > 3 * self.size:
            return
        for name in _ARRAYS:
            setattr(self, name, np.ascontiguousarray(getattr(self, name)[..., kept]))
        if numbers is not None:
            self.rows = numbers[self.rows]
        self.size = len(kept)
        for index in self.indexes.values():
            index.keep(kept)

    @property
    def bytes(self) -> int:
        """The memory that its joined tuples take."""
        return self.size * (8 * len(self.inputs) + 24) + sum(index.bytes for index in self.indexes.values())


_ARRAYS = ("rows", "latest", "until", "wants")
