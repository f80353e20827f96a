"""Eager or lazy: for which clauses it pays to keep results ready (PSoup-P), and which to evaluate when asked (NoMat).

Keeping results costs with every tuple that arrives: it is matched, and what matches is written. Evaluating costs with
every invocation: the tuples of the window are looked at through their index. So it is a matter of two rates, and of how
much a clause matches. The decision is pure: rates in, clauses out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prices:
    """What things cost, in nanoseconds.

    The first two are for each tuple of an invocation's window, and are measured as invocations go by; the others are
    for each arriving tuple and each byte of a result, as measured once on two cores of an AMD EPYC.
    """

    evaluate: float = 0.2
    look_up: float = 0.05
    match: float = 0.1
    write: float = 1.5
    rewrites: float = 3.0
    """How often a tuple is matched and written as its runs are merged."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How much keeping results may take: nanoseconds of a core in each second, and bytes on the disk."""

    cpu: float = 250e6
    bytes: float = 4 << 30


@dataclass(frozen=True, slots=True)
class Demand:
    """What is known of a clause: per second, how many tuples it is asked about and how many arrive."""

    clause: int
    asked: float
    selectivity: float
    arrivals: float
    held: float
    """How many tuples there are."""


PAYBACK = 60.0
"""Seconds within which the work of matching the tuples that are there already must be earned."""

SURE = 2.0
"""By what factor one side must be cheaper for a clause to change sides, so that it does not go to and fro."""


def bytes_per_tuple(selectivity: float) -> float:
    """How large a clause's results are: two bytes a row in a list, or a bit for every tuple.

    >>> bytes_per_tuple(0.01), bytes_per_tuple(0.5)
    (0.02, 0.125)
    """
    return min(2 * selectivity, 1 / 8)


def saved(demand: Demand, prices: Prices) -> float:
    """Nanoseconds of invocations that kept results save in a second."""
    return demand.asked * max(0.0, prices.evaluate - prices.look_up)


def spent(demand: Demand, prices: Prices, *, kept: bool) -> float:
    """Nanoseconds of a second that keeping results takes, with what it takes to begin if they are not kept yet."""
    each = prices.match + bytes_per_tuple(demand.selectivity) * prices.write
    return each * (demand.arrivals * prices.rewrites + (0.0 if kept else demand.held / PAYBACK))


def worth_keeping(demands: Iterable[Demand], kept: Collection[int], prices: Prices, budget: Budget) -> frozenset[int]:
    """The clauses whose results should be kept: those that save more than they cost, the best first, within the budget.

    >>> often, seldom = Demand(1, 1e9, 0.01, 1e4, 1e6), Demand(2, 1e3, 0.01, 1e4, 1e6)
    >>> sorted(worth_keeping([often, seldom], set(), Prices(), Budget()))
    [1]
    """
    offers: list[tuple[float, float, Demand]] = []
    for demand in demands:
        here = demand.clause in kept
        gain, cost = saved(demand, prices), spent(demand, prices, kept=here)
        if (gain * SURE >= cost) if here else (gain > cost * SURE):
            offers.append((gain, cost, demand))
    offers.sort(key=lambda offer: (-offer[0] / max(offer[1], 1e-9), offer[2].clause))
    cpu, room = budget.cpu, budget.bytes
    chosen: set[int] = set()
    for _, cost, demand in offers:
        size = demand.held * bytes_per_tuple(demand.selectivity)
        if cost <= cpu and size <= room:
            cpu, room = cpu - cost, room - size
            chosen.add(demand.clause)
    return frozenset(chosen)
