"""The eddy itself: where a block of tuples has been, and where it goes next (CACQ §2.1 and §3)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tureen.eddy.operators import Flow, Operator
from tureen.eddy.policies import Policy
from tureen.eddy.statistics import Observation, Statistics


@dataclass(frozen=True, slots=True)
class Lineage:
    """Where a block of tuples has been, and who still waits for it (CACQ §2.2).

    A block may be one tuple. All its tuples go together and leave as soon as no query is undecided about them.
    Which tuples were rejected by which query is kept by who has the tuples.
    """

    tuples: int
    """How many are left."""
    undecided: frozenset[int]
    """The queries that are undecided about some tuple that is left."""
    done: frozenset[str] = frozenset()
    """The names of the operators that were visited."""


class Eddy:
    """Routes blocks of tuples by a policy. It is asked where they go and told what came of it; it does nothing.

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
        """Start without experience, which `window` lets expire (see `Statistics`).

        A sparing eddy sends no tuples to an operator that none of their undecided queries needs. CACQ's sends
        a tuple to any operator until nobody is undecided about it.
        """
        self.flow = flow
        self.policy = policy
        self.statistics = Statistics(window)
        self._sparing = sparing

    def change(self, flow: Flow) -> None:
        """Go on with other queries, between blocks; what is known of operators stays known."""
        self.flow = flow

    def admit(self, tuples: int) -> Lineage:
        """Let a block of tuples in."""
        self.statistics = self.statistics.admit(tuples)
        return Lineage(tuples, self.flow.unfinished(frozenset()))

    def ready(self, block: Lineage) -> list[Operator]:
        """The operators that the block can go to."""
        if not block.tuples or not block.undecided:
            return []
        left = [one for one in self.flow.operators if one.name not in block.done]
        return [one for one in left if not self._sparing or not block.undecided.isdisjoint(one.queries)]

    def next(self, block: Lineage) -> Operator | None:
        """Where the block goes next, or None when all is decided."""
        ready = self.ready(block)
        return self.policy.choose(ready, self.statistics) if ready else None

    def observe(self, block: Lineage, seen: Observation, undecided: frozenset[int]) -> Lineage:
        """Learn what came of a visit: the block as it goes on, for the queries that are undecided about it."""
        self.statistics = self.statistics.after(seen)
        return replace(block, tuples=seen.tuples_out, undecided=undecided, done=block.done | {seen.operator.name})
