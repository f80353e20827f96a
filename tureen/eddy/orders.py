"""Orders of operators whose behaviour is known, and what they cost: what adaptive policies are measured against.

What an operator has to do depends on which others came before it, not on their order: the tuples that are left
are the same. So the best order is a shortest path from no operator to all of them.
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
"""What it costs to visit an operator after those of a set, for each tuple that entered the flow."""

Item = TypeVar("Item")

MOST_OPERATORS = 16
"""An order of more than these is not searched for: every subset of them is looked at."""


def rank_order(items: Sequence[Item], profiles: Sequence[Profile]) -> tuple[Item, ...]:
    """Those that reject the most for their cost first; what ties stays as it was.

    For independent operators that all queries need no order is better.

    >>> rank_order("abc", [Profile(0.5), Profile(0.1), Profile(0.1, cost=9.0)])
    ('b', 'a', 'c')
    """
    places = sorted(range(len(items)), key=lambda place: -profiles[place].rank)
    return tuple(items[place] for place in places)


def independent(profiles: Mapping[str, Profile]) -> Work:
    """The work of operators that reject independently of each other, each for all queries.

    >>> independent({"a": Profile(0.5), "b": Profile(0.1, cost=4.0)})(frozenset({"a"}), "b")
    2.0
    """
    return lambda done, name: profiles[name].cost * prod(profiles[other].pass_rate for other in sorted(done))


def shared(
    flow: Flow, accepted: Mapping[str, Sequence[int]], costs: Mapping[str, float] | None = None, *, sparing: bool = True
) -> Work:
    """The work of a flow's operators on a sample of tuples (CACQ §3, where filters are shared by queries).

    `accepted` says for each operator and each tuple of the sample which queries the operator accepts it for, as
    the bits of an integer; bits of queries that do not need the operator are set. A tuple visits an
    operator while some query (of the operator, if the eddy is sparing) is undecided about it: it has not rejected
    the tuple, and needs one more operator.
    """
    known = dict.fromkeys(accepted, 1.0) | dict(costs or {})
    served = {one.name: one.queries for one in flow.operators}
    size = max(map(len, accepted.values()), default=0)

    @cache
    def alive(done: frozenset[str]) -> list[int]:
        """The queries that have not rejected each tuple, as bits; -1 is all of them."""
        if not done:
            return [-1] * size
        last = max(done)
        return [one & other for one, other in zip(alive(done - {last}), accepted[last], strict=True)]

    def work(done: frozenset[str], name: str) -> float:
        waiting = flow.unfinished(done) & served[name] if sparing else flow.unfinished(done)
        bits = sum(1 << number for number in waiting)
        return known[name] * sum(one & bits != 0 for one in alive(done)) / size if size else 0.0

    return work


def expected_work(order: Sequence[str], work: Work) -> float:
    """What an order costs for each tuple that enters the flow."""
    return sum(work(frozenset(order[:place]), name) for place, name in enumerate(order))


def best_order(names: Sequence[str], work: Work) -> tuple[str, ...]:
    """The order that costs least; among equals, that of the alphabet as far as rounding allows.

    >>> best_order("ab", independent({"a": Profile(0.9), "b": Profile(0.1)}))
    ('b', 'a')
    """
    return _extreme(names, work, 1)


def worst_order(names: Sequence[str], work: Work) -> tuple[str, ...]:
    """The order that costs most; among equals as above."""
    return _extreme(names, work, -1)


def _extreme(names: Sequence[str], work: Work, sign: int) -> tuple[str, ...]:
    if len(names) > MOST_OPERATORS:
        raise ValueError(f"{len(names)} operators; the best order of at most {MOST_OPERATORS} is searched for")
    reached: dict[frozenset[str], tuple[float, tuple[str, ...]]] = {frozenset(): (0.0, ())}
    for size in range(1, len(names) + 1):
        for chosen in combinations(sorted(names), size):
            ways = []
            for last in chosen:
                before = frozenset(chosen) - {last}
                cost, order = reached[before]
                ways.append((cost + sign * work(before, last), (*order, last)))
            reached[frozenset(chosen)] = min(ways)
    return reached[frozenset(names)][1]
