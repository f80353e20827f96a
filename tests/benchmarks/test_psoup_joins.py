"""PSoup's experiments with joins at small sizes: results are compared with numpy, and wrong results are detected."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import psoup_join_response, psoup_joins
from benchmarks.psoup_join_response import (
    JoinPot,
    JoinWorkload,
    join_conditions,
    join_response_times,
    verify_joins,
)
from benchmarks.psoup_probes import BY_INDEX, COMPOSITE, SEPARATE, WORKLOADS, ProbedStream, probe_queries, verify_probes
from benchmarks.psoup_response import COMPLETE, NOMAT, PARTIAL, InvocationPlan
from benchmarks.report import Report
from benchmarks.workload import START
from tureen.pipeline.join_keeping import MAX_FAN_OUT


def test_both_experiments_run_and_are_plotted(tmp_path: Path) -> None:
    report = Report(tmp_path)
    (tmp_path / "pots").mkdir()
    findings = psoup_joins.measure(tmp_path / "pots", report, quick=True)
    assert set(findings.windows) == {NOMAT, PARTIAL, COMPLETE}
    assert set(findings.probes) == set(WORKLOADS) == set(psoup_joins.PAPER_PROBES)
    assert all(set(curves) == {COMPOSITE, SEPARATE, BY_INDEX} for curves in findings.probes.values())
    assert all(line.value > 0 for line in report.lines)
    assert any("(paper: below 1)" in line.what for line in report.lines)
    pytest.importorskip("matplotlib")
    psoup_joins.plot(findings, report)
    assert len(list(tmp_path.glob("join-*.svg"))) == 4


def test_conditions_have_all_signs_and_both_directions() -> None:
    conditions = join_conditions(100)
    assert {condition.sign for condition in conditions} == {"<", "<=", ">", ">="}
    assert min(offsets := [condition.offset for condition in conditions]) < 0 < max(offsets)
    assert all(-256 < offset < 256 for offset in offsets)


def test_wrong_joined_rows_are_detected(tmp_path: Path) -> None:
    workload = JoinWorkload.uniform(40, join_conditions(2))
    pot = JoinPot(tmp_path, workload, [20, 21])
    pot.take(workload.tables)
    narrow, wide = pot.handles[NOMAT][20], pot.answer(NOMAT)
    verify_joins(workload, [20, 21], {NOMAT: wide}, 40)
    with pytest.raises(AssertionError, match="too wide, window of 20: wrong for"):
        verify_joins(workload, [20], {"too wide": lambda _, query, now: wide(21, query, now)}, 40)
    assert len(pot.engine.invoke(narrow[0], START + 39)) > 0
    pot.engine.close()


def test_joins_with_many_partners_are_not_kept_without_the_raised_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(psoup_join_response, "FAN_OUT", MAX_FAN_OUT)
    plan = InvocationPlan(batch=50, batches=1, rounds=1)
    workload = JoinWorkload.uniform(plan.rows([200]), join_conditions(1))
    with pytest.raises(AssertionError, match="PSoup-P: the join is not kept"):
        join_response_times(tmp_path, workload, [200], plan)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_all_ways_to_probe_agree_with_numpy(tmp_path: Path, workload: str) -> None:
    stream = ProbedStream(tmp_path, 4_200)
    values = np.array([0, 17, 17, 255, 300])
    for query in probe_queries(workload, 6):
        methods = {COMPOSITE: stream.composite, SEPARATE: stream.separate, BY_INDEX: stream.by_index}
        probes = {name: prepare(query, values) for name, prepare in methods.items()}
        expected = query.truth(values, stream.values)
        verify_probes(query, expected, probes)
        if expected.shape[1]:
            with pytest.raises(AssertionError, match="composite: wrong pairs"):
                verify_probes(query, expected[:, 1:], probes)
    stream.close()
