"""SIGKILL while streams are derived: every change is in the derived streams, and none is there twice."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.crash.processes import run_until_killed
from tureen.pipeline import deriving
from tureen.pot import log
from tureen.punctuation import Punctuation
from tureen.testing.manual_engine import ManualEngine

BASE = datetime(2026, 1, 1, tzinfo=UTC)
PUSHES = 8

POINTS = [
    "derive.before_push",
    "derive.after_push",
    "derive.before_note",
    "derive.after_note",
    "push.before_write",
    "push.before_sync",
    "push.after_sync",
    "push.after_publish",
    "sink.before_commit",
    "sink.after_commit",
    "trim.before_delete",
]

STREAMS = {
    "even": "SELECT v, ts FROM s WHERE v % 2 = 0",
    "ten": "SELECT v * 10 AS v, ts FROM even",
    "pairs": "SELECT a.v, b.v AS other, a.ts FROM s a JOIN even b ON a.v = b.v",
    "finals": "SELECT v, count(*) AS n FROM closed GROUP BY v EMIT FINAL",
}


def work(root: Path, acknowledgements: Path, crash: Path | None = None) -> None:
    """Push rows that were not acknowledged before, and derive; the crash point is armed after some pushes."""
    deriving.PUSH_ROWS, log.SEGMENT_BYTES = 2, 1
    done = acknowledgements.read_text().split() if acknowledgements.exists() else []
    engine = ManualEngine(root)
    with acknowledgements.open("a") as file:
        for number in range(len(done), PUSHES):
            if crash is not None and number == 3:
                crash.touch()
            rows = [{"v": 5 * number + each, "ts": BASE + timedelta(seconds=number)} for each in range(5)]
            engine.append("s", rows)
            engine.append("closed", [*rows, *rows, Punctuation(v=[row["v"] for row in rows[1:]])])
            print(number, file=file, flush=True)
            engine.derive()
            for name in ("s", "closed", *STREAMS):
                engine.take(name)
            if number % 2:
                engine.deriver.note_progress()
            engine.inbox.trim()
    engine.derive()
    engine.close()


@pytest.mark.parametrize("point", POINTS)
def test_kill_and_restart(tmp_path: Path, crash_dir: Path, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    monkeypatch.setattr(deriving, "PUSH_ROWS", 2)
    monkeypatch.setattr(log, "SEGMENT_BYTES", 1)
    root, acknowledgements = tmp_path / "pot", tmp_path / "acknowledgements"
    engine = ManualEngine(root)
    for name in ("s", "closed"):
        engine.create_stream(name, "v INT, ts TIMESTAMP", time="ts")
    for name, sql in STREAMS.items():
        engine.derive_stream(name, sql)
    engine.close()
    run_until_killed(work, root, acknowledgements, crash_dir / point)
    work(root, acknowledgements)
    engine = ManualEngine(root)

    def values(name: str) -> Counter[int]:
        return Counter(row["v"] for row in engine.invoker.answer_once(f"SELECT v FROM {name}"))

    pushed = values("s")
    # A push that was not acknowledged may be there twice, as it was repeated without a key.
    assert set(pushed) == set(range(5 * PUSHES))
    even = Counter({v: count for v, count in pushed.items() if v % 2 == 0})
    assert values("even") == even
    assert values("ten") == Counter({10 * v: count for v, count in even.items()})
    assert values("pairs") == Counter({v: count**2 for v, count in even.items()})
    # Of each push all values but the first are closed: a repeated push adds no rows to their groups.
    finals = list(engine.invoker.answer_once("SELECT v, n FROM finals ORDER BY v"))
    assert finals == [{"v": v, "n": 2} for v in range(5 * PUSHES) if v % 5]
    engine.close()
