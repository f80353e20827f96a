"""Streams derived from steps: each step is there once, when it is over, with all of its tuples."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.pipeline.derived_rows import BASE, SCHEMA, answer, counted
from tureen.errors import InvalidSchema
from tureen.pipeline import derivation
from tureen.pot import heads, log
from tureen.results.changes import closed_steps
from tureen.testing.manual_engine import ManualEngine


@pytest.fixture
def engine(engine: ManualEngine) -> ManualEngine:
    """A pot with a stream."""
    engine.create_stream("s", SCHEMA, time="ts", clock="stream")
    return engine


def test_steps_are_there_once_when_they_are_over(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derivation, "STEPS_EVERY", 0.0)
    engine.derive_stream("d", "SELECT k, sum(v) AS total, window_start FROM s [TUMBLE 10 SECONDS] GROUP BY k")

    def at(seconds: int, value: int) -> dict[str, Any]:
        return {"k": 1, "v": value, "ts": BASE + timedelta(seconds=seconds)}

    def totals() -> list[int]:
        engine.derive()
        return [each["total"] for each in answer(engine, "SELECT total FROM d ORDER BY window_start")]

    engine.append("s", [at(1, 1), at(9, 2)])
    assert totals() == []
    engine.append("s", [at(10, 4)])
    assert totals() == [3]
    engine.append("s", [at(5, 100)])
    assert totals() == [3], "a late tuple changes no step that was read"
    engine.append("s", [at(45, 8)])
    assert totals() == [3, 4]


def test_steps_are_read_after_a_pause_that_is_longer_than_the_retention(
    engine: ManualEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(derivation, "STEPS_EVERY", 0.0)
    engine.create_stream("short", "v INT, ts TIMESTAMP", time="ts", clock="stream", retain="10 minutes")
    with pytest.raises(InvalidSchema, match="a step is longer than stream 'short' retains"):
        engine.derive_stream("d", "SELECT count(*) AS n FROM short [TUMBLE 1 HOUR]")
    engine.derive_stream("d", "SELECT count(*) AS n, window_start FROM short [TUMBLE 1 MINUTE]")
    for seconds in (0, 10, 70, 3600, 3670):
        engine.append("short", [{"v": 1, "ts": BASE + timedelta(seconds=seconds)}])
        engine.derive()
    assert [each["n"] for each in answer(engine, "SELECT n FROM d ORDER BY window_start")] == [2, 1, 1]


@pytest.mark.parametrize("at_once", [1, 7, 1000])
def test_history_of_steps_is_read_in_parts(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(derivation, "STEPS_EVERY", 0.0)
    monkeypatch.setattr(closed_steps, "AT_ONCE", at_once)
    sql = "SELECT count(*) AS n, sum(v) AS total, window_start FROM s [HOP 10 SECONDS SLIDE 5 SECONDS] WHERE k = 1"
    seconds = [*range(0, 40, 2), 300, 301, *range(600, 640)]
    engine.append(
        "s", [{"k": int(second != 300), "v": second, "ts": BASE + timedelta(seconds=second)} for second in seconds]
    )
    expected = answer(engine, sql)
    engine.derive_stream("d", sql)
    engine.derive()
    assert counted(answer(engine, "SELECT * FROM d")) == counted(expected)
    pushes = len(list(log.scan(heads.log_directory(engine.catalog.root, 2), None)))
    assert (pushes > 5) == (at_once < 1000)


def test_steps_over_steps_contain_all_tuples(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derivation, "STEPS_EVERY", 0.0)
    engine.derive_stream("inner_steps", "SELECT count(*) AS n, window_start FROM s [TUMBLE 10 SECONDS]")
    engine.derive_stream("outer_steps", "SELECT sum(n) AS n, window_start FROM inner_steps [TUMBLE 1 MINUTE]")
    for seconds in range(200):
        engine.append("s", [{"k": 1, "v": seconds, "ts": BASE + timedelta(seconds=seconds)}])
    engine.derive()
    assert [each["n"] for each in answer(engine, "SELECT n FROM outer_steps ORDER BY window_start")] == [60, 60, 60]
