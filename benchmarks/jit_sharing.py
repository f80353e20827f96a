"""Joins with a sub-join in common: one plan for all of them, against a plan for each.

The sources 0 and 1 are joined with each of four others. In windows of ten minutes a tuple of them has five partners in
the other one, and every tenth pair has one in each of the four. All sources have a tuple per second; those of a minute
are a block. Every round compares the outputs.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

import numpy as np

from benchmarks.report import Report
from tureen.joining.plans.join_graph import JoinEdge, JoinGraph
from tureen.joining.plans.plan_root import PlanRoot, bits_of_root
from tureen.joining.plans.plan_store import NewTuples
from tureen.joining.plans.tree_plan import TreePlan

JOINS, MINUTE, WINDOW = 4, 60, 600
COLUMNS = (1, 1 + JOINS, *(1,) * JOINS)
ROUNDS = 5
BITS = [int(bits_of_root(number, JOINS)) for number in range(JOINS)]


def arrivals(minutes: int) -> list[tuple[int, NewTuples]]:
    """The tuples of all sources, by minutes."""
    draw, blocks = np.random.default_rng(0), []
    for minute in range(minutes):
        ids = np.arange(minute * MINUTE, (minute + 1) * MINUTE)
        for number, width in enumerate(COLUMNS):
            keys = draw.integers(0, 10 * WINDOW, (width, MINUTE))
            if number < 2:
                keys[0] = draw.integers(0, WINDOW // 5, MINUTE)
            wants = sum(BITS) if number < 2 else BITS[number - 2]
            blocks.append((number, NewTuples(ids, ids, keys, np.full(MINUTE, wants, np.uint64))))
    return blocks


def root(number: int, *, jit: bool) -> PlanRoot:
    """The join of the first two sources with another one."""
    edges = JoinEdge(0, 1, (0,), (0,)), JoinEdge(1, number + 2, (number + 1,), (0,))
    graph, inputs = JoinGraph(COLUMNS, edges), (0, 1, number + 2)
    return PlanRoot(graph, inputs, ((0, 1), number + 2), np.uint64(BITS[number]), jit)


def run(plans: Sequence[TreePlan], blocks: Sequence[tuple[int, NewTuples]]) -> tuple[float, int, set[tuple[int, ...]]]:
    """Let tuples arrive: seconds of processor time, the most tuples held, and the output."""
    seconds, tuples = 0.0, 0
    output: set[tuple[int, ...]] = set()
    for number, new in blocks:
        for plan in plans:
            if any(number in each.inputs for each in plan.roots):
                began = time.process_time()
                joined = plan.insert(number, new)
                seconds += time.process_time() - began
                for each, rows in zip(plan.roots, joined, strict=True):
                    output |= {(each.inputs[-1], *row) for row in rows.T.tolist()}
        tuples = max(tuples, sum(plan.tuples for plan in plans))
    return seconds, tuples, output


def measure_sharing(report: Report, *, quick: bool) -> None:
    """Compare one plan with a plan for each join, without feedback and with it."""
    blocks, reach = arrivals(12 if quick else 60), [WINDOW] * len(COLUMNS)
    for jit, label in ((False, "without"), (True, "with")):
        ratios = []
        for _ in range(1 if quick else ROUNDS):
            roots = [root(number, jit=jit) for number in range(JOINS)]
            own, own_tuples, own_output = run([TreePlan([each], reach) for each in roots], blocks)
            shared, shared_tuples, shared_output = run([TreePlan(roots, reach)], blocks)
            if own_output != shared_output:
                raise AssertionError("the output of joins depends on whether they share a plan")
            ratios.append(own / shared)
        title = f"{JOINS} joins with a common sub-join, {label} feedback: plans of their own / one plan"
        report.add(f"{title}, processor time", statistics.median(ratios), "times")
        report.add(f"{title}, tuples held", own_tuples / shared_tuples, "times")
