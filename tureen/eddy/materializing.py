"""Eager or lazy: which clauses to materialize (PSoup-P), and which to evaluate at each invocation (NoMat).

Materializing costs with every arriving tuple, which is matched and whose matches are written. Evaluating costs with
every invocation, which looks up the tuples of the window in their index. So the choice depends on these two rates and
on the selectivity of a clause. The decision is a pure function of rates.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prices:
    """Costs in nanoseconds.

    The first two are per tuple of an invocation's window, and are measured at invocations; the others are per arriving
    tuple and per byte of a result, as measured once on two cores of an AMD EPYC.
    """

    evaluate: float = 0.2
    look_up: float = 0.05
    match: float = 0.1
    write: float = 1.5
    rewrites: float = 3.0
    """How often a tuple is matched and written while its runs are merged."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of materializing: nanoseconds of a core per second, and bytes on disk."""

    cpu: float = 250e6
    bytes: float = 4 << 30


@dataclass(frozen=True, slots=True)
class Demand:
    """The load of a clause: per second, the tuples in the windows of its invocations and the tuples that arrive."""

    clause: int
    reads: float
    selectivity: float
    arrivals: float
    held: float
    """The number of stored tuples."""
    functions: float = 0.0
    """The nanoseconds of calling its user functions for a tuple, at arrival as well as when asked for."""


PAYBACK = 60.0
"""Seconds within which the cost of matching the stored tuples must be recovered."""

SURE = 2.0
"""How many times cheaper the other choice must be before a clause changes, so that it does not flip back and forth."""


def bytes_per_tuple(selectivity: float) -> float:
    """The size of a clause's results: two bytes per row in a list, or a bit per tuple.

    >>> bytes_per_tuple(0.01), bytes_per_tuple(0.5)
    (0.02, 0.125)
    """
    return min(2 * selectivity, 1 / 8)


def saved(demand: Demand, prices: Prices) -> float:
    """Nanoseconds per second that an eager clause saves at its invocations."""
    return demand.reads * max(0.0, prices.evaluate + demand.functions - prices.look_up)


def spent(demand: Demand, prices: Prices, *, eager: bool) -> float:
    """Nanoseconds per second that an eager clause costs, including the cost of becoming eager if it is not yet."""
    per_tuple = prices.match + demand.functions + bytes_per_tuple(demand.selectivity) * prices.write
    return per_tuple * (demand.arrivals * prices.rewrites + (0.0 if eager else demand.held / PAYBACK))


def eager_clauses(demands: Iterable[Demand], eager: Collection[int], prices: Prices, budget: Budget) -> frozenset[int]:
    """The clauses that should be eager: those that save more than they cost, the best first, within the budget.

    >>> often, seldom = Demand(1, 1e9, 0.01, 1e4, 1e6), Demand(2, 1e3, 0.01, 1e4, 1e6)
    >>> sorted(eager_clauses([often, seldom], set(), Prices(), Budget()))
    [1]
    """
    offers: list[tuple[float, float, Demand]] = []
    for demand in demands:
        is_eager = demand.clause in eager
        gain, cost = saved(demand, prices), spent(demand, prices, eager=is_eager)
        if (gain * SURE >= cost) if is_eager else (gain > cost * SURE):
            offers.append((gain, cost, demand))
    offers.sort(key=lambda offer: (-offer[0] / max(offer[1], 1e-9), offer[2].clause))
    cpu, space = budget.cpu, budget.bytes
    chosen: set[int] = set()
    for _, cost, demand in offers:
        size = demand.held * bytes_per_tuple(demand.selectivity)
        if cost <= cpu and size <= space:
            cpu, space = cpu - cost, space - size
            chosen.add(demand.clause)
    return frozenset(chosen)
