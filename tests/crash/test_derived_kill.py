"""SIGKILL while streams are derived: every change is in the derived streams, and none is there twice."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from tests.crash.derived_pot import DerivedPot
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


POT = DerivedPot(dict.fromkeys(("s", "closed"), "v INT, ts TIMESTAMP"), STREAMS, PUSHES, armed_at=3, time="ts")


def push(acknowledgements: Path, engine: ManualEngine, number: int) -> None:
    """Push rows, and acknowledge them before anything is derived."""
    rows = [{"v": 5 * number + each, "ts": BASE + timedelta(seconds=number)} for each in range(5)]
    engine.append("s", rows)
    engine.append("closed", [*rows, *rows, Punctuation(v=[row["v"] for row in rows[1:]])])
    with acknowledgements.open("a") as file:
        print(number, file=file, flush=True)


@pytest.mark.parametrize("point", POINTS)
def test_kill_and_restart(tmp_path: Path, crash_dir: Path, point: str) -> None:
    acknowledgements = tmp_path / "acknowledgements"
    acknowledgements.touch()

    def count_acknowledged() -> int:
        return len(acknowledgements.read_text().split())

    with POT.after_kill(
        tmp_path / "pot", partial(push, acknowledgements), crash_dir / point, count_acknowledged
    ) as engine:
        check(engine)


def check(engine: ManualEngine) -> None:
    """Compare the derived streams with what was pushed."""

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
