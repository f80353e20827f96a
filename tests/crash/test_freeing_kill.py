"""SIGKILL while runs are freed that nothing needs: no answer and no derived stream misses a tuple."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.crash.processes import run_until_killed
from tureen.pot.streams import find_stream
from tureen.punctuation import Punctuation
from tureen.testing.manual_engine import ManualClock, ManualEngine
from tureen.window import to_micros

BASE = datetime(2026, 1, 1, tzinfo=UTC)
PUSHES = 8

POINTS = [
    "free.before_commit",
    "free.in_commit",
    "free.after_commit",
    "derive.before_push",
    "derive.after_push",
    "derive.before_note",
    "derive.after_note",
]

STREAMS = {
    "even": "SELECT v, ts FROM a WHERE v % 2 = 0",
    "pairs": "SELECT a.v, b.v AS other, a.ts FROM a JOIN b ON a.v = b.v",
    "finals": "SELECT v, count(*) AS n FROM b GROUP BY v EMIT FINAL",
}
WINDOW = "SELECT v FROM a BEGIN NOW - 2 END NOW"


def work(root: Path, acknowledgements: Path, crash: Path | None = None) -> None:
    """Push, derive and free; the crash point is armed after some pushes. Pushes have keys, so they are there once."""
    done = acknowledgements.read_text().split() if acknowledgements.exists() else []
    engine = ManualEngine(root, ManualClock(BASE + timedelta(days=1)))
    with acknowledgements.open("a") as file:
        for number in range(len(done), PUSHES):
            if crash is not None and number == 4:
                crash.touch()
            moment = BASE + timedelta(seconds=number)
            values = [3 * number + each for each in range(3)]
            engine.append("a", [*({"v": v, "ts": moment} for v in values), Punctuation(v=values)], f"a{number}")
            # The partners come later.
            values = [v - 3 for v in values]
            engine.append("b", [*({"v": v, "ts": moment} for v in values), Punctuation(v=values)], f"b{number}")
            print(number, file=file, flush=True)
            for name in ("a", "b"):
                engine.take(name)
            engine.derive()
            engine.free()
            engine.deriver.note_progress()
            engine.free()
    engine.derive()
    engine.close()


@pytest.mark.parametrize("point", POINTS)
def test_kill_and_restart(tmp_path: Path, crash_dir: Path, point: str) -> None:
    root, acknowledgements = tmp_path / "pot", tmp_path / "acknowledgements"
    engine = ManualEngine(root)
    for name in ("a", "b"):
        engine.create_stream(name, "v INT, ts TIMESTAMP", time="ts", clock="stream", retain="needed")
    for name, sql in STREAMS.items():
        engine.derive_stream(name, sql)
    window = engine.register(WINDOW)
    engine.close()
    run_until_killed(work, root, acknowledgements, crash_dir / point)
    work(root, acknowledgements)
    engine = ManualEngine(root)

    def values(name: str) -> list[int]:
        return sorted(row["v"] for row in engine.invoker.answer_once(f"SELECT v FROM {name}"))

    assert values("even") == list(range(0, 3 * PUSHES, 2))
    assert values("pairs") == list(range(3 * (PUSHES - 1)))
    finals = list(engine.invoker.answer_once("SELECT v, n FROM finals ORDER BY v"))
    assert finals == [{"v": v, "n": 1} for v in range(-3, 3 * (PUSHES - 1))]
    answer = engine.invoke(window)
    assert ([row["v"] for row in answer], answer.complete) == (list(range(3 * (PUSHES - 3), 3 * PUSHES)), True)
    with engine.catalog.read() as tx:
        # All but what the window and partners that are still to come need.
        assert find_stream(tx, "a").freed_before == to_micros(BASE + timedelta(seconds=PUSHES - 4)) + 1
        assert find_stream(tx, "b").freed_before == to_micros(BASE + timedelta(seconds=PUSHES - 1)) + 1
    engine.close()
