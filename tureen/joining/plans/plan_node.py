"""A node of a plan: joined tuples of a part of the join, found by the key that the other side is joined by (X-Join)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tureen.errors import QueryFailed
from tureen.joining.join_input import Numbers
from tureen.joining.plans.join_graph import JoinGraph
from tureen.joining.plans.plan_kernels import find_partners, link, mix_keys
from tureen.joining.plans.plan_store import PlanStore, Wants, grown

NOTHING = -1
"""The end of a chain."""


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
    """Holds the joined tuples of some inputs, for those of the inputs on the other side."""

    def __init__(self, graph: JoinGraph, inputs: Sequence[int], others: Sequence[int], store: PlanStore) -> None:
        """Start without joined tuples; the equalities between `inputs` and `others` are the key."""
        self.inputs = tuple(inputs)
        self._store = store
        self._key: list[tuple[int, int, int, int]] = []
        self._columns: list[tuple[int, int, int, int]] = []
        """Input and line here, and input and line of the other side: by edge, and by equality."""
        for number in inputs:
            for other in others:
                edge = graph.edge(number, other)
                if edge is not None:
                    self._key.append((number, store.line_of(number, other), other, store.line_of(other, number)))
                    pairs = zip(edge.columns(number), edge.columns(other), strict=True)
                    self._columns += [(number, own, other, their) for own, their in pairs]
        self.size = 0
        self.made = 0
        """The number of joined tuples so far."""
        self.rows: Numbers = np.empty((len(self.inputs), 0), np.int64)
        self.latest, self.until = np.empty(0, np.int64), np.empty(0, np.int64)
        self.wants = np.empty(0, np.uint64)
        self._hashes, self._nexts = np.empty(0, np.int64), np.empty(0, np.int32)
        self._heads = np.full(self._slots(), NOTHING, np.int32)

    def insert(self, joined: IntermediateResults) -> None:
        """Add joined tuples."""
        begin, self.size = self.size, self.size + len(joined)
        self.made += len(joined)
        if self.size > self.latest.size:
            self._resize(max(64, 2 * self.size))
        rows = slice(begin, self.size)
        for line, number in enumerate(self.inputs):
            self.rows[line, rows] = joined.rows[number]
        self.latest[rows], self.until[rows], self.wants[rows] = joined.latest, joined.until, joined.wants
        hashes = self._hashes[rows]
        hashes[:] = 0
        for number, line, _, _ in self._key:
            mix_keys(hashes, self._store.keys[line], joined.rows[number])
        if self.size > self._heads.size and self._slots() > self._heads.size:
            self._index()
        else:
            link(self._heads, self._nexts, self._hashes, begin, self.size)

    def probe(self, other: IntermediateResults, horizon: int, most: int) -> IntermediateResults:
        """Joined tuples of the other side, with those of this one that satisfy all equalities.

        Those here that joined only tuples before the horizon are left out. Raises QueryFailed if there are more than
        `most`.
        """
        hashes = np.zeros(len(other), np.int64)
        for _, _, number, line in self._key:
            mix_keys(hashes, self._store.keys[line], other.rows[number])
        size = 2 * len(other) + 1024
        while True:
            probing, partners = np.empty(size, np.int64), np.empty(size, np.int64)
            count = find_partners(
                self._heads, self._nexts, self._hashes, self.latest, self.until, self.wants,
                hashes, other.latest, other.until, other.wants, horizon, probing, partners,
            )  # fmt: skip
            if count <= size:
                break
            if count > most:
                raise QueryFailed(f"the plan would have {count:,} intermediate results of one block")
            size = count
        probing, partners = probing[:count], partners[:count]
        if len(self._columns) > 1 and count:
            probing, partners = self._equal(other, probing, partners)
        own = {number: self.rows[line][partners] for line, number in enumerate(self.inputs)}
        return IntermediateResults(
            own | {number: rows[probing] for number, rows in other.rows.items()},
            np.maximum(self.latest[partners], other.latest[probing]),
            np.minimum(self.until[partners], other.until[probing]),
            self.wants[partners] & other.wants[probing],
        )

    def _equal(self, other: IntermediateResults, probing: Numbers, partners: Numbers) -> tuple[Numbers, Numbers]:
        """The pairs whose key columns are equal, and not only a hash of them."""
        equal = np.ones(len(probing), np.bool_)
        for number, column, other_number, other_column in self._columns:
            rows, other_rows = self.rows[self.inputs.index(number)][partners], other.rows[other_number][probing]
            equal &= self._store.keys[column][rows] == self._store.keys[other_column][other_rows]
        return (probing, partners) if equal.all() else (probing[equal], partners[equal])

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
        self._nexts = np.empty(self.size, np.int32)
        self._index()

    def _slots(self) -> int:
        """The number of slots of the index, a power of two."""
        return 1 << max(6, (2 * self.size).bit_length())

    def _index(self) -> None:
        self._heads = np.full(self._slots(), NOTHING, np.int32)
        link(self._heads, self._nexts, self._hashes, 0, self.size)

    def _resize(self, capacity: int) -> None:
        for name in (*_ARRAYS, "_nexts"):
            setattr(self, name, grown(getattr(self, name), capacity))

    @property
    def bytes(self) -> int:
        """The memory that its joined tuples take."""
        return self.size * (8 * len(self.inputs) + 36) + self._heads.nbytes


_ARRAYS = ("rows", "latest", "until", "wants", "_hashes")
