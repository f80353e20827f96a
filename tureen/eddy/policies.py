"""Routing policies (CACQ §3): which of the operators that are ready comes next."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol

from tureen.eddy.operators import Operator
from tureen.eddy.orders import Work, best_order, worst_order
from tureen.eddy.statistics import Statistics


class Policy(Protocol):
    """A way to choose. It remembers nothing: what was observed is in the statistics."""

    def choose(self, ready: Sequence[Operator], statistics: Statistics) -> Operator:
        """One of the operators that are ready; there is at least one."""


class Random:
    """Any operator, each with the same chance (CACQ §3)."""

    def __init__(self, chance: random.Random) -> None:
        """Draw from this generator."""
        self._chance = chance

    def choose(self, ready: Sequence[Operator], statistics: Statistics) -> Operator:  # noqa: ARG002
        """One of those that are ready, drawn."""
        return self._chance.choice(ready)


class Fixed:
    """The same order for every tuple: a static plan.

    >>> a, b, c = (Operator(name, frozenset({0})) for name in "abc")
    >>> Fixed(["b", "a"]).choose([a, b, c], Statistics()).name
    'b'
    """

    def __init__(self, order: Sequence[str]) -> None:
        """Keep the order of the names; operators without a place in it come last, in the order of their names."""
        self._place = {name: place for place, name in enumerate(order)}

    def choose(self, ready: Sequence[Operator], statistics: Statistics) -> Operator:  # noqa: ARG002
        """The first of those that are ready."""
        return min(ready, key=lambda one: (self._place.get(one.name, len(self._place)), one.name))


def optimal(operators: Sequence[Operator], work: Work) -> Fixed:
    """The order that costs least, for who knows beforehand what every order would cost (CACQ §3)."""
    return Fixed(best_order([one.name for one in operators], work))


def worst(operators: Sequence[Operator], work: Work) -> Fixed:
    """The order that costs most: what no policy can be worse than (CACQ §3)."""
    return Fixed(worst_order([one.name for one in operators], work))
