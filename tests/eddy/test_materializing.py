"""Eager or lazy: what is decided from rates and prices."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tureen.eddy.materializing import Budget, Demand, Prices, bytes_per_tuple, saved, spent, worth_keeping

PRICES, BUDGET = Prices(), Budget()
ASKED = Demand(1, asked=1e9, selectivity=0.01, arrivals=1e4, held=1e6)


def kept(*demands: Demand, before: set[int] | None = None, budget: Budget = BUDGET) -> list[int]:
    return sorted(worth_keeping(demands, before or set(), PRICES, budget))


def test_what_is_asked_for_often_is_kept_and_what_is_not_is_not() -> None:
    assert kept(ASKED) == [1]
    assert kept(replace(ASKED, asked=0.0)) == []
    assert kept(replace(ASKED, arrivals=1e9)) == [], "too much arrives"
    assert kept(replace(ASKED, arrivals=0.0, asked=0.0)) == [], "nothing is begun for nothing"


def test_a_million_that_nobody_asks_for_cost_nothing() -> None:
    assert kept(*(Demand(clause, 0.0, 0.0, 1e4, 1e6) for clause in range(1000))) == []


def test_it_does_not_go_to_and_fro() -> None:
    """Between the rates at which keeping begins and ends lies a factor of SURE squared, at least."""

    def at(asked: float, before: set[int]) -> bool:
        return bool(kept(replace(ASKED, asked=asked, held=0.0), before=before))

    begins = next(10**step for step in (x / 50 for x in range(600)) if at(10**step, set()))
    ends = next(10**step for step in (x / 50 for x in range(600)) if at(10**step, {1}))
    assert 3.9 < begins / ends < 4.3


def test_the_work_of_beginning_counts_once() -> None:
    asked = replace(ASKED, asked=1e5, arrivals=10.0, held=1e9)
    assert kept(asked) == []
    assert kept(asked, before={1}) == [1]


def test_the_budget_goes_to_those_who_save_most_for_what_they_cost() -> None:
    some = [replace(ASKED, clause=clause, asked=1e8 * (clause + 1)) for clause in range(10)]
    each = spent(some[0], PRICES, kept=False)
    assert kept(*some, budget=Budget(cpu=3.5 * each)) == [7, 8, 9]
    size = ASKED.held * bytes_per_tuple(ASKED.selectivity)
    assert kept(*some, budget=Budget(bytes=2.5 * size)) == [8, 9]


RATES = st.floats(0, 1e12)


@given(
    st.lists(st.tuples(RATES, st.floats(0, 1), RATES, RATES), max_size=8),
    st.sets(st.integers(0, 7)),
    st.floats(0, 1e9),
    st.floats(0, 1e9),
)
def test_what_is_kept_is_worth_it_and_within_the_budget(
    rates: list[tuple[float, float, float, float]], before: set[int], cpu: float, room: float
) -> None:
    demands = [Demand(clause, *rate) for clause, rate in enumerate(rates)]
    found = worth_keeping(demands, before, PRICES, Budget(cpu, room))
    chosen = [demand for demand in demands if demand.clause in found]
    assert sum(spent(one, PRICES, kept=one.clause in before) for one in chosen) <= cpu * 1.001
    assert sum(one.held * bytes_per_tuple(one.selectivity) for one in chosen) <= room * 1.001
    for one in chosen:
        assert 2 * saved(one, PRICES) >= spent(one, PRICES, kept=one.clause in before)
