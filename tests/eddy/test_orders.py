"""Orders of known operators: the rank rule, the search and brute force agree."""

from __future__ import annotations

import random
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
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


@example_settings(100)
@given(st.lists(PROFILES, min_size=1, max_size=5))
def test_rank_order_is_best_for_independent_operators(profiles: list[Profile]) -> None:
    names = NAMES[: len(profiles)]
    work = independent(dict(zip(names, profiles, strict=True)))
    minimum = min(expected_work(order, work) for order in permutations(names))
    assert expected_work(rank_order(names, profiles), work) == pytest.approx(minimum)


def flow_and_sample(seed: int) -> tuple[Flow, dict[str, list[int]], dict[str, float]]:
    """A few queries over a few operators, and for twenty tuples the queries that each operator accepts them for."""
    rng = random.Random(seed)
    names = NAMES[: rng.randint(1, 5)]
    queries = rng.randint(1, 6)
    operators = []
    for name in names:
        served = frozenset(number for number in range(queries) if rng.random() < 0.6)
        operators.append(Operator(name, served or frozenset({0})))
    accepted = {}
    for operator in operators:
        rate = rng.random()
        accepted[operator.name] = [
            sum(1 << number for number in range(queries) if number not in operator.queries or rng.random() < rate)
            for _ in range(20)
        ]
    return Flow(tuple(operators), queries), accepted, {name: rng.uniform(0.5, 5) for name in names}


def simulated_cost(
    order: tuple[str, ...], flow: Flow, accepted: dict[str, list[int]], costs: dict[str, float]
) -> float:
    """The cost of an order per tuple, by sending every tuple through it."""
    spent = 0.0
    for sample in range(20):
        alive, visited = set(range(flow.queries)), set[str]()
        for name in order:
            if not any(flow.needs[query] - visited for query in alive):
                break
            spent += costs[name]
            visited.add(name)
            alive = {query for query in alive if accepted[name][sample] >> query & 1}
    return spent / 20


def cost_of_every_order(flow: Flow, work: Work) -> list[float]:
    return [expected_work(order, work) for order in permutations(operator.name for operator in flow.operators)]


@example_settings(100)
@given(st.integers(0, 2**32), st.booleans())
def test_search_finds_the_extremes_of_all_orders(seed: int, sparing: bool) -> None:
    flow, accepted, costs = flow_and_sample(seed)
    work = shared(flow, accepted, costs, sparing=sparing)
    names = [operator.name for operator in flow.operators]
    assert expected_work(best_order(names, work), work) == pytest.approx(min(cost_of_every_order(flow, work)))
    assert expected_work(worst_order(names, work), work) == pytest.approx(max(cost_of_every_order(flow, work)))


@example_settings(100)
@given(st.integers(0, 2**32))
def test_shared_work_equals_simulation(seed: int) -> None:
    flow, accepted, costs = flow_and_sample(seed)
    work = shared(flow, accepted, costs, sparing=False)
    for order in permutations(operator.name for operator in flow.operators):
        assert expected_work(order, work) == pytest.approx(simulated_cost(order, flow, accepted, costs))


def test_too_many_operators_are_rejected() -> None:
    names = [str(number) for number in range(MOST_OPERATORS + 1)]
    with pytest.raises(ValueError, match="at most 16"):
        best_order(names, independent({name: Profile(0.5) for name in names}))


def test_empty_sample_costs_nothing() -> None:
    flow = Flow((Operator("a", frozenset({0})),), 1)
    assert shared(flow, {"a": []})(frozenset(), "a") == 0
