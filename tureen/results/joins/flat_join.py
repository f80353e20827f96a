"""Flat joins: the join whose changes are read for a query, and which of its inputs a row consists of.

An inner join is its own. The partners of a semi join (EXISTS, IN) are joined like any others, but only the first
combination of a row's tuples with partners is a change: with it the row appears.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tureen.join import InnerJoin, Join, JoinFactor, JoinKind, JoinTree, visible_leaves
from tureen.joining.join_input import Flags, Numbers


class FlatJoin(NamedTuple):
    """An inner join of inputs, and those of them whose tuples make up a row."""

    join: InnerJoin
    visible: tuple[int, ...]

    @property
    def has_hidden(self) -> bool:
        """Whether partners are not part of the row."""
        return len(self.visible) < len(self.join.sides)


def flat_join(tree: JoinTree) -> FlatJoin | None:
    """The flat join of a tree of inner and semi joins; None for any other.

    >>> flat_join(Join(JoinKind.SEMI, InnerJoin((0, 1)), 2))
    FlatJoin(join=InnerJoin(sides=(0, 1, 2), factors=()), visible=(0, 1))
    """
    sides: list[int] = []
    factors: list[JoinFactor] = []

    def add(tree: JoinTree) -> bool:
        match tree:
            case int():
                sides.append(tree)
                return True
            case InnerJoin(inner, conditions):
                factors.extend(conditions)
                return all(map(add, inner))
            case Join(JoinKind.SEMI, left, right, conditions):
                factors.extend(conditions)
                return add(left) and add(right)
            case _:
                return False

    if not add(tree):
        return None
    return FlatJoin(InnerJoin(tuple(sides), tuple(factors)), tuple(visible_leaves(tree)))


def first_of_each(ids: Numbers) -> Numbers:
    """The numbers of the columns that are different from all columns before them.

    >>> first_of_each(np.array([[1, 1, 2, 1], [5, 5, 5, 6]])).tolist()
    [0, 2, 3]
    """
    return np.sort(np.unique(ids, axis=1, return_index=True)[1])


def occurs_in(ids: Numbers, others: Numbers) -> Flags:
    """For each column, whether it is one of other columns.

    >>> occurs_in(np.array([[1, 2], [5, 5]]), np.array([[2, 3], [5, 5]])).tolist()
    [False, True]
    """
    numbers = np.unique(np.concatenate([ids, others], axis=1), axis=1, return_inverse=True)[1].reshape(-1)
    return np.isin(numbers[: ids.shape[1]], numbers[ids.shape[1] :])
