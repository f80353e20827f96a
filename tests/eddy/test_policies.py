"""Policies: random is uniform, tickets find the best order and adapt to changes, fixed does not change."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import pytest

from tureen.eddy import (
    Eddy,
    Fixed,
    Flow,
    Lineage,
    Observation,
    Operator,
    Policy,
    Profile,
    Random,
    Statistics,
    Tally,
    Tickets,
    Work,
    consumed,
    eliminated,
    expected_work,
    independent,
    optimal,
    weighted,
    worst,
)
from tureen.eddy.tickets import Credit

NAMES = "abcd"
ONE_QUERY = Flow(tuple(Operator(name, frozenset({0})) for name in NAMES), 1)
SELECTIVE_FIRST = {name: Profile(rate) for name, rate in zip(NAMES, (0.1, 0.4, 0.7, 0.95), strict=True)}
SELECTIVE_LAST = {name: Profile(rate) for name, rate in zip(NAMES, (0.95, 0.7, 0.4, 0.1), strict=True)}


def send(eddy: Eddy, tuples: int, profiles: Mapping[str, Profile], rng: random.Random) -> Counter[str]:
    """Send tuples of one query through an eddy, one by one; returns how often each operator came first."""
    first: Counter[str] = Counter()
    for _ in range(tuples):
        block = eddy.admit(1)
        while operator := eddy.next(block):
            profile = profiles[operator.name]
            passed = rng.random() < profile.pass_rate
            first[operator.name] += not block.visited
            continues = passed and len(block.visited) + 1 < len(eddy.flow.operators)
            observation = Observation(operator, 1, int(continues), int(not passed), profile.cost)
            block = eddy.observe(block, observation, frozenset({0}) if continues else frozenset())
    return first


def cost_per_tuple(eddy: Eddy) -> float:
    return sum(tally.cost for tally in eddy.statistics.total.values()) / eddy.statistics.admitted


def test_random_is_even() -> None:
    policy = Random(random.Random(1))
    drawn = Counter(policy.choose(ONE_QUERY.operators, Statistics()).name for _ in range(8000))
    assert set(drawn) == set(NAMES)
    assert all(1800 < count < 2200 for count in drawn.values())


def test_fixed_puts_unknown_operators_last() -> None:
    a, b, c, d = ONE_QUERY.operators
    policy = Fixed(["c", "a"])
    assert policy.choose([a, b, c, d], Statistics()) is c
    assert policy.choose([d, b], Statistics()) is b


@pytest.mark.parametrize("credit", [consumed, weighted, eliminated])
def test_tickets_come_close_to_the_best_order(credit: Credit) -> None:
    eddy = Eddy(ONE_QUERY, Tickets(random.Random(2), credit))
    send(eddy, 500, SELECTIVE_FIRST, random.Random(3))
    first = send(eddy, 4000, SELECTIVE_FIRST, random.Random(4))
    assert first.most_common(1)[0][0] == "a"
    assert first["a"] > 0.8 * 4000
    work = independent(SELECTIVE_FIRST)
    minimum, maximum = expected_work(NAMES, work), expected_work(NAMES[::-1], work)
    assert minimum * 0.95 < eddy.statistics.visits_per_tuple < minimum * 1.15 < maximum / 2


def test_tickets_rank_operators_as_the_best_order_does() -> None:
    policy = Tickets(random.Random(2))
    eddy = Eddy(ONE_QUERY, policy)
    send(eddy, 5000, SELECTIVE_FIRST, random.Random(3))
    held = policy.holdings(ONE_QUERY.operators, eddy.statistics)
    assert held == sorted(held, reverse=True)


def test_expiring_tickets_adapt_after_a_shift() -> None:
    forgetful = Eddy(ONE_QUERY, Tickets(random.Random(2)), window=200)
    stubborn = Eddy(ONE_QUERY, Tickets(random.Random(2)))
    for eddy in (forgetful, stubborn):
        assert send(eddy, 4000, SELECTIVE_FIRST, random.Random(3)).most_common(1)[0][0] == "a"
        send(eddy, 800, SELECTIVE_LAST, random.Random(4))
    after = send(forgetful, 1000, SELECTIVE_LAST, random.Random(5))
    assert after["d"] > 700
    assert send(stubborn, 1000, SELECTIVE_LAST, random.Random(5))["d"] < 500


def test_new_operator_is_tried_and_ranked() -> None:
    smaller = Flow(ONE_QUERY.operators[1:], 1)
    eddy = Eddy(smaller, Tickets(random.Random(2)), window=200)
    send(eddy, 2000, SELECTIVE_FIRST, random.Random(3))
    eddy.change(ONE_QUERY)
    send(eddy, 800, SELECTIVE_FIRST, random.Random(4))
    assert send(eddy, 1000, SELECTIVE_FIRST, random.Random(5))["a"] > 700


def test_tickets_avoid_costly_operators() -> None:
    profiles = {**SELECTIVE_FIRST, "a": Profile(0.1, cost=50.0)}
    eddy = Eddy(ONE_QUERY, Tickets(random.Random(2)))
    send(eddy, 1000, profiles, random.Random(3))
    assert send(eddy, 1000, profiles, random.Random(4)).most_common(1)[0][0] == "b"
    by_chance = Eddy(ONE_QUERY, Random(random.Random(2)))
    send(by_chance, 2000, profiles, random.Random(3))
    assert cost_per_tuple(eddy) < cost_per_tuple(by_chance) / 2


def test_more_predicates_earn_more_tickets() -> None:
    busy, idle = Operator("busy", frozenset(range(9))), Operator("idle", frozenset({0}))
    statistics = Statistics(total={"busy": Tally(100, 50, 450), "idle": Tally(100, 50, 50)})
    assert Tickets(random.Random(1), weighted).holdings([busy, idle], statistics) == [450, 50]
    assert Tickets(random.Random(1), consumed).holdings([busy, idle], statistics) == [50, 50]
    assert Tickets(random.Random(1), eliminated).holdings([busy, idle], statistics) == [450, 50]


def test_operators_that_multiply_tuples_keep_minimum_tickets() -> None:
    stem, other = Operator("stem", frozenset({0})), Operator("other", frozenset({0}))
    statistics = Statistics(total={"stem": Tally(10, 500), "other": Tally(10, 1)})
    assert Tickets(random.Random(1), minimum=2.0).holdings([stem, other], statistics) == [2.0, 9]
    assert Tickets(random.Random(1)).choose([stem], statistics) is stem


@pytest.mark.parametrize(("make", "order"), [(optimal, "abcd"), (worst, "dcba")])
def test_optimal_and_worst_follow_selectivities(make: Callable[[Sequence[Operator], Work], Policy], order: str) -> None:
    eddy = Eddy(ONE_QUERY, make(ONE_QUERY.operators, independent(SELECTIVE_FIRST)))
    block = Lineage(5, frozenset({0}))
    visited = ""
    while operator := eddy.next(block):
        visited += operator.name
        block = eddy.observe(block, Observation(operator, 5, 5), frozenset({0}))
    assert visited == order
