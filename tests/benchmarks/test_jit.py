"""JIT's experiments at a small size."""

from __future__ import annotations

from benchmarks import jit
from benchmarks.report import Report
from tests.joining.plans.join_script import Row


def test_quick_run_has_all_figures() -> None:
    figures = jit.measure(Report(), quick=True)
    assert [title.split(":")[0] for title in figures] == list(jit.FIGURES)
    assert all(len(points) == 2 for curves in figures.values() for points in curves.values())


def test_scanned_and_indexed_states_give_the_same_rows() -> None:
    workload = jit.Workload("left-deep", 3, 0.5, 2, 6)
    outputs: list[set[Row]] = []
    for is_scanned in (False, True):
        plan = jit.plan_of(workload, is_scanned=is_scanned, has_feedback=False)
        _, rows = jit.cost_of(plan, jit.arrivals(workload))
        outputs.append({tuple(row) for part in rows for row in part.T.tolist()})
    assert outputs[0] == outputs[1] != set()
