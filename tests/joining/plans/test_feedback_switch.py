"""Feedback is on where it costs less, by counts: the same tuples always lead to the same decisions."""

from __future__ import annotations

import numpy as np
import pytest

from tureen.joining.plans import feedback_switch, plan_costs
from tureen.joining.plans.feedback_switch import TRIAL_TUPLES, FeedbackSwitch
from tureen.joining.plans.join_graph import JoinEdge, JoinGraph
from tureen.joining.plans.plan_root import PlanRoot
from tureen.joining.plans.plan_store import NewTuples
from tureen.joining.plans.tree_plan import TreePlan


def test_feedback_stays_where_it_is_cheaper() -> None:
    cost = {True: 3.0, False: 1.0}
    switch, spent = FeedbackSwitch(), 0.0
    is_on, tuples = True, {True: 0, False: 0}
    for number in range(3_000):
        if number == 1_000:
            cost = {True: 1.0, False: 3.0}
        spent += cost[is_on]
        tuples[is_on] += 1
        is_on = switch.is_on_after(TRIAL_TUPLES, spent)
        if number == 999:
            assert tuples[True] < 50
    assert tuples[True] > 1_000


BLOCK, TRIAL = 32, 64
CHAIN = JoinGraph((1, 2, 1), (JoinEdge(0, 1, (0,), (0,)), JoinEdge(1, 2, (1,), (0,))))


def _plan(*, jit: bool | None, tuples: int, values: int, last_values: int) -> TreePlan:
    """A chain of three inputs, after blocks of each in turn; keys are from 0 to the number of values."""
    plan = TreePlan([PlanRoot(CHAIN, (0, 1, 2), ((0, 1), 2), jit=jit)], [600] * 3, switch=FeedbackSwitch())
    draw = np.random.default_rng(0)
    for block in range(tuples // BLOCK):
        number = block % 3
        limit = last_values if number == 2 else values
        keys = draw.integers(0, limit, (CHAIN.columns[number], BLOCK))
        ids = np.arange(block * BLOCK, (block + 1) * BLOCK)
        plan.insert(number, NewTuples(ids, ids, keys, np.ones(BLOCK, np.uint64)))
    return plan


@pytest.fixture
def _short_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feedback_switch, "TRIAL_TUPLES", TRIAL)


@pytest.mark.usefixtures("_short_trials")
def test_feedback_that_avoids_nothing_is_turned_off_and_costs_little() -> None:
    plain, watched = (_plan(jit=jit, tuples=20_000, values=20, last_values=20) for jit in (False, None))
    assert plain.counts[0].emitted == watched.counts[0].emitted > 0
    assert watched.demands == [None]
    assert watched.switch_turns == 3
    # Two trials, and what turning it off and on takes, of 20,000 tuples.
    assert plain.spent < watched.spent < 1.05 * plain.spent


@pytest.mark.usefixtures("_short_trials")
def test_feedback_that_avoids_most_results_stays() -> None:
    plain, watched = (_plan(jit=jit, tuples=8_000, values=2, last_values=1_000_000) for jit in (False, None))
    assert watched.demands != [None]
    assert watched.made < plain.made / 4
    assert watched.spent < plain.spent


def test_feedback_without_a_trial_in_progress_makes_no_tests() -> None:
    plan = _plan(jit=None, tuples=3 * TRIAL_TUPLES, values=20, last_values=20)
    assert plan.demands == [None]
    made = plan.work.spent(0, plan.demands)
    ids = np.arange(BLOCK)
    plan.insert(2, NewTuples(ids, ids + 3 * TRIAL_TUPLES, np.zeros((1, BLOCK), np.int64), np.ones(BLOCK, np.uint64)))
    assert plan.work.spent(0, plan.demands) - made == pytest.approx(plan_costs.STEP + BLOCK * plan_costs.PROBE)
