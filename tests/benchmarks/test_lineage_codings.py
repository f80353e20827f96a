"""The benchmark of lineage codings at small sizes: all codings give the same rows."""

from __future__ import annotations

from pathlib import Path

from benchmarks import lineage_codings
from benchmarks.report import Report


def test_all_codings_are_measured(tmp_path: Path) -> None:
    curves = lineage_codings.measure(Report(tmp_path), quick=True)
    assert set(curves) == {"overlapping", "disjoint"}
    for by_coding in curves.values():
        assert [len(points) for points in by_coding.values()] == [2] * len(lineage_codings.CODINGS)
