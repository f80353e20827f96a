"""The benchmark of sharing at a small size: everything is measured, and sharing needs the least traffic."""

from __future__ import annotations

from pathlib import Path

from benchmarks import sharing
from benchmarks.report import Report
from benchmarks.scale import QUICK
from tureen.sharing.planning import Strategy


def test_sharing_is_measured(tmp_path: Path) -> None:
    report = Report(tmp_path)
    sharing.measure_matching(report, QUICK)
    streams = sharing._streams(QUICK, ("SP05", "SP10"))
    results = sharing.measure_figure(report, streams, QUICK)
    sharing.measure_planning(report, streams, QUICK)
    sharing.measure_subnets(report, QUICK)
    assert all(line.value > 0 for line in report.lines)
    assert results[Strategy.SHARING].total == min(result.total for result in results.values())
