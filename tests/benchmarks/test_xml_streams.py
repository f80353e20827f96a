"""The benchmark of XML at a small size: the rows are those of the document, and everything is measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks import xml_streams
from benchmarks.report import Report
from benchmarks.scale import QUICK


def test_xml_is_measured(tmp_path: Path) -> None:
    report = Report(tmp_path)
    xml_streams.measure(tmp_path, report, replace(QUICK, photons=500))
    assert len(report.lines) == 4
    assert all(line.value > 0 for line in report.lines)
