"""The benchmark of covering streams at a small size: the answers are equal, and everything is measured."""

from __future__ import annotations

from pathlib import Path

from benchmarks import covering
from benchmarks.report import Report
from benchmarks.scale import QUICK


def test_covering_streams_are_measured(tmp_path: Path) -> None:
    report = Report(tmp_path)
    covering.measure(tmp_path, report, QUICK)
    assert len(report.lines) == 10
    assert all(line.value > 0 for line in report.lines)
