"""The benchmark of closed keys at a small size: the closed rows are the expected ones, and everything is measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks import closed_keys
from benchmarks.report import Report
from benchmarks.scale import QUICK


def test_closed_keys_are_measured(tmp_path: Path) -> None:
    report = Report(tmp_path)
    closed_keys.measure(tmp_path, report, replace(QUICK, closed_keys=5_000))
    assert len(report.lines) >= 7
    assert all(line.value > 0 for line in report.lines)
