"""JIT's experiments (§VI, Figs. 10 to 17): clique joins by left-deep and bushy plans, with and without feedback.

Every pair of N sources is compared by a column of its own, with values from 1 to d_max; each source has λ tuples per
second, and windows of w minutes (Tables II and III). In left-deep plans the fourth source, or the last of three, has
values up to 100 times d_max. What differs from the paper: an experiment lasts three windows instead of five hours, and
the tuples of a minute are joined as a block.

The paper's joins are nested loops. Here the states of a plan have an index by key, so that a join without feedback is
much cheaper than in the paper. Both are measured: *scanned* states, and *indexed* ones, which is the engine's own plan.
The outputs with and without feedback are compared before anything is timed.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.jit_sharing import measure_sharing
from benchmarks.plot import Curves, draw_curves
from benchmarks.report import Report
from tureen.joining.join_input import Numbers
from tureen.joining.plans.feedback_switch import FeedbackSwitch
from tureen.joining.plans.join_graph import JoinEdge, JoinGraph
from tureen.joining.plans.node_index import NodeIndex
from tureen.joining.plans.plan_root import PlanRoot
from tureen.joining.plans.plan_shape import tree_of
from tureen.joining.plans.plan_store import NewTuples
from tureen.joining.plans.tree_plan import TreePlan

SECOND = 1_000_000
WINDOWS = 3
"""How many windows an experiment lasts."""
ROUNDS = 3
CLAIMS = {"bushy": 10.0, "left-deep": 1.0}
"""How many times less processor time feedback is to take, by kind of plan."""


@dataclass(frozen=True)
class Workload:
    """The parameters of Table III."""

    plan: str
    sources: int
    minutes: float
    rate: float
    values: int
    sparse: int = 1
    """How many times as many values the last source has."""

    @property
    def seconds(self) -> int:
        """The length of its windows."""
        return int(60 * self.minutes)


BUSHY = Workload("bushy", 6, 20, 1, 200)
LEFT_DEEP = Workload("left-deep", 4, 10, 1, 50, sparse=100)

FIGURES: dict[str, tuple[Workload, str, Sequence[float]]] = {
    "Fig. 10": (BUSHY, "minutes", (10, 15, 20, 25, 30)),
    "Fig. 11": (BUSHY, "rate", (0.4, 0.7, 1, 1.3, 1.6)),
    "Fig. 12": (BUSHY, "sources", (4, 5, 6, 7, 8)),
    "Fig. 13": (BUSHY, "values", (100, 150, 200, 250, 300)),
    "Fig. 14": (LEFT_DEEP, "minutes", (5, 7.5, 10, 12.5, 15)),
    "Fig. 15": (LEFT_DEEP, "rate", (0.4, 0.7, 1, 1.3, 1.6)),
    "Fig. 16": (LEFT_DEEP, "sources", (3, 4, 5, 6)),
    "Fig. 17": (LEFT_DEEP, "values", (30, 40, 50, 60, 70)),
}
"""For each figure its workload, and the parameter that varies."""

AXES = {
    "minutes": "window, minutes",
    "rate": "tuples per second of a source",
    "sources": "sources",
    "values": "values of a column",
}
"""What the axis of a varied parameter says."""

Arrivals = Sequence[tuple[int, NewTuples]]
"""Blocks of tuples, each with the number of its source."""


class ScannedIndex(NodeIndex):
    """An index with one slot: every probe reads the whole state, as in the paper."""

    def _slots(self) -> int:
        return 1


class ScannedPlan(TreePlan):
    """A plan whose joins are nested loops."""

    index_type = ScannedIndex


@dataclass(frozen=True)
class Cost:
    """What a plan took: processor time, and the most that it held."""

    seconds: float
    tuples: int
    bytes: int
    made: int


def clique(sources: int) -> JoinGraph:
    """A join of sources, each pair of which is compared by a column of its own."""
    columns = [0] * sources
    edges = []
    for left in range(sources):
        for right in range(left + 1, sources):
            edges.append(JoinEdge(left, right, (columns[left],), (columns[right],)))
            columns[left] += 1
            columns[right] += 1
    return JoinGraph(tuple(columns), tuple(edges))


def arrivals(workload: Workload, windows: float = WINDOWS, seed: int = 0) -> Arrivals:
    """The tuples of all sources, by minutes."""
    draw = np.random.default_rng(seed)
    graph, length = clique(workload.sources), int(windows * workload.seconds)
    blocks: list[tuple[int, int, NewTuples]] = []
    for number in range(workload.sources):
        spread = workload.sparse if number == min(3, workload.sources - 1) else 1
        count = draw.poisson(workload.rate * length)
        times = np.sort(draw.integers(0, length * SECOND, count))
        keys = draw.integers(1, spread * workload.values + 1, (graph.columns[number], count))
        new = NewTuples(np.arange(count), times, keys, np.ones(count, np.uint64))
        for minute in range(-(-length // 60)):
            first, last = np.searchsorted(times, [minute * 60 * SECOND, (minute + 1) * 60 * SECOND])
            if last > first:
                blocks.append((minute, number, new.take(np.arange(first, last))))
    return [(number, new) for _, number, new in sorted(blocks, key=lambda block: block[:2])]


def plan_of(workload: Workload, *, is_scanned: bool, has_feedback: bool, is_watched: bool = False) -> TreePlan:
    """A plan of Table II, without tuples."""
    graph = clique(workload.sources)
    inputs = tuple(range(workload.sources))
    shape = tree_of(graph, inputs, (), is_left_deep=workload.plan == "left-deep")
    kind = ScannedPlan if is_scanned else TreePlan
    root = PlanRoot(graph, inputs, shape, jit=None if is_watched else has_feedback)
    reach = [workload.seconds * SECOND] * workload.sources
    return kind([root], reach, switch=FeedbackSwitch() if is_watched else None)


def cost_of(plan: TreePlan, blocks: Arrivals) -> tuple[Cost, list[Numbers]]:
    """Let tuples arrive; the cost and the joined tuples of each block."""
    seconds, tuples, held, rows = 0.0, 0, 0, []
    for number, new in blocks:
        began = time.process_time()
        rows += plan.insert(number, new)
        seconds += time.process_time() - began
        tuples, held = max(tuples, plan.tuples), max(held, plan.bytes)
    return Cost(seconds, tuples, held, plan.made), rows


def verify(workload: Workload) -> int:
    """Check that a plan has the same output with feedback and without; the number of joined tuples."""
    blocks = arrivals(workload)
    outputs = [
        [
            sorted(map(tuple, rows.T.tolist()))
            for rows in cost_of(plan_of(workload, is_scanned=is_scanned, has_feedback=has_feedback), blocks)[1]
        ]
        for is_scanned, has_feedback in ((False, False), (False, True), (True, True))
    ]
    if outputs[1] != outputs[0] or outputs[2] != outputs[0]:
        raise AssertionError(f"the output of {workload} depends on feedback")
    return sum(map(len, outputs[0]))


def compare(workload: Workload, *, is_scanned: bool, rounds: int = 1) -> tuple[Cost, Cost]:
    """The costs without and with feedback: of the round with the median of processor time."""
    blocks = arrivals(workload)
    costs: tuple[list[Cost], list[Cost]] = ([], [])
    for _ in range(rounds):
        for has_feedback in (False, True):
            plan = plan_of(workload, is_scanned=is_scanned, has_feedback=has_feedback)
            costs[has_feedback].append(cost_of(plan, blocks)[0])
    without, with_feedback = (sorted(each, key=lambda cost: cost.seconds)[rounds // 2] for each in costs)
    return without, with_feedback


def measure(report: Report, *, quick: bool) -> Mapping[str, Curves]:
    """Measure all figures; for each, the ratios by the varied parameter."""
    figures: dict[str, Curves] = {}
    joined = verify(_dense(BUSHY, 6)) + verify(_dense(LEFT_DEEP, 6))
    assert joined, "the verified workloads have no output"
    report.note(f"outputs with and without feedback are equal; {joined:,} joined tuples of denser workloads compared")
    _defaults(report, quick=quick)
    measure_sharing(report, quick=quick)
    worst = 0.0
    for name, (workload, parameter, values) in FIGURES.items():
        curves: dict[str, list[tuple[float, float]]] = {}
        for value in values[:2] if quick else values:
            varied: dict[str, Any] = {parameter: value}
            point = replace(_small(workload) if quick else workload, **varied)
            for is_scanned, label in ((True, "scanned"), (False, "indexed")):
                without, with_feedback = compare(point, is_scanned=is_scanned)
                ratio = without.seconds / max(with_feedback.seconds, 1e-9)
                curves.setdefault(f"processor time, {label} states", []).append((value, ratio))
            curves.setdefault("tuples held", []).append((value, without.tuples / with_feedback.tuples))
            curves.setdefault("the paper's claim for time", []).append((value, CLAIMS[workload.plan]))
            if workload.plan == "left-deep":
                worst = max(worst, with_feedback.seconds / without.seconds)
        figures[f"{name}: {workload.plan}, {parameter}"] = curves
    report.add("left-deep plans, indexed states: worst processor time with feedback / without", worst, "times")
    report.reach("jit left-deep", worst)
    return figures


def _defaults(report: Report, *, quick: bool) -> None:
    """The default of Table III, and a workload where every tuple has partners."""
    for is_scanned, label in ((True, "scanned states, as in the paper"), (False, "indexed states")):
        workload = _small(BUSHY) if quick else BUSHY
        without, with_feedback = compare(workload, is_scanned=is_scanned, rounds=1 if quick else ROUNDS)
        ratio = without.seconds / max(with_feedback.seconds, 1e-9)
        report.add(f"bushy, N = 6, {label}: processor time without / with feedback", ratio, "times")
        if is_scanned:
            report.reach("jit scanned", ratio)
            continue
        report.reach("jit", ratio)
        saved = 100 * (1 - with_feedback.tuples / without.tuples)
        report.add("bushy, N = 6: tuples and intermediate results held, less with feedback", saved, "%")
        report.add("the same, bytes", 100 * (1 - with_feedback.bytes / without.bytes), "%")
        report.add("intermediate results without feedback", without.made, "")
        report.add("intermediate results with feedback", with_feedback.made, "")
        report.reach("jit state", saved)
    for workload in (BUSHY, LEFT_DEEP):
        ratio = _switched(_small(workload) if quick else workload, 1 if quick else ROUNDS)
        report.add(
            f"{workload.plan}, indexed states: processor time without / with feedback that is switched", ratio, "times"
        )
    overhead = 100 * (_overhead(quick=quick) - 1)
    report.add("every tuple has partners: more processor time where feedback is watched", overhead, "%")
    report.reach("jit overhead", overhead)


def _overhead(*, quick: bool) -> float:
    """The processor time with feedback that is turned off where it does not help, by that without."""
    return 1 / _switched(Workload("bushy", 4, 1, 2, 8), 1 if quick else ROUNDS, 4 if quick else 800)


def _switched(workload: Workload, rounds: int, windows: float = 4 * WINDOWS) -> float:
    """The processor time without feedback, by that with feedback that is on where it costs less: a median."""
    blocks = arrivals(workload, windows)
    ratios = []
    for _ in range(rounds):
        plain = cost_of(plan_of(workload, is_scanned=False, has_feedback=False), blocks)[0]
        watched = cost_of(plan_of(workload, is_scanned=False, has_feedback=True, is_watched=True), blocks)[0]
        ratios.append(plain.seconds / watched.seconds)
    return statistics.median(ratios)


def _small(workload: Workload) -> Workload:
    return replace(workload, sources=4, minutes=1)


def _dense(workload: Workload, values: int) -> Workload:
    """A workload of the same plan that has joined tuples."""
    return replace(workload, sources=4, minutes=1, rate=2, values=values, sparse=1)


def plot(figures: Mapping[str, Curves], report: Report) -> None:
    """Draw a plot for each figure."""
    for title, curves in figures.items():
        name = title.split(":")[0].removeprefix("Fig. ")
        text = f"JIT {title}: how many times less with feedback"
        draw_curves(report.plot(f"jit-{name}.svg", text), text, curves, x=AXES[title.split(", ")[-1]], y="times less")
