"""Followed joins at a small size: what followers read is compared with what each computes alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import continuous_joins


def test_cost_of_a_push_is_measured(tmp_path: Path) -> None:
    assert continuous_joins._cost(tmp_path, 4, 1_000, 3) > 0


def test_fixed_order_that_is_best_visits_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(continuous_joins, "RATE", 1_000)
    best = continuous_joins._work(tmp_path, "fixed", exchange=False)
    worst = continuous_joins._work(tmp_path, "fixed", exchange=True)
    assert 1 < best < 1.5 < worst <= 2
