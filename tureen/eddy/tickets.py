"""Lottery scheduling with tickets (CACQ §3): operators that reject tuples win the chance to see them early."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from tureen.eddy.operators import Operator
from tureen.eddy.statistics import Statistics, Tally

Credit = Callable[[Operator, Tally], float]
"""The number of tickets that an operator has earned, given its tally."""


def consumed(operator: Operator, tally: Tally) -> float:  # noqa: ARG001
    """A ticket for each tuple that enters, minus one for each that leaves: the eddy of a single query (CACQ §3)."""
    return tally.tuples_in - tally.tuples_out


def weighted(operator: Operator, tally: Tally) -> float:
    """For each consumed tuple a ticket per predicate of the operator: CACQ's own variant (§3).

    >>> weighted(Operator("a", frozenset({0, 1, 2})), Tally(tuples_in=10, tuples_out=4))
    18
    """
    return operator.predicates * (tally.tuples_in - tally.tuples_out)


def eliminated(operator: Operator, tally: Tally) -> float:  # noqa: ARG001
    """A ticket for each query that rejected a tuple, even if other queries are undecided about that tuple.

    The other credits count only tuples that leave the flow, which happens at their last operator. If queries share few
    columns, most tuples visit most operators, and these credits would not distinguish them.
    """
    return tally.eliminated


def narrowing(operator: Operator, tally: Tally) -> float:  # noqa: ARG001
    """For each tuple that enters, a share of a ticket that falls steeply with the fan-out.

    `consumed` gives no ticket to a SteM with a fan-out above one, so that it would not tell two of them apart.

    >>> stem = Operator("a", frozenset())
    >>> round(narrowing(stem, Tally(100, 10))), narrowing(stem, Tally(100, 100))
    (68, 6.25)
    """
    return tally.tuples_in * (1 + tally.tuples_out / tally.tuples_in) ** -_STEEPNESS if tally.tuples_in else 0.0


_STEEPNESS = 4


class Tickets:
    """The winner of a lottery in which each operator has the tickets that it earned recently (CACQ §3).

    An operator with more output than input, such as a SteM with many matches, would have a negative number of tickets:
    every operator has at least `minimum`, so that new operators are tried too. In the paper slow operators delay tuples
    by their full queues. There are no queues here, so tickets are divided by the cost per tuple, relative to the
    average of the ready operators.
    """

    def __init__(self, generator: random.Random, credit: Credit = weighted, minimum: float = 1.0) -> None:
        """Draw from this random generator."""
        self._generator = generator
        self._credit = credit
        self._minimum = minimum

    def choose(self, ready: Sequence[Operator], statistics: Statistics) -> Operator:
        """Choose one of the ready operators by lottery."""
        if len(ready) == 1:
            return ready[0]
        return self._generator.choices(ready, self.holdings(ready, statistics))[0]

    def holdings(self, operators: Sequence[Operator], statistics: Statistics) -> list[float]:
        """The number of tickets of each operator.

        >>> a, b = Operator("a", frozenset({0})), Operator("b", frozenset({0}))
        >>> statistics = Statistics(total={"a": Tally(100, 10, 90, 100.0), "b": Tally(10, 9, 1, 10.0)})
        >>> Tickets(random.Random(1)).holdings([a, b], statistics)
        [90.0, 1.0]
        """
        tallies = [statistics.recent_tally(operator.name) for operator in operators]
        costs = [tally.cost / tally.tuples_in if tally.tuples_in else 0.0 for tally in tallies]
        positive_costs = [cost for cost in costs if cost > 0]
        average_cost = sum(positive_costs) / len(positive_costs) if positive_costs else 1.0
        return [
            max(self._minimum, self._credit(operator, tally) * average_cost / (cost if cost > 0 else average_cost))
            for operator, tally, cost in zip(operators, tallies, costs, strict=True)
        ]
