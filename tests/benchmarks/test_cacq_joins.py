"""CACQ's comparison with NiagaraCQ at a small size: all plans give the same rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import cacq_joins
from benchmarks.report import Report


def test_plans_give_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("QUOTES", 60), ("PRICES", 60), ("FUNCTIONS", 2)):
        monkeypatch.setattr(cacq_joins, name, value)
    findings = cacq_joins.measure(Report(), tmp_path, quick=True)
    assert set(findings.queries) == {1, 10, 100}
    assert all(set(times) == {"shared", "pulled up", "pushed down"} for times in findings.queries.values())
    assert all(set(times) == {"selections first", "join first"} for times in findings.articles.values())
