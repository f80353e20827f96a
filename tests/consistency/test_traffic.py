"""Writers that read their own pushes, with concurrent readers and registrations: see `tests/consistency/traffic.py`."""

from __future__ import annotations

from pathlib import Path

import tureen
from tests.consistency.traffic import Traffic

PUSHES = 6


def test_no_answer_lacks_rows_that_were_waited_for_or_seen(soup: tureen.Soup, crash_dir: Path) -> None:
    soup.start(wait=120)
    # In every process, delay between SQLite's commit and the update of the word in shared memory.
    (crash_dir / "commit.before_word.hold").write_text("0.02")
    traffic = Traffic(soup, 1, lambda pushes: pushes < PUSHES)
    traffic.run()
    assert traffic.violations == []
    assert traffic.pushes == 4 * PUSHES
