"""Orders of operators whose behaviour is known, and their costs, as a baseline for adaptive policies.

The work of an operator depends on the set of operators before it, but not on their order, as the remaining tuples are
the same. So the best order is a shortest path from no operator to all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import combinations
from math import prod
from typing import TypeVar

from tureen.eddy.operators import Flow
from tureen.eddy.statistics import Profile

Work = Callable[[frozenset[str], str], float]
"""The cost of visiting an operator after a set of operators, per tuple that entered the flow."""

Item = TypeVar("Item")

MOST_OPERATORS = 16
"""The maximum number of operators to search the best order of, since every subset is examined."""


def rank_order(items: Sequence[Item], profiles: Sequence[Profile]) -> tuple[Item, ...]:
    """Items by decreasing rank: those that reject the most for their cost first. The sort is stable.

    For independent operators that all queries need, this order is optimal.

    >>> rank_order("abc", [Profile(0.5), Profile(0.1), Profile(0.1, cost=9.0)])
    ('b', 'a', 'c')
    """
    positions = sorted(range(len(items)), key=lambda position: -profiles[position].rank)
    return tuple(items[position] for position in positions)


def independent(profiles: Mapping[str, Profile]) -> Work:
    """The work of operators that reject independently of each other, each for all queries.

    >>> independent({"a": Profile(0.5), "b": Profile(0.1, cost=4.0)})(frozenset({"a"}), "b")
    2.0
    """
    return lambda visited, name: profiles[name].cost * prod(profiles[other].pass_rate for other in sorted(visited))


def shared(
    flow: Flow, accepted: Mapping[str, Sequence[int]], costs: Mapping[str, float] | None = None, *, sparing: bool = True
) -> Work:
    """The work of a flow's operators on a sample of tuples (CACQ §3, where filters are shared by queries).

    `accepted` has for each operator and each tuple of the sample the queries for which the operator accepts the tuple,
    as the bits of an integer; bits of queries that do not need the operator are set. A tuple visits an operator while a
    query (of the operator, if the eddy is sparing) is undecided about it: the query has not rejected the tuple, and
    needs another operator.
    """
    cost_of = dict.fromkeys(accepted, 1.0) | dict(costs or {})
    served = {operator.name: operator.queries for operator in flow.operators}
    size = max(map(len, accepted.values()), default=0)

    @cache
    def alive(visited: frozenset[str]) -> list[int]:
        """The queries that have not rejected each tuple, as bits; -1 means all."""
        if not visited:
            return [-1] * size
        last = max(visited)
        before = alive(visited - {last})
        return [queries & passed for queries, passed in zip(before, accepted[last], strict=True)]

    def work(visited: frozenset[str], name: str) -> float:
        waiting = flow.unfinished(visited) & served[name] if sparing else flow.unfinished(visited)
        bits = sum(1 << number for number in waiting)
        return cost_of[name] * sum(queries & bits != 0 for queries in alive(visited)) / size if size else 0.0

    return work


def expected_work(order: Sequence[str], work: Work) -> float:
    """The cost of an order per tuple that enters the flow."""
    return sum(work(frozenset(order[:position]), name) for position, name in enumerate(order))


def best_order(names: Sequence[str], work: Work) -> tuple[str, ...]:
    """The order of least cost; of equals, the alphabetical one as far as rounding allows.

    >>> best_order("ab", independent({"a": Profile(0.9), "b": Profile(0.1)}))
    ('b', 'a')
    """
    return _extreme(names, work, 1)


def worst_order(names: Sequence[str], work: Work) -> tuple[str, ...]:
    """The order of greatest cost; of equals, as for `best_order`."""
    return _extreme(names, work, -1)


def _extreme(names: Sequence[str], work: Work, sign: int) -> tuple[str, ...]:
    if len(names) > MOST_OPERATORS:
        raise ValueError(f"an order must have at most {MOST_OPERATORS} operators to be searched, got {len(names)}")
    reached: dict[frozenset[str], tuple[float, tuple[str, ...]]] = {frozenset(): (0.0, ())}
    for size in range(1, len(names) + 1):
        for chosen in combinations(sorted(names), size):
            candidates = []
            for last in chosen:
                before = frozenset(chosen) - {last}
                cost, order = reached[before]
                candidates.append((cost + sign * work(before, last), (*order, last)))
            reached[frozenset(chosen)] = min(candidates)
    return reached[frozenset(names)][1]
