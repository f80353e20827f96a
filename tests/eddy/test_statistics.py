"""Counts of observations, and their expiry."""

from __future__ import annotations

import pytest

from tureen.eddy import Observation, Operator, Profile, Statistics, Tally

A = Operator("a", frozenset({0, 1}))
B = Operator("b", frozenset({1}))


def test_visits_and_predicates_are_counted() -> None:
    statistics = Statistics().admit(10).after(Observation(A, 10, 4, 12, 5.0)).after(Observation(B, 4, 1, 3, 1.0))
    assert (statistics.admitted, statistics.visits, statistics.predicates) == (10, 14, 24)
    assert statistics.visits_per_tuple == 1.4
    assert statistics.tally("a") == Tally(10, 4, 12, 5.0)
    assert statistics.tally("c") == Tally()


def test_statistics_are_immutable() -> None:
    before = Statistics(window=5).admit(10)
    before.after(Observation(A, 10, 4))
    assert before.visits == 0
    assert Statistics().visits_per_tuple == 0


def test_without_a_window_nothing_expires() -> None:
    statistics = Statistics()
    for _ in range(9):
        statistics = statistics.admit(10).after(Observation(A, 10, 5))
    assert statistics.recent_tally("a") == statistics.tally("a") == Tally(90, 45)


def test_current_and_previous_window_count() -> None:
    statistics = Statistics(window=10)
    recent = []
    for _ in range(4):
        statistics = statistics.admit(5).after(Observation(A, 5, 0))
        recent.append(statistics.recent_tally("a").tuples_in)
    for _ in range(4):
        statistics = statistics.admit(5).after(Observation(B, 5, 0))
        recent.append(statistics.recent_tally("a").tuples_in)
    assert recent == [5, 10, 15, 20, 10, 10, 0, 0]
    assert statistics.tally("a").tuples_in == 20


def test_few_tuples_have_little_weight() -> None:
    assert Tally(1, 0).profile().pass_rate == pytest.approx(1 / 3)
    assert Tally(10_000, 0).profile().pass_rate < 0.001
    assert Tally(cost=0.0).profile(usual_cost=7.0).cost == 7.0


def test_free_operators_rank_first() -> None:
    assert Profile(0.9, cost=0.0).rank > Profile(0.0, cost=1e-9).rank
