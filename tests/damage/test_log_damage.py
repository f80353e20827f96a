"""Random damage to the inbox's logs; see `tests/damage/log_damage.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.damage.log_damage import check_damage, check_torn
from tureen.pot import log

SEEDS = 150


@pytest.mark.parametrize("check", [check_damage, check_torn])
def test_acknowledged_pushes_are_read_or_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check: Callable[[Path, int], None]
) -> None:
    monkeypatch.setattr(log, "SEGMENT_BYTES", 4096)
    # These files need not survive a power failure.
    monkeypatch.setattr("os.fsync", lambda _: None)
    for seed in range(SEEDS):
        check(tmp_path / str(seed), seed)
