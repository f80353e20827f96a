"""SIGKILL at every commit of punctuations: none is lost, applied to earlier rows, or rejects a row twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash import punctuated_pot
from tests.crash.processes import run_until_killed
from tests.crash.punctuated_pot import LATENESS, PUSHES, RULES
from tureen.pot import log
from tureen.pot.pending_rejections import all_rejected
from tureen.testing.manual_engine import ManualEngine
from tureen.testing.punctuations import PunctuatedStream

POINTS = (
    *("push.before_write", "push.before_sync", "push.after_sync", "push.in_publish", "push.after_publish"),
    *("punctuated.after_commit", "sink.before_commit", "sink.in_commit", "sink.after_commit", "trim.before_delete"),
    *("closed.before_write", "closed.before_commit", "closed.in_commit", "closed.after_commit"),
)


@pytest.mark.parametrize("point", POINTS)
def test_punctuations_after_a_kill(
    tmp_path: Path, crash_dir: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    monkeypatch.setattr(log, "SEGMENT_BYTES", 1)
    punctuated_pot.create_pot(tmp_path)
    run_until_killed(punctuated_pot.work_until_killed, tmp_path, point)
    assert not (crash_dir / point).exists()
    engine = ManualEngine(tmp_path)
    # Repeated with the same keys: what was stored before the kill must not be stored again.
    punctuated_pot.work(engine)
    for stream, rules in RULES.items():
        twin = PunctuatedStream(rules.unique, "ts" if rules else None, LATENESS if rules else None)
        for items in PUSHES:
            twin.push(items)
        for _ in range(2):
            answer = engine.invoker.answer_once(f"SELECT n, k FROM {stream}")
            assert sorted((row["n"], row["k"]) for row in answer) == sorted(
                (row["n"], row["k"]) for row in twin.accepted
            )
            rejected = [(row["row"]["n"], row["row"]["k"]) for row in all_rejected(engine.catalog, stream)]
            assert rejected == [(row["n"], row["k"]) for row in twin.rejected]
            engine.take(stream)
            engine.inbox.trim()
    engine.close()
