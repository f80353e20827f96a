"""Plans with intermediate results, with and without feedback, against loops over all combinations and DuckDB."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tests.joining.plans.join_script import JoinScript, Row, ScriptJoin, as_tuples, random_graph, random_joins
from tureen.joining.join_input import Numbers
from tureen.joining.plans.feedback_switch import FeedbackSwitch
from tureen.joining.plans.join_graph import JoinEdge, JoinGraph
from tureen.joining.plans.plan_root import PlanRoot, bits_of_root
from tureen.joining.plans.plan_shape import PlanShape, tree_of
from tureen.joining.plans.plan_store import NEVER, NewTuples
from tureen.joining.plans.tree_plan import TreePlan


def _rows(ids: Numbers) -> list[Row]:
    return list(map(tuple, ids.T.tolist()))


def _plans(script: JoinScript, joins: Sequence[ScriptJoin]) -> list[TreePlan]:
    plans = []
    for is_left_deep in (True, False):
        trees: list[tuple[JoinGraph, PlanShape]] = []
        for join in joins:
            trees.append((join.graph, tree_of(join.graph, join.inputs, trees, is_left_deep=is_left_deep)))
        for jit, switch in ((False, None), (True, None), (None, _Restless())):
            roots = [
                # In one plan, some joins have feedback and others have none.
                PlanRoot(join.graph, join.inputs, shape, np.uint64(join.bits), jit if number < 2 else True)
                for number, (join, (_, shape)) in enumerate(zip(joins, trees, strict=True))
            ]
            plans.append(TreePlan(roots, script.reach, switch=switch))
    return plans


class _Restless(FeedbackSwitch):
    """Turns feedback off and on without a reason."""

    blocks = 0

    def is_on_after(self, tuples: int, spent: float) -> bool:  # noqa: ARG002 - as of the real one
        self.blocks += 1
        return self.blocks // 3 % 2 == 0


def _run(draw: random.Random, *, has_several: bool) -> None:
    """Let blocks arrive, and compare all plans and the twin after each."""
    graph = random_graph(draw, draw.choice([3, 3, 4, 4, 5, 6, 8]))
    script = JoinScript(draw, graph, draw.choice([2, 3, 4] if len(graph) < 6 else [2, 3]))
    whole = [ScriptJoin(graph, tuple(range(len(graph))), 3)]
    joins = random_joins(draw, graph) if has_several else whole
    plans = _plans(script, joins)
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
        earliest = horizons.pop()
        expected = [script.new_rows(number, new, earliest, join) for join in joins]
        for plan in plans:
            for joined, of_join in zip(plan.insert(number, new), expected, strict=True):
                rows = _rows(joined)
                assert len(rows) == len(set(rows)), "a joined tuple was produced twice"
                assert set(rows) == of_join, (plan.roots, plan.demands)


def _close(script: JoinScript, plans: Sequence[TreePlan]) -> None:
    """Close a value in an input that is no table, and let plans forget what waits for it."""
    edge = script.draw.choice(script.graph.edges)
    if {edge.left, edge.right} & script.graph.tables:
        return
    ids = np.array(script.close(edge), np.int64)
    for plan in plans:
        for number, root in enumerate(plan.roots):
            if edge in root.graph.edges:
                plan.purge(number, edge.left, ids)


@example_settings(20, explored=40)
@given(st.randoms(use_true_random=False))
def test_plans_produce_the_same_joined_tuples(draw: random.Random) -> None:
    _run(draw, has_several=False)


@example_settings(20, explored=40)
@given(st.randoms(use_true_random=False))
def test_plans_of_several_joins_produce_those_of_each(draw: random.Random) -> None:
    _run(draw, has_several=True)


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
    return TreePlan([_root(graph, ((0, 1), 2))], [1000] * 3), tuples


def _root(graph: JoinGraph, shape: PlanShape) -> PlanRoot:
    return PlanRoot(graph, tuple(range(len(graph))), shape, jit=True)


def _counts(plan: TreePlan) -> tuple[int, int]:
    return plan.counts[0].suspended, plan.counts[0].resumed


def test_tuples_without_partners_are_not_joined() -> None:
    plan, (first, second, third) = _chain(4)
    plan.insert(0, first)
    plan.insert(1, second)
    assert (plan.made, *_counts(plan)) == (0, 8, 0)
    # The tuples of both inputs that waited for it are joined before its own block is done.
    assert plan.insert(2, third.take(np.array([2])))[0].tolist() == [[2], [2], [2]]
    assert (plan.made, plan.counts[0].resumed) == (1, 2)
    assert plan.waiting(0) == [3, 3, 0]


def test_tuples_that_miss_a_closed_key_are_forgotten() -> None:
    plan, (first, second, third) = _chain(4)
    plan.insert(0, first)
    plan.insert(1, second)
    plan.purge(0, 1, np.array([1]))
    plan.purge(0, 0, np.array([1]))
    counts = plan.counts[0]
    assert (counts.purged, counts.unresumable, plan.waiting(0)) == (2, 2, [3, 3, 0])
    # What still waits is resumed, and the state shrinks when many tuples are forgotten.
    assert plan.insert(2, third.take(np.array([2])))[0].tolist() == [[2], [2], [2]]
    plan.purge(0, 1, np.array([0, 2, 3]))
    assert (counts.purged, counts.unresumable, plan.store.size) == (5, 4, 4)
    assert [node.size for node in plan.nodes.values() if node.inputs == (0, 1)] == [0]
    plan.purge(0, 1, np.array([0]))
    assert counts.purged == 5


def test_forgotten_tuples_are_not_resumed() -> None:
    plan, (first, second, third) = _chain(4)
    plan.insert(0, first)
    plan.insert(1, second)
    plan.purge(0, 1, np.array([1]))
    assert plan.insert(2, third)[0].shape[1] == 3
    assert plan.counts[0].resumed == 6


def test_suspended_tuples_expire() -> None:
    plan, (first, second, third) = _chain(4)
    plan.insert(0, first)
    plan.insert(1, second)
    late = replace(third, times=third.times + 1_001)
    assert plan.insert(2, late.take(np.array([0])))[0].shape[1] == 0
    assert plan.insert(2, replace(third, times=third.times + 10_000))[0].shape[1] == 0
    assert (plan.waiting(0), plan.store.size) == ([0, 0, 4], 4)


def test_tuples_that_a_table_has_no_row_for_are_dropped() -> None:
    graph = JoinGraph((1, 1), (JoinEdge(0, 1, (0,), (0,)),), frozenset({1}))
    plan = TreePlan([_root(graph, (0, 1))], [1000, None])
    keys = np.arange(4)
    rows = NewTuples(keys, np.full(4, NEVER), keys.reshape(1, -1), np.ones(4, np.uint64))
    plan.prime({1: rows.take(np.array([1]))}, 0)
    assert plan.insert(0, replace(rows, times=keys))[0].tolist() == [[1], [1]]
    assert (plan.waiting(0), _counts(plan)) == ([0, 0], (3, 1))


def _two_joins() -> tuple[TreePlan, list[NewTuples]]:
    """(0 ⋈ 1) ⋈ 2 and (0 ⋈ 1) ⋈ 3, and tuples of each input with the keys 0, 1, …."""
    columns = (1, 2, 1, 1)
    common = JoinEdge(0, 1, (0,), (0,))
    roots = [
        PlanRoot(
            JoinGraph(columns, (common, JoinEdge(1, last, (1,), (0,)))),
            (0, 1, last),
            ((0, 1), last),
            bits_of_root(number, 2),
            jit=True,
        )
        for number, last in enumerate((2, 3))
    ]
    keys = np.arange(4)
    both, first, second = 0x101, 0x001, 0x100
    tuples = [
        NewTuples(keys, keys, np.tile(keys, (width, 1)), np.full(4, bits, np.uint64))
        for width, bits in zip(columns, (both, both, first, second), strict=True)
    ]
    return TreePlan(roots, [1000] * 4), tuples


def test_sub_join_of_two_joins_is_made_once() -> None:
    plan, tuples = _two_joins()
    for number in (0, 1, 2):
        assert [rows.shape[1] for rows in plan.insert(number, tuples[number])] == [4 * (number == 2), 0]
    assert (plan.made, plan.shared) == (4, 1)
    assert [rows.shape[1] for rows in plan.insert(3, tuples[3])] == [0, 4]
    # The joined tuples of the first two inputs are those that the other join has demanded.
    assert plan.made == 4


def test_tuples_are_suspended_if_no_join_demands_them() -> None:
    plan, tuples = _two_joins()
    plan.insert(0, tuples[0])
    plan.insert(1, tuples[1])
    assert (plan.made, plan.waiting(0), plan.waiting(1)) == (0, [4, 4, 0], [4, 4, 0])
    assert [rows.tolist() for rows in plan.insert(3, tuples[3].take(np.array([2])))] == [[[], [], []], [[2], [2], [2]]]
    assert (plan.made, plan.waiting(0), plan.waiting(1)) == (1, [3, 3, 0], [3, 3, 0])
    assert [rows.tolist() for rows in plan.insert(2, tuples[2].take(np.array([2])))] == [[[2], [2], [2]], [[], [], []]]
    assert plan.made == 1


def test_tuples_that_one_join_has_purged_stay_for_the_other() -> None:
    plan, tuples = _two_joins()
    plan.insert(0, tuples[0])
    plan.insert(1, tuples[1])
    plan.purge(0, 1, np.arange(4))
    assert (plan.store.size, plan.counts[0].unresumable, plan.counts[1].unresumable) == (8, 4, 0)
    assert [rows.shape[1] for rows in plan.insert(3, tuples[3])] == [0, 4]
    plan.purge(1, 1, np.arange(4))
    assert plan.store.expired(plan.horizon) == 4


def test_demand_is_per_set_of_queries() -> None:
    plan, (first, second, third) = _chain(2)
    plan.insert(2, third)
    plan.insert(1, second)
    # Both inputs have the key, but no query wants both tuples.
    plan.insert(0, replace(first, wants=np.full(2, 2, np.uint64)))
    suspended, resumed = _counts(plan)
    assert (plan.made, suspended - resumed) == (0, 6)
