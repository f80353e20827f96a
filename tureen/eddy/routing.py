"""The eddy itself: which operators a block of tuples has visited, and which comes next (CACQ §2.1 and §3)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tureen.eddy.operators import Flow, Operator
from tureen.eddy.policies import Policy
from tureen.eddy.statistics import Observation, Statistics


@dataclass(frozen=True, slots=True)
class Lineage:
    """The operators that a block of tuples has visited, and the queries that are undecided about it (CACQ §2.2).

    A block may be one tuple. Its tuples stay together, and leave the flow as soon as no query is undecided about them.
    The caller records which query rejected which tuples.
    """

    tuples: int
    """The number of remaining tuples."""
    undecided: frozenset[int]
    """The queries that are undecided about a remaining tuple."""
    visited: frozenset[str] = frozenset()
    """The names of the visited operators."""


class Eddy:
    """Routes blocks of tuples by a policy: `next` says where a block goes, `observe` takes the result of a visit.

    >>> from tureen.eddy.policies import Fixed
    >>> flow = Flow((Operator("a", frozenset({0})), Operator("b", frozenset({0}))), 1)
    >>> eddy = Eddy(flow, Fixed(["b", "a"]))
    >>> block = eddy.admit(10)
    >>> first = eddy.next(block)
    >>> block = eddy.observe(block, Observation(first, 10, 0, eliminated=10), frozenset())
    >>> first.name, eddy.next(block)
    ('b', None)
    """

    def __init__(self, flow: Flow, policy: Policy, *, window: int | None = None, sparing: bool = True) -> None:
        """Start with empty statistics, which expire by `window` (see `Statistics`).

        A sparing eddy sends no tuples to an operator that none of their undecided queries needs. CACQ's sends a tuple
        to any operator until no query is undecided about it.
        """
        self.flow = flow
        self.policy = policy
        self.statistics = Statistics(window)
        self._sparing = sparing

    def change(self, flow: Flow) -> None:
        """Continue with other queries, between blocks; the statistics stay."""
        self.flow = flow

    def admit(self, tuples: int) -> Lineage:
        """Admit a block of tuples to the flow."""
        self.statistics = self.statistics.admit(tuples)
        return Lineage(tuples, self.flow.unfinished(frozenset()))

    def ready(self, block: Lineage) -> list[Operator]:
        """The operators that the block can visit next."""
        if not block.tuples or not block.undecided:
            return []
        remaining = [operator for operator in self.flow.operators if operator.name not in block.visited]
        return [
            operator for operator in remaining if not self._sparing or not block.undecided.isdisjoint(operator.queries)
        ]

    def next(self, block: Lineage) -> Operator | None:
        """The operator that the block visits next, or None if no query is undecided."""
        ready = self.ready(block)
        return self.policy.choose(ready, self.statistics) if ready else None

    def observe(self, block: Lineage, observation: Observation, undecided: frozenset[int]) -> Lineage:
        """Record the result of a visit; returns the block's lineage after it, with the queries still undecided."""
        self.statistics = self.statistics.after(observation)
        return replace(
            block,
            tuples=observation.tuples_out,
            undecided=undecided,
            visited=block.visited | {observation.operator.name},
        )
