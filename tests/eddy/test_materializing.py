"""Eager or lazy, as decided from rates and prices."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.eddy.materializing import Budget, Demand, Prices, bytes_per_tuple, eager_clauses, saved, spent

PRICES, BUDGET = Prices(), Budget()
DEMAND = Demand(1, reads=1e9, selectivity=0.01, arrivals=1e4, held=1e6)


def eager(*demands: Demand, before: set[int] | None = None, budget: Budget = BUDGET) -> list[int]:
    return sorted(eager_clauses(demands, before or set(), PRICES, budget))


def test_often_invoked_clauses_become_eager() -> None:
    assert eager(DEMAND) == [1]
    assert eager(replace(DEMAND, reads=0.0)) == []
    assert eager(replace(DEMAND, arrivals=1e9)) == [], "too many arrivals"
    assert eager(replace(DEMAND, arrivals=0.0, reads=0.0)) == [], "no invocations"


def test_clauses_without_invocations_stay_lazy() -> None:
    assert eager(*(Demand(clause, 0.0, 0.0, 1e4, 1e6) for clause in range(1000))) == []


def test_choice_has_hysteresis() -> None:
    """The rates at which a clause becomes eager and lazy differ by at least a factor of SURE squared."""

    def at(reads: float, before: set[int]) -> bool:
        return bool(eager(replace(DEMAND, reads=reads, held=0.0), before=before))

    begins = next(10**step for step in (x / 50 for x in range(600)) if at(10**step, set()))
    ends = next(10**step for step in (x / 50 for x in range(600)) if at(10**step, {1}))
    assert 3.9 < begins / ends < 4.3


def test_cost_of_becoming_eager_counts_once() -> None:
    demand = replace(DEMAND, reads=1e5, arrivals=10.0, held=1e9)
    assert eager(demand) == []
    assert eager(demand, before={1}) == [1]


def test_budget_goes_to_the_best_ratio_of_savings_to_cost() -> None:
    demands = [replace(DEMAND, clause=clause, reads=1e8 * (clause + 1)) for clause in range(10)]
    cost = spent(demands[0], PRICES, eager=False)
    assert eager(*demands, budget=Budget(cpu=3.5 * cost)) == [7, 8, 9]
    size = DEMAND.held * bytes_per_tuple(DEMAND.selectivity)
    assert eager(*demands, budget=Budget(bytes=2.5 * size)) == [8, 9]


RATES = st.floats(0, 1e12)


@example_settings(100)
@given(
    st.lists(st.tuples(RATES, st.floats(0, 1), RATES, RATES), max_size=8),
    st.sets(st.integers(0, 7)),
    st.floats(0, 1e9),
    st.floats(0, 1e9),
)
def test_chosen_clauses_are_worth_it_and_within_the_budget(
    rates: list[tuple[float, float, float, float]], before: set[int], cpu: float, space: float
) -> None:
    demands = [Demand(clause, *rate) for clause, rate in enumerate(rates)]
    result = eager_clauses(demands, before, PRICES, Budget(cpu, space))
    chosen = [demand for demand in demands if demand.clause in result]
    assert sum(spent(demand, PRICES, eager=demand.clause in before) for demand in chosen) <= cpu * 1.001
    assert sum(demand.held * bytes_per_tuple(demand.selectivity) for demand in chosen) <= space * 1.001
    for demand in chosen:
        assert 2 * saved(demand, PRICES) >= spent(demand, PRICES, eager=demand.clause in before)
