"""Routing of new tuples through the SteMs and conditions of a join (CACQ §2.4 and §3).

Tuples are routed in blocks. Those of each input have an eddy of their own, because they meet other SteMs with another
fan-out. Which operators a block can visit depends on what it has been joined with, so the join itself says which are
ready.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tureen.eddy.operators import Operator
from tureen.eddy.policies import Fixed, Policy, Random
from tureen.eddy.statistics import Observation, Statistics
from tureen.eddy.tickets import Tickets, narrowing

STATISTICS_WINDOW = 4_096
"""Observations count until at most twice this many tuples have been admitted after them."""

SETTLED_BLOCKS = 4
"""An order counts as changed after this many blocks in a row were routed in the new one."""


def routing_policy(name: str, order: Sequence[str], seed: int = 0) -> Policy:
    """The policy of a name; `order` is that of the fixed one."""
    match name:
        case "fixed":
            return Fixed(order)
        case "random":
            return Random(random.Random(seed))
        case "tickets":
            return Tickets(random.Random(seed), narrowing)
    raise ValueError(f"unknown routing policy '{name}'")


class OrderChange(NamedTuple):
    """The order of operators before, and the one that replaced it."""

    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass
class InputRouting:
    """The eddy of one input's new tuples."""

    statistics: Statistics = field(default_factory=lambda: Statistics(STATISTICS_WINDOW))
    order: tuple[str, ...] = ()
    """The settled order."""
    changes: int = 0
    _next: tuple[str, ...] = ()
    _blocks: int = 0

    def finish(self, order: tuple[str, ...]) -> OrderChange | None:
        """Record the whole order of a block; the change if it settles another one."""
        self._blocks = self._blocks + 1 if order == self._next else 1
        self._next = order
        if order == self.order or (self.order and self._blocks < SETTLED_BLOCKS):
            return None
        before, self.order = self.order, order
        if not before:
            return None
        self.changes += 1
        return OrderChange(before, order)


class JoinRouter:
    """Chooses the operator that comes next, and counts what operators do.

    >>> router = JoinRouter(Fixed(["b", "a"]))
    >>> a, b = Operator("a", frozenset()), Operator("b", frozenset())
    >>> router.admit("c", 10)
    >>> router.choose("c", [a, b]).name
    'b'
    >>> router.observe("c", Observation(b, 10, 30, cost=0.5))
    >>> router.counters()[0]["visits"]
    {'b': {'tuples': 10, 'fan_out': 3.0, 'cost': 0.05}}
    """

    def __init__(self, policy: Policy) -> None:
        """Route by that policy."""
        self._policy = policy
        self._inputs: dict[str, InputRouting] = {}

    def _routing(self, origin: str) -> InputRouting:
        return self._inputs.setdefault(origin, InputRouting())

    def admit(self, origin: str, tuples: int) -> None:
        """Admit a block of new tuples of an input."""
        routing = self._routing(origin)
        routing.statistics = routing.statistics.admit(tuples)

    def choose(self, origin: str, ready: Sequence[Operator]) -> Operator:
        """The operator that a block visits next, of those that it can visit."""
        return self._policy.choose(ready, self._routing(origin).statistics) if len(ready) > 1 else ready[0]

    def observe(self, origin: str, observation: Observation) -> None:
        """Record the result of a visit."""
        routing = self._routing(origin)
        routing.statistics = routing.statistics.after(observation)

    def finish(self, origin: str, order: Sequence[str], names: Sequence[str]) -> OrderChange | None:
        """Record the order in which a block has visited operators; the change if it settles a new one.

        A block whose last tuple was rejected does not visit the remaining ones of all `names`: these stay as they were.
        """
        routing = self._routing(origin)
        known = [name for name in routing.order if name in names]
        rest = [name for name in dict.fromkeys([*known, *names]) if name not in order]
        return routing.finish((*order, *rest))

    @property
    def order_changes(self) -> int:
        """How often the order of an input's operators changed."""
        return sum(routing.changes for routing in self._inputs.values())

    def totals(self) -> dict[str, int]:
        """Sums over all inputs: tuples routed, visits of a tuple to an operator, and tuples that these returned."""
        statistics = [routing.statistics for routing in self._inputs.values()]
        return {
            "tuples": sum(of_input.admitted for of_input in statistics),
            "visits": sum(of_input.visits for of_input in statistics),
            "matches": sum(tally.tuples_out for of_input in statistics for tally in of_input.total.values()),
        }

    def counters(self) -> list[dict[str, object]]:
        """For each input: its order of operators, and the tuples, fan-out and cost per tuple of each of them."""
        return [
            {
                "input": origin,
                "tuples": routing.statistics.admitted,
                "order": list(routing.order),
                "order_changes": routing.changes,
                "visits": {
                    name: {
                        "tuples": tally.tuples_in,
                        "fan_out": round(tally.tuples_out / tally.tuples_in, 4) if tally.tuples_in else 0.0,
                        "cost": tally.cost / tally.tuples_in if tally.tuples_in else 0.0,
                    }
                    for name, tally in sorted(routing.statistics.total.items())
                },
            }
            for origin, routing in sorted(self._inputs.items())
        ]
