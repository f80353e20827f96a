"""Kept or evaluated: the joins whose results are kept for later invocations.

Keeping a join costs with every arriving tuple, which is joined with the tuples of the other streams. Evaluating it
costs with every invocation. The decision is a pure function of rates.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from tureen.eddy.materializing import PAYBACK, SURE

TUPLE_PRICE = 500.0
"""Nanoseconds that it takes to join an arriving tuple and to write its results, as measured on an AMD EPYC."""


@dataclass(frozen=True, slots=True)
class JoinDemand:
    """The load of a join: invocations per second, nanoseconds of each evaluation, and tuples per second."""

    join: int
    invocations: float
    evaluation: float
    arrivals: float
    held: float
    """The number of stored tuples of its streams."""

    @property
    def saved(self) -> float:
        """Nanoseconds per second that invocations save if its results are kept."""
        return self.invocations * self.evaluation

    def spent(self, *, kept: bool) -> float:
        """Nanoseconds per second that keeping costs, including that of the stored tuples if it is not kept yet."""
        return TUPLE_PRICE * (self.arrivals + (0.0 if kept else self.held / PAYBACK))


def worth_keeping(demands: Iterable[JoinDemand], kept: Collection[int], cpu: float) -> frozenset[int]:
    """The joins that should be kept: those that save more than they cost, the best first, within `cpu` ns per second.

    >>> often, seldom = JoinDemand(1, 1e3, 1e6, 1e4, 1e6), JoinDemand(2, 0.001, 1e6, 1e4, 1e6)
    >>> sorted(worth_keeping([often, seldom], set(), 1e9))
    [1]
    """
    offers = []
    for demand in demands:
        is_kept = demand.join in kept
        cost = demand.spent(kept=is_kept)
        if (demand.saved * SURE >= cost) if is_kept else demand.saved > cost * SURE:
            offers.append((demand.saved / max(cost, 1e-9), cost, demand.join))
    chosen = set()
    for _, cost, join in sorted(offers, key=lambda offer: (-offer[0], offer[2])):
        if cost <= cpu:
            cpu -= cost
            chosen.add(join)
    return frozenset(chosen)
