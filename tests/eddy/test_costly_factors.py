"""Decisions about factors with user functions."""

from __future__ import annotations

import pytest

from tureen.eddy.costly_factors import JOIN_COST, place_factor, rank
from tureen.eddy.statistics import Profile


def test_rank_prefers_cheap_and_selective_factors() -> None:
    cheap, selective, costly = Profile(0.5, 1000.0), Profile(0.01, 1500.0), Profile(0.5, 9000.0)
    assert sorted([costly, cheap, selective], key=rank) == [selective, cheap, costly]


@pytest.mark.parametrize(
    ("cost", "pass_rate", "fan_out", "is_before"),
    [
        (5000.0, 0.5, None, True),
        (5000.0, 0.5, 1.0, True),
        (5000.0, 0.5, 40.0, True),
        (5000.0, 0.5, 0.01, False),
        (5000.0, 0.5, 0.999, True),
        # A function that is as cheap as joining does not wait for the join, if it rejects much.
        (JOIN_COST / 2, 0.0, 0.5, True),
        (JOIN_COST / 2, 1.0, 0.5, False),
    ],
)
def test_before_a_join_that_multiplies_and_after_one_that_filters(
    cost: float, pass_rate: float, fan_out: float | None, is_before: bool
) -> None:
    placement = place_factor(Profile(pass_rate, cost), fan_out)
    assert placement.is_before is is_before
    assert placement.reason.startswith("before" if is_before else "after")


def test_the_decision_has_the_lower_cost() -> None:
    for cost in (10.0, 200.0, 5000.0):
        for pass_rate in (0.0, 0.3, 1.0):
            for fan_out in (0.0, 0.2, 0.9, 1.0, 5.0):
                before = cost + pass_rate * JOIN_COST
                after = JOIN_COST + min(fan_out, 1.0) * cost
                placement = place_factor(Profile(pass_rate, cost), fan_out)
                assert (before if placement.is_before else after) == min(before, after)
