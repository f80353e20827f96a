"""Kept or evaluated, as decided from rates."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tureen.eddy.join_demand import JoinDemand, worth_keeping
from tureen.eddy.materializing import SURE

DEMAND = JoinDemand(1, invocations=1e3, evaluation=1e6, arrivals=1e4, held=1e6)
RATES = st.floats(0, 1e9)


def kept(*demands: JoinDemand, before: frozenset[int] = frozenset(), cpu: float = 1e9) -> list[int]:
    return sorted(worth_keeping(demands, before, cpu))


def test_often_invoked_joins_are_kept() -> None:
    assert kept(DEMAND) == [1]
    assert kept(replace(DEMAND, invocations=0.0)) == []
    assert kept(replace(DEMAND, arrivals=1e9)) == [], "too many arrivals"
    assert kept(replace(DEMAND, evaluation=1.0)) == [], "evaluating is cheap"


def test_cost_of_stored_tuples_counts_once() -> None:
    demand = replace(DEMAND, invocations=1.0, arrivals=10.0, held=1e9)
    assert kept(demand) == []
    assert kept(demand, before=frozenset({1})) == [1]


def test_budget_goes_to_the_best() -> None:
    demands = [replace(DEMAND, join=join, invocations=1e3 * (join + 1)) for join in range(5)]
    cost = DEMAND.spent(kept=False)
    assert kept(*demands, cpu=2.5 * cost) == [3, 4]


@given(st.lists(st.tuples(RATES, RATES, RATES, RATES), max_size=6), st.frozensets(st.integers(0, 5)), RATES)
def test_what_is_kept_pays_off_within_the_budget(
    rates: list[tuple[float, float, float, float]], before: frozenset[int], cpu: float
) -> None:
    demands = {join: JoinDemand(join, *values) for join, values in enumerate(rates)}
    chosen = kept(*demands.values(), before=before, cpu=cpu)
    for join in chosen:
        demand = demands[join]
        assert demand.saved * SURE >= demand.spent(kept=join in before) / (1 if join in before else 1 / SURE)
    assert sum(demands[join].spent(kept=join in before) for join in chosen) <= cpu * (1 + 1e-9)
