"""The graph of a join: its inputs, and the equalities by which two of them are joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class JoinEdge:
    """The equalities between two inputs; those of index `n` in both lists of columns are compared."""

    left: int
    right: int
    left_columns: tuple[int, ...]
    right_columns: tuple[int, ...]

    def columns(self, number: int) -> tuple[int, ...]:
        """The key columns of one of the two inputs."""
        return self.left_columns if number == self.left else self.right_columns


@dataclass(frozen=True)
class JoinGraph:
    """The inputs of a join; the key columns of each are numbered from 0."""

    columns: tuple[int, ...]
    """The number of key columns of each input."""
    edges: tuple[JoinEdge, ...]
    """At most one for each pair of inputs."""
    tables: frozenset[int] = frozenset()
    """The inputs that never get another tuple."""

    def __len__(self) -> int:
        """The number of inputs."""
        return len(self.columns)

    @cached_property
    def _by_pair(self) -> dict[tuple[int, int], JoinEdge]:
        pairs = {(edge.left, edge.right): edge for edge in self.edges}
        return pairs | {(edge.right, edge.left): edge for edge in self.edges}

    def edge(self, first: int, second: int) -> JoinEdge | None:
        """The equalities between two inputs; None if there are none."""
        return self._by_pair.get((first, second))

    def neighbors(self, number: int) -> list[int]:
        """The inputs that an input is compared with."""
        return [other for other in range(len(self)) if (number, other) in self._by_pair]

    def are_joined(self, left: Sequence[int], right: Sequence[int]) -> bool:
        """Whether an equality connects two sets of inputs."""
        return any((first, second) in self._by_pair for first in left for second in right)
