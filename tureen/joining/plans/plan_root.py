"""The joins whose results a plan makes, each the root of a tree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tureen.joining.plans.join_graph import JoinGraph
from tureen.joining.plans.plan_shape import PlanShape
from tureen.joining.plans.plan_store import Wants

EVERYBODY = np.uint64(2**64 - 1)
"""The bits of all queries."""

MOST_ROOTS = 8
"""The most joins of one plan: each has as many bits of those that want tuples."""


@dataclass(frozen=True)
class PlanRoot:
    """A join of a plan."""

    graph: JoinGraph
    """Its equalities, between inputs of the plan; these are the same for all joins of the plan."""
    inputs: tuple[int, ...]
    """Its own inputs, in the order in which its joined tuples are reported."""
    shape: PlanShape
    bits: np.uint64 = EVERYBODY
    """The bits of its queries. A tuple without any of them is not in its results."""
    jit: bool | None = False
    """Whether tuples without partners are suspended; None leaves it to the switch of the plan."""


@dataclass
class RootCounts:
    """The tuples of a join so far."""

    arrived: int = 0
    emitted: int = 0
    """Joined tuples."""
    suspended: int = 0
    """New tuples that had no partners when they arrived."""
    resumed: int = 0
    purged: int = 0
    """Tuples that punctuations have removed."""
    unresumable: int = 0
    """Those of them that were suspended then."""


def bits_of_root(number: int, roots: int) -> np.uint64:
    """The bits of the queries of a join, if a plan has that many."""
    return EVERYBODY if roots == 1 else np.uint64(0xFF << 8 * number)


def wants_of_root(wants: Wants, number: int, roots: int) -> Wants:
    """Any 64 bits per tuple, as the bits of a join.

    >>> [hex(bits) for bits in wants_of_root(np.array([1 << 40, 6], np.uint64), 1, 2).tolist()]
    ['0x100', '0x600']
    """
    if roots == 1:
        return wants
    folded = np.bitwise_or.reduce(wants.reshape(-1, 1).view(np.uint8), axis=1).astype(np.uint64)
    shifted: Wants = folded << np.uint64(8 * number)
    return shifted
