"""The growth of joins at a small size: answers equal DuckDB's, and every curve has a point for each size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import join_growth
from benchmarks.report import Report
from benchmarks.scale import QUICK


def test_growth_is_measured_and_plotted(tmp_path: Path) -> None:
    report = Report(tmp_path)
    findings = join_growth.measure(tmp_path, report, replace(QUICK, growth_rounds=1))
    assert {len(curve) for curve in findings.inputs.values()} == {7}
    assert len(findings.inputs) == 2 * len(join_growth.STREAMS)
    assert {len(curve) for curve in findings.windows.values()} == {5}
    assert set(findings.windows) == {
        f"{share}, {name}"
        for share in join_growth.SHARES
        for name in (join_growth.LAZY, join_growth.KEPT, join_growth.DUCKDB)
    }
    assert all(line.value > 0 for line in report.lines)
    pytest.importorskip("matplotlib")
    join_growth.plot(findings, report)
    assert sorted(path.name for path in tmp_path.glob("*.svg")) == ["join-inputs.svg", "join-windows.svg"]


def test_partners_are_near() -> None:
    first, second = (join_growth.near_rows(4_096, seed).column("k").to_numpy() for seed in (1, 2))
    assert not np.array_equal(first, second)
    assert np.array_equal(np.sort(first), np.arange(4_096))
    assert np.array_equal(first // join_growth.NEAR, second // join_growth.NEAR)
