"""The tuples of a plan, of all inputs: everything that its nodes and the feedback know about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tureen.joining.join_input import Flags, Numbers
from tureen.joining.plans.join_graph import JoinGraph

Wants = npt.NDArray[np.uint64]
"""For each tuple a bit per query, or per several queries, that may want it."""

FOREVER = np.iinfo(np.int64).max
NEVER = np.iinfo(np.int64).min

DROPPED, SUSPENDED, ALIVE, ACTIVE = -1, 0, 1, 2
"""How far a tuple has come: it can join nothing; waits; has partners in later inputs; takes part in the plan."""


@dataclass(frozen=True)
class NewTuples:
    """Tuples of an input that have arrived, in order of arrival."""

    ids: Numbers
    times: Numbers
    """For tuples without a time, `NEVER`."""
    keys: Numbers
    """A line for each key column."""
    wants: Wants

    def __len__(self) -> int:
        """The number of tuples."""
        return len(self.ids)

    def take(self, rows: Numbers) -> NewTuples:
        """Some of them."""
        return NewTuples(self.ids[rows], self.times[rows], self.keys[:, rows], self.wants[rows])


class PlanStore:
    """The tuples that can still join others, numbered in order of arrival."""

    def __init__(self, graph: JoinGraph, reach: Sequence[int | None]) -> None:
        """Start without tuples; `reach` is how long a tuple of each input joins later ones."""
        self._graph = graph
        self._reach = [None if number in graph.tables else each for number, each in enumerate(reach)]
        self._mixed = [
            [columns for columns in _edge_columns(graph, number) if len(columns) > 1] for number in range(len(graph))
        ]
        lines = max(
            (columns + len(mixed) for columns, mixed in zip(graph.columns, self._mixed, strict=True)), default=1
        )
        self.size = 0
        self.inputs = np.empty(0, np.int8)
        self.ids, self.times, self.until = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64)
        self.wants = np.empty(0, np.uint64)
        self.level, self.passed = np.empty(0, np.int8), np.empty(0, np.int8)
        """How far each tuple has come, and how many tests of its demand it has passed."""
        self.keys: Numbers = np.empty((max(lines, 1), 0), np.int64)

    def line_of(self, number: int, other: int) -> int:
        """The line of `keys` by which an input is compared with another: a column, or a hash of several; -1 if none."""
        edge = self._graph.edge(number, other)
        if edge is None:
            return -1
        columns = edge.columns(number)
        return columns[0] if len(columns) == 1 else self._graph.columns[number] + self._mixed[number].index(columns)

    def append(self, number: int, new: NewTuples) -> Numbers:
        """Add tuples of an input; their numbers."""
        begin, self.size = self.size, self.size + len(new)
        if self.size > self.ids.size:
            self._resize(max(64, 2 * self.size))
        rows, reach, columns = slice(begin, self.size), self._reach[number], self._graph.columns[number]
        self.inputs[rows], self.ids[rows], self.times[rows], self.wants[rows] = number, new.ids, new.times, new.wants
        self.until[rows] = FOREVER if reach is None else new.times + reach
        self.level[rows], self.passed[rows] = SUSPENDED, 0
        self.keys[:columns, rows] = new.keys
        for line, mixed in enumerate(self._mixed[number], columns):
            self.keys[line, rows] = hash_columns(new.keys, mixed)
        return np.arange(begin, self.size)

    def drop(self, tuples: Numbers) -> None:
        """Let tuples join nothing any more; they are forgotten with the expired ones."""
        self.level[tuples], self.until[tuples] = DROPPED, NEVER

    def expired(self, horizon: int) -> int:
        """The number of tuples that join no tuple from a time on."""
        return self.size - int(np.count_nonzero(self._lasting(horizon)))

    def expire(self, horizon: int) -> Numbers:
        """Forget the tuples that join no tuple from a time on; for each tuple its new number, -1 if it is forgotten."""
        kept = self._lasting(horizon)
        numbers = np.where(kept, np.cumsum(kept) - 1, -1)
        rows = np.flatnonzero(kept)
        for name in _ARRAYS:
            setattr(self, name, np.ascontiguousarray(getattr(self, name)[..., rows]))
        self.size = len(rows)
        return numbers

    def _lasting(self, horizon: int) -> Flags:
        until = self.until[: self.size]
        lasting: Flags = (until >= horizon) & (until != NEVER)
        return lasting

    def _resize(self, capacity: int) -> None:
        for name in _ARRAYS:
            setattr(self, name, grown(getattr(self, name), capacity))

    def rows_of(self, number: int) -> Numbers:
        """The numbers of the tuples of an input."""
        return np.flatnonzero(self.inputs[: self.size] == number)

    def waiting(self) -> list[int]:
        """The number of suspended tuples of each input."""
        level = self.level[: self.size]
        inputs = self.inputs[: self.size][(level == SUSPENDED) | (level == ALIVE)]
        return [int(count) for count in np.bincount(inputs, minlength=len(self._graph))]

    @property
    def bytes(self) -> int:
        """The memory that its tuples take."""
        return self.size * (8 * (4 + len(self.keys)) + 3)


_ARRAYS = ("inputs", "ids", "times", "until", "wants", "level", "passed", "keys")


def hash_columns(keys: Numbers, columns: Sequence[int]) -> Numbers:
    """A hash of several key columns."""
    mixed = np.zeros(keys.shape[1], np.uint64)
    for column in columns:
        mixed = (mixed ^ keys[column].view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(32)
    return mixed.view(np.int64)


def _edge_columns(graph: JoinGraph, number: int) -> list[tuple[int, ...]]:
    edges = [graph.edge(number, other) for other in graph.neighbors(number)]
    return list(dict.fromkeys(edge.columns(number) for edge in edges if edge is not None))


Array = TypeVar("Array", bound=npt.NDArray[np.generic])


def grown(array: Array, capacity: int) -> Array:
    """A copy whose last axis has another capacity."""
    copy = np.empty((*array.shape[:-1], capacity), array.dtype)
    copy[..., : array.shape[-1]] = array
    return copy  # type: ignore[return-value]
