"""Tuple state at a small size: all codings have the same rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import cacq_state
from benchmarks.report import Report


def test_rates_by_bits_of_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cacq_state, "BITS", (64, 256))
    monkeypatch.setattr(cacq_state, "ROUNDS", 1)
    rates = cacq_state.tuple_state(Report(folder=tmp_path))
    assert [set(of_bits) for of_bits in rates.values()] == [set(cacq_state.METHODS)] * 2
    assert all(rate > 0 for of_bits in rates.values() for rate in of_bits.values())
