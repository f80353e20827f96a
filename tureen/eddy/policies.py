"""Routing policies (CACQ §3): which of the ready operators comes next."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol

from tureen.eddy.operators import Operator
from tureen.eddy.orders import Work, best_order, worst_order
from tureen.eddy.statistics import Statistics


class Policy(Protocol):
    """A stateless rule to choose an operator; all observations are in the statistics."""

    def choose(self, ready: Sequence[Operator], statistics: Statistics) -> Operator:
        """Choose one of the ready operators, of which there is at least one."""


class Random:
    """A random operator, each with the same probability (CACQ §3)."""

    def __init__(self, generator: random.Random) -> None:
        """Draw from this random generator."""
        self._generator = generator

    def choose(self, ready: Sequence[Operator], statistics: Statistics) -> Operator:  # noqa: ARG002
        """Choose one of the ready operators at random."""
        return self._generator.choice(ready)


class Fixed:
    """The same order for every tuple: a static plan.

    >>> a, b, c = (Operator(name, frozenset({0})) for name in "abc")
    >>> Fixed(["b", "a"]).choose([a, b, c], Statistics()).name
    'b'
    """

    def __init__(self, order: Sequence[str]) -> None:
        """Order operators by name; those not in `order` come last, in the order of their names."""
        self._position = {name: position for position, name in enumerate(order)}

    def choose(self, ready: Sequence[Operator], statistics: Statistics) -> Operator:  # noqa: ARG002
        """Choose the first of the ready operators."""
        return min(ready, key=lambda operator: (self._position.get(operator.name, len(self._position)), operator.name))


def optimal(operators: Sequence[Operator], work: Work) -> Fixed:
    """The order of least cost, given the cost of every order (CACQ §3)."""
    return Fixed(best_order([operator.name for operator in operators], work))


def worst(operators: Sequence[Operator], work: Work) -> Fixed:
    """The order of greatest cost, a bound for every policy (CACQ §3)."""
    return Fixed(worst_order([operator.name for operator in operators], work))
