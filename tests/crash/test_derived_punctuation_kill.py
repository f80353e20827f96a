"""SIGKILL while punctuations are derived: each is in the derived streams once, after the rows that it is about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.crash.processes import run_until_killed
from tureen.pipeline import deriving
from tureen.position import BEGINNING, Position
from tureen.pot import log
from tureen.punctuation import Punctuation
from tureen.soup.feed import QueryChanges
from tureen.testing.manual_engine import ManualEngine

POINTS = [
    *("derive.before_push", "derive.after_push", "derive.after_note", "push.after_sync"),
    *("punctuated.after_commit", "sink.after_commit", "closed.before_commit", "trim.before_delete"),
]
STREAMS = {
    "chosen": "SELECT k, v FROM a WHERE v < 3",
    "pairs": "SELECT a.k, b.v FROM a JOIN b ON a.k = b.k",
    "ends": "SELECT k AS key FROM pairs",
}
PUSHES = 4


def work(root: Path, crash: Path | None = None) -> None:
    """Push rows and punctuations with keys, and derive; the crash point is armed before the first punctuation."""
    deriving.PUSH_ROWS, log.SEGMENT_BYTES = 2, 1
    engine = ManualEngine(root)
    for number in range(PUSHES):
        if crash is not None and number == 1:
            crash.touch()
        for stream in "ab":
            items: list[Any] = [{"k": number, "v": each} for each in range(2)]
            items += [Punctuation(k=number - 1), Punctuation(v=100 + number)] if number else []
            engine.append(stream, items, key=f"{stream} {number}")
            engine.derive()
        for name in ("a", "b", *STREAMS):
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
    root = tmp_path / "pot"
    engine = ManualEngine(root)
    for stream in "ab":
        engine.create_stream(stream, "k INT, v INT")
    for name, sql in STREAMS.items():
        engine.derive_stream(name, sql)
    engine.close()
    run_until_killed(work, root, crash_dir / point)
    work(root)
    engine = ManualEngine(root)

    def items(name: str) -> list[Any]:
        handle = engine.register(f"SELECT * FROM {name}")
        new = engine.invoker.new_rows(handle, Position.parse(BEGINNING), punctuations=True)
        changes = list(QueryChanges(handle, new))
        return [change.punctuation or tuple(change.row.values()) for change in changes]

    chosen, pairs, ends = map(items, STREAMS)
    expected: list[Any] = []
    for number in range(PUSHES):
        expected += [(number, 0), (number, 1)]
        expected += [Punctuation(k=number - 1), Punctuation(v=100 + number)] if number else []
    assert chosen == expected
    assert [item for item in pairs if isinstance(item, Punctuation)] == [Punctuation(k=k) for k in range(PUSHES - 1)]
    assert sorted(item for item in pairs if not isinstance(item, Punctuation)) == sorted(
        (number, v) for number in range(PUSHES) for v in (0, 0, 1, 1)
    )
    for number in range(PUSHES - 1):
        last = max(index for index, item in enumerate(pairs) if isinstance(item, tuple) and item[0] == number)
        assert pairs.index(Punctuation(k=number)) > last
    assert ends == [Punctuation(key=each.where["k"]) if isinstance(each, Punctuation) else each[:1] for each in pairs]
    engine.close()
