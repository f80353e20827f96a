"""Orders of known operators: the rule, the search and trying every permutation agree."""

from __future__ import annotations

import random
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tureen.eddy import (
    Flow,
    Operator,
    Profile,
    Work,
    best_order,
    expected_work,
    independent,
    rank_order,
    shared,
    worst_order,
)
from tureen.eddy.orders import MOST_OPERATORS

NAMES = "abcde"
PROFILES = st.builds(Profile, st.floats(0, 1), st.floats(0.01, 100))


@given(st.lists(PROFILES, min_size=1, max_size=5))
def test_the_rank_rule_is_best_for_independent_operators(profiles: list[Profile]) -> None:
    names = NAMES[: len(profiles)]
    work = independent(dict(zip(names, profiles, strict=True)))
    least = min(expected_work(order, work) for order in permutations(names))
    assert expected_work(rank_order(names, profiles), work) == pytest.approx(least)


def flow_and_sample(seed: int) -> tuple[Flow, dict[str, list[int]], dict[str, float]]:
    """A few queries over a few operators, and for twenty tuples what each operator says of each."""
    chance = random.Random(seed)
    names = NAMES[: chance.randint(1, 5)]
    queries = chance.randint(1, 6)
    operators = []
    for name in names:
        mine = frozenset(number for number in range(queries) if chance.random() < 0.6)
        operators.append(Operator(name, mine or frozenset({0})))
    accepted = {}
    for one in operators:
        rate = chance.random()
        accepted[one.name] = [
            sum(1 << number for number in range(queries) if number not in one.queries or chance.random() < rate)
            for _ in range(20)
        ]
    return Flow(tuple(operators), queries), accepted, {name: chance.uniform(0.5, 5) for name in names}


def walked(order: tuple[str, ...], flow: Flow, accepted: dict[str, list[int]], costs: dict[str, float]) -> float:
    """What an order costs a tuple, by walking every tuple through it."""
    spent = 0.0
    for place in range(20):
        alive, done = set(range(flow.queries)), set[str]()
        for name in order:
            if not any(flow.needs[query] - done for query in alive):
                break
            spent += costs[name]
            done.add(name)
            alive = {query for query in alive if accepted[name][place] >> query & 1}
    return spent / 20


def every_order(flow: Flow, work: Work) -> list[float]:
    return [expected_work(order, work) for order in permutations(one.name for one in flow.operators)]


@settings(deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_the_search_is_as_good_as_trying_every_order(seed: int, sparing: bool) -> None:
    flow, accepted, costs = flow_and_sample(seed)
    work = shared(flow, accepted, costs, sparing=sparing)
    names = [one.name for one in flow.operators]
    assert expected_work(best_order(names, work), work) == pytest.approx(min(every_order(flow, work)))
    assert expected_work(worst_order(names, work), work) == pytest.approx(max(every_order(flow, work)))


@settings(deadline=None)
@given(st.integers(0, 2**32))
def test_the_work_of_shared_operators_is_what_walking_costs(seed: int) -> None:
    flow, accepted, costs = flow_and_sample(seed)
    work = shared(flow, accepted, costs, sparing=False)
    for order in permutations(one.name for one in flow.operators):
        assert expected_work(order, work) == pytest.approx(walked(order, flow, accepted, costs))


def test_too_many_operators_are_not_searched() -> None:
    names = [str(number) for number in range(MOST_OPERATORS + 1)]
    with pytest.raises(ValueError, match="at most 16"):
        best_order(names, independent({name: Profile(0.5) for name in names}))


def test_without_a_sample_nothing_costs() -> None:
    flow = Flow((Operator("a", frozenset({0})),), 1)
    assert shared(flow, {"a": []})(frozenset(), "a") == 0
