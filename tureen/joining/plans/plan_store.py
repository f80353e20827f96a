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

    def __init__(self, graphs: Sequence[JoinGraph], reach: Sequence[int | None]) -> None:
        """Start without tuples, of the inputs of joins; `reach` is how long a tuple of each input joins later ones."""
        self.columns = graphs[0].columns
        tables = frozenset().union(*(graph.tables for graph in graphs))
        self._reach = [None if number in tables else limit for number, limit in enumerate(reach)]
        self._mixed = [_hashed_columns(graphs, number) for number in range(len(reach))]
        lines = [columns + len(mixed) for columns, mixed in zip(self.columns, self._mixed, strict=True)]
        self.size = 0
        self.inputs = np.empty(0, np.int8)
        self.ids, self.times, self.until = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64)
        self.wants = np.empty(0, np.uint64)
        self.active = np.empty(0, np.bool_)
        """Whether each tuple takes part in the plan."""
        self.keys: Numbers = np.empty((max(1, *lines), 0), np.int64)

    def line_of(self, number: int, columns: tuple[int, ...]) -> int:
        """The line of `keys` with the values of columns of an input: a column, or a hash of several."""
        return columns[0] if len(columns) == 1 else self.columns[number] + self._mixed[number].index(columns)

    def append(self, number: int, new: NewTuples) -> Numbers:
        """Add tuples of an input; their numbers."""
        begin, self.size = self.size, self.size + len(new)
        if self.size > self.ids.size:
            self._resize(max(64, 2 * self.size))
        rows, reach, columns = slice(begin, self.size), self._reach[number], self.columns[number]
        self.inputs[rows], self.ids[rows], self.times[rows], self.wants[rows] = number, new.ids, new.times, new.wants
        self.until[rows] = FOREVER if reach is None else new.times + reach
        self.active[rows] = False
        self.keys[:columns, rows] = new.keys
        for line, mixed in enumerate(self._mixed[number], columns):
            self.keys[line, rows] = hash_columns(new.keys, mixed)
        return np.arange(begin, self.size)

    def tuples_of(self, number: int) -> NewTuples:
        """The tuples of an input, as they were added."""
        rows = self.rows_of(number)
        return NewTuples(self.ids[rows], self.times[rows], self.keys[: self.columns[number], rows], self.wants[rows])

    def unwant(self, tuples: Numbers, bits: np.uint64) -> None:
        """Remove queries from the bits of tuples; a tuple without bits is removed with the expired ones."""
        self.wants[tuples] &= ~bits
        self.until[tuples[self.wants[tuples] == 0]] = NEVER

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

    @property
    def bytes(self) -> int:
        """The memory that its tuples take."""
        return self.size * (8 * (4 + len(self.keys)) + 2)


_ARRAYS = ("inputs", "ids", "times", "until", "wants", "active", "keys")


def hash_columns(keys: Numbers, columns: Sequence[int]) -> Numbers:
    """A hash of several key columns."""
    mixed = np.zeros(keys.shape[1], np.uint64)
    for column in columns:
        mixed = (mixed ^ keys[column].view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(32)
    return mixed.view(np.int64)


def _hashed_columns(graphs: Sequence[JoinGraph], number: int) -> list[tuple[int, ...]]:
    """The lists of several columns by which an input is compared with another."""
    edges = (graph.edge(number, other) for graph in graphs for other in graph.neighbors(number))
    lists = dict.fromkeys(edge.columns(number) for edge in edges if edge is not None)
    return [columns for columns in lists if len(columns) > 1]


Array = TypeVar("Array", bound=npt.NDArray[np.generic])


def grown(array: Array, capacity: int) -> Array:
    """A copy whose last axis has another capacity."""
    copy = np.empty((*array.shape[:-1], capacity), array.dtype)
    copy[..., : array.shape[-1]] = array
    return copy  # type: ignore[return-value]
