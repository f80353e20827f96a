"""Plans with intermediate results, with and without feedback, against loops over all combinations and DuckDB."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tests.joining.plans.join_script import JoinScript, Row, as_tuples, random_graph
from tureen.joining.join_input import Numbers
from tureen.joining.plans.feedback_switch import TRIAL_TUPLES, FeedbackSwitch
from tureen.joining.plans.join_graph import JoinEdge, JoinGraph
from tureen.joining.plans.plan_shape import bushy, left_deep
from tureen.joining.plans.plan_store import DROPPED, NEVER, NewTuples
from tureen.joining.plans.tree_plan import TreePlan


def _rows(ids: Numbers) -> list[Row]:
    return list(map(tuple, ids.T.tolist()))


def _plans(script: JoinScript) -> list[TreePlan]:
    order = list(range(len(script.graph)))
    script.draw.shuffle(order)
    shapes = left_deep(script.graph, order), bushy(script.graph, order)
    return [
        TreePlan(script.graph, shape, script.reach, has_feedback=has_feedback, switch=switch)
        for shape in shapes
        for has_feedback, switch in ((False, None), (True, None), (True, _Restless()))
    ]


class _Restless(FeedbackSwitch):
    """Turns feedback off and on without a reason."""

    blocks = 0

    def is_on_after(self, tuples: int) -> bool:  # noqa: ARG002 - as of the real one
        self.blocks += 1
        return self.blocks // 3 % 2 == 0


def _run(draw: random.Random) -> None:
    """Let blocks arrive, and compare all plans and the twin after each."""
    graph = random_graph(draw, draw.choice([3, 3, 4, 4, 5, 6, 8]))
    script = JoinScript(draw, graph, draw.choice([2, 3, 4] if len(graph) < 6 else [2, 3]))
    plans = _plans(script)
    for table in graph.tables:
        script.block(table, draw.randrange(6))
    streams = [number for number in range(len(graph)) if number not in graph.tables]
    for _ in range(draw.randrange(8)):
        script.block(draw.choice(streams), draw.randrange(3))
    old = {number: as_tuples(tuples, graph.columns[number]) for number, tuples in enumerate(script.arrived)}
    horizon = script.clock - draw.choice([0, 2, 10])
    for plan in plans:
        plan.prime(old, horizon)
    for _ in range(draw.randrange(10, 30)):
        if draw.random() < 0.2:
            _close(script, plans)
        number = draw.choice(streams)
        new = script.block(number, draw.choice([1, 1, 2, 4, 7]))
        horizons = {plan.horizon for plan in plans}
        assert len(horizons) == 1, "plans disagree about what they have forgotten"
        expected = script.new_rows(number, new, horizons.pop())
        for plan in plans:
            rows = _rows(plan.insert(number, new))
            assert len(rows) == len(set(rows)), "a joined tuple was produced twice"
            assert set(rows) == expected, (plan.shape, plan.demand is not None)


def _close(script: JoinScript, plans: Sequence[TreePlan]) -> None:
    """Close a value in an input that is no table, and let plans forget what waits for it."""
    edge = script.draw.choice(script.graph.edges)
    if {edge.left, edge.right} & script.graph.tables:
        return
    ids = np.array(script.close(edge), np.int64)
    for plan in plans:
        plan.purge(edge.left, ids)


@example_settings(60)
@given(st.randoms(use_true_random=False))
def test_plans_produce_the_same_joined_tuples(draw: random.Random) -> None:
    _run(draw)


@example_settings(20)
@given(st.randoms(use_true_random=False))
def test_twin_equals_duckdb(draw: random.Random) -> None:
    graph = random_graph(draw, draw.choice([3, 4, 5]))
    script = JoinScript(draw, graph, 2)
    for number in range(len(graph)):
        script.block(number, draw.randrange(3, 7))
    everything = [as_tuples(tuples, graph.columns[number]) for number, tuples in enumerate(script.arrived)]
    assert script.new_rows(0, everything[0], NEVER) == script.duckdb_rows()


def _chain(rows: int) -> tuple[TreePlan, list[NewTuples]]:
    """A chain of three inputs, and tuples of each with the keys 0, 1, …."""
    graph = JoinGraph((1, 2, 1), (JoinEdge(0, 1, (0,), (0,)), JoinEdge(1, 2, (1,), (0,))))
    keys = np.arange(rows)
    tuples = [
        NewTuples(keys, keys, np.ascontiguousarray(np.tile(keys, (columns, 1))), np.ones(rows, np.uint64))
        for columns in graph.columns
    ]
    return TreePlan(graph, left_deep(graph), [1000] * 3, has_feedback=True), tuples


def test_tuples_without_partners_are_not_joined() -> None:
    plan, (first, second, third) = _chain(4)
    plan.insert(0, first)
    plan.insert(1, second)
    assert (plan.made, plan.suspended, plan.resumed) == (0, 8, 0)
    # The tuples of both inputs that waited for it are joined before its own block is done.
    assert plan.insert(2, third.take(np.array([2]))).tolist() == [[2], [2], [2]]
    assert (plan.made, plan.resumed) == (1, 2)
    assert plan.demand is not None
    assert plan.store.waiting() == [3, 3, 0]


def test_tuples_that_miss_a_closed_key_are_forgotten() -> None:
    plan, (first, second, third) = _chain(4)
    plan.insert(0, first)
    plan.insert(1, second)
    plan.purge(1, np.array([1]))
    plan.purge(0, np.array([1]))
    assert (plan.purged, plan.unresumable, plan.store.waiting()) == (2, 2, [3, 3, 0])
    # What still waits is resumed, and the state shrinks when many tuples are forgotten.
    assert plan.insert(2, third.take(np.array([2]))).tolist() == [[2], [2], [2]]
    plan.purge(1, np.array([0, 2, 3]))
    assert (plan.purged, plan.unresumable, plan.store.size) == (5, 4, 4)
    assert [node.size for shape, node in plan.nodes.items() if shape == (0, 1)] == [0]
    plan.purge(1, np.array([0]))
    assert plan.purged == 5


def test_forgotten_tuples_are_not_resumed() -> None:
    plan, (first, second, third) = _chain(4)
    plan.insert(0, first)
    plan.insert(1, second)
    plan.purge(1, np.array([1]))
    assert plan.insert(2, third).shape[1] == 3
    assert plan.resumed == 6


def test_suspended_tuples_expire() -> None:
    plan, (first, second, third) = _chain(4)
    plan.insert(0, first)
    plan.insert(1, second)
    late = replace(third, times=third.times + 1_001)
    assert plan.insert(2, late.take(np.array([0]))).shape[1] == 0
    assert plan.insert(2, replace(third, times=third.times + 10_000)).shape[1] == 0
    assert plan.demand is not None
    assert (plan.store.waiting(), plan.store.size) == ([0, 0, 4], 4)


def test_tuples_that_a_table_has_no_row_for_are_dropped() -> None:
    graph = JoinGraph((1, 1), (JoinEdge(0, 1, (0,), (0,)),), frozenset({1}))
    plan = TreePlan(graph, (0, 1), [1000, None], has_feedback=True)
    keys = np.arange(4)
    rows = NewTuples(keys, np.full(4, NEVER), keys.reshape(1, -1), np.ones(4, np.uint64))
    plan.prime({1: rows.take(np.array([1]))}, 0)
    assert plan.insert(0, replace(rows, times=keys)).tolist() == [[1], [1]]
    assert plan.demand is not None
    assert plan.store.level.tolist()[:5].count(DROPPED) == 3


def test_demand_is_per_set_of_queries() -> None:
    plan, (first, second, third) = _chain(2)
    plan.insert(2, third)
    plan.insert(1, second)
    # Both inputs have the key, but no query wants both tuples.
    plan.insert(0, replace(first, wants=np.full(2, 2, np.uint64)))
    assert (plan.made, plan.suspended - plan.resumed) == (0, 6)


def test_feedback_stays_where_it_is_cheaper() -> None:
    cost = {True: 3.0, False: 1.0}
    clock = [0.0]
    switch = FeedbackSwitch(lambda: clock[0])
    is_on, tuples = True, {True: 0, False: 0}
    for number in range(3_000):
        if number == 1_000:
            cost = {True: 1.0, False: 3.0}
        switch.begin()
        clock[0] += cost[is_on]
        tuples[is_on] += 1
        is_on = switch.is_on_after(TRIAL_TUPLES)
        if number == 999:
            assert tuples[True] < 50
    assert tuples[True] > 1_000
