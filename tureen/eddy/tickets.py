"""Lottery scheduling with tickets (CACQ §3): operators that reject tuples win the chance to see them early."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from tureen.eddy.operators import Operator
from tureen.eddy.statistics import Statistics, Tally

Credit = Callable[[Operator, Tally], float]
"""How many tickets an operator has earned by what it did."""


def consumed(operator: Operator, tally: Tally) -> float:  # noqa: ARG001
    """A ticket for each tuple taken, less one for each given back: the eddy of a single query (CACQ §3)."""
    return tally.tuples_in - tally.tuples_out


def weighted(operator: Operator, tally: Tally) -> float:
    """As many tickets for each tuple as the operator applies predicates: CACQ's own variant (§3).

    >>> weighted(Operator("a", frozenset({0, 1, 2})), Tally(tuples_in=10, tuples_out=4))
    18
    """
    return operator.predicates * (tally.tuples_in - tally.tuples_out)


def eliminated(operator: Operator, tally: Tally) -> float:  # noqa: ARG001
    """A ticket for each query that rejected a tuple, also where other queries still wait for that tuple.

    The other credits count only tuples that leave the flow, and those leave at their last operator. Where queries
    share few columns most tuples visit most operators, and nothing else would tell these apart.
    """
    return tally.eliminated


class Tickets:
    """The winner of a lottery in which each operator has the tickets that it earned lately (CACQ §3).

    An operator that lets more through than it takes, such as a SteM with many matches, would have less than none:
    every operator keeps at least `least`, which is also what lets a new one be tried. In the paper slow operators
    hold tuples up by their full queues. There are no queues here, so tickets are divided by the cost of a
    tuple, as a multiple of what it costs on the average of those that are ready.
    """

    def __init__(self, chance: random.Random, credit: Credit = weighted, least: float = 1.0) -> None:
        """Draw from this generator."""
        self._chance = chance
        self._credit = credit
        self._least = least

    def choose(self, ready: Sequence[Operator], statistics: Statistics) -> Operator:
        """One of those that are ready, drawn by tickets."""
        if len(ready) == 1:
            return ready[0]
        return self._chance.choices(ready, self.holdings(ready, statistics))[0]

    def holdings(self, operators: Sequence[Operator], statistics: Statistics) -> list[float]:
        """How many tickets each operator has.

        >>> a, b = Operator("a", frozenset({0})), Operator("b", frozenset({0}))
        >>> seen = Statistics(total={"a": Tally(100, 10, 90, 100.0), "b": Tally(10, 9, 1, 10.0)})
        >>> Tickets(random.Random(1)).holdings([a, b], seen)
        [90.0, 1.0]
        """
        tallies = [statistics.lately(one.name) for one in operators]
        costs = [tally.cost / tally.tuples_in if tally.tuples_in else 0.0 for tally in tallies]
        known = [cost for cost in costs if cost > 0]
        usual = sum(known) / len(known) if known else 1.0
        return [
            max(self._least, self._credit(one, tally) * usual / (cost if cost > 0 else usual))
            for one, tally, cost in zip(operators, tallies, costs, strict=True)
        ]
