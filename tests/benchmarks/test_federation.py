"""The benchmark of federation at a small size: shared flows need less than the whole stream."""

from __future__ import annotations

from pathlib import Path

from benchmarks import federation
from benchmarks.report import Report
from benchmarks.scale import QUICK


def test_federation_is_measured(tmp_path: Path) -> None:
    report = Report(tmp_path)
    federation.measure(tmp_path / "federation", report, QUICK)
    values = {line.what: line.value for line in report.lines}
    for link in federation.USES:
        assert 0 < values[f"link {link}, shared flows"] < values[f"link {link}, the whole stream once"]
