"""SIGKILL while punctuations are derived: each is in the derived streams once, after the rows that it is about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.crash.derived_pot import DerivedPot
from tureen.position import BEGINNING, Position
from tureen.punctuation import Punctuation
from tureen.soup.change_batches import QueryChanges
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

POT = DerivedPot(dict.fromkeys("ab", "k INT, v INT"), STREAMS, PUSHES, armed_at=1)
"""The crash point is armed before the first punctuation."""


def push(engine: ManualEngine, number: int) -> None:
    """Push rows and punctuations, with keys, so that a push that is repeated adds nothing."""
    for stream in "ab":
        items: list[Any] = [{"k": number, "v": each} for each in range(2)]
        items += [Punctuation(k=number - 1), Punctuation(v=100 + number)] if number else []
        engine.append(stream, items, key=f"{stream} {number}")
        engine.derive()


@pytest.mark.parametrize("point", POINTS)
def test_kill_and_restart(tmp_path: Path, crash_dir: Path, point: str) -> None:
    with POT.after_kill(tmp_path / "pot", push, crash_dir / point) as engine:
        check(engine)


def check(engine: ManualEngine) -> None:
    """Compare the derived streams with what was pushed."""

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
