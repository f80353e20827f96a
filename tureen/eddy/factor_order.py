"""The order in which the factors of one clause are evaluated, by their statistics."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

from tureen.eddy.orders import rank_order
from tureen.eddy.statistics import Tally

Item = TypeVar("Item", bound=Hashable)


def order_factors(factors: Sequence[Item], statistics: Mapping[Item, Tally]) -> tuple[Item, ...]:
    """Factors by decreasing (1 - pass rate) / cost, the eddy's order for a single query (CACQ §2.1).

    Rates and costs are smoothed; a factor without statistics counts as passing half of its tuples at the average cost
    of the others. The sort is stable, so a clause in canonical order has only one order.

    >>> tallies = {"cheap": Tally(1000, 500, cost=1000.0), "costly": Tally(1000, 400, cost=90000.0)}
    >>> order_factors(["costly", "new", "cheap"], tallies)
    ('cheap', 'new', 'costly')
    """
    tallies = [statistics.get(factor, Tally()) for factor in factors]
    tuples = sum(tally.tuples_in for tally in tallies)
    average_cost = sum(tally.cost for tally in tallies) / tuples if tuples else 1.0
    return rank_order(factors, [tally.profile(average_cost) for tally in tallies])
