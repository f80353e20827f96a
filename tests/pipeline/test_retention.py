"""Retention: rows before the horizon are not in answers, and their runs are dropped after a grace."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tureen.pipeline import arrival, upkeep
from tureen.pot.runs import Run, expiring_since, live_runs
from tureen.pot.sweep import sweep
from tureen.testing.manual_engine import ManualClock, ManualEngine

START = datetime(2026, 1, 1, tzinfo=UTC)


def runs_of(soup: ManualEngine) -> list[Run]:
    with soup.catalog.read() as tx:
        return live_runs(tx, 1)


def values(soup: ManualEngine, handle: str) -> list[int]:
    return [row["a"] for row in soup.invoke(handle)]


def test_answers_exclude_rows_before_the_horizon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrival, "TAIL_ROWS", 4)
    soup = ManualEngine(tmp_path)
    soup.create_stream("r", "a INT, ts TIMESTAMP", time="ts", retain="10 seconds")
    wide = soup.register("SELECT a FROM r BEGIN NOW - 60 END NOW")
    narrow = soup.register("SELECT a FROM r BEGIN NOW - 5 END NOW")
    everything = soup.register("SELECT a FROM r")
    for number in range(0, 40, 4):
        soup.push("r", [{"a": n, "ts": START + timedelta(seconds=n)} for n in range(number, number + 4)])
    now = int((START + timedelta(seconds=39)).timestamp() * 1_000_000)
    for _ in range(2):
        assert [row["a"] for row in soup.invoke(wide, now)] == list(range(29, 40))
        assert not soup.invoke(wide, now).complete
        assert [row["a"] for row in soup.invoke(narrow, now)] == list(range(34, 40))
        assert soup.invoke(narrow, now).complete
        assert [row["a"] for row in soup.invoke(everything, now)] == list(range(29, 40))
        soup.expire()
    assert sum(run.rows for run in runs_of(soup)) == 12
    soup.close()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def retaining(tmp_path: Path, clock: ManualClock) -> Iterator[ManualEngine]:
    """A stream without a time column and with a retention of a day, with five hours of rows."""
    opened = ManualEngine(tmp_path / "retaining", clock)
    opened.create_stream("r", "a INT", retain="1 day")
    for number in range(5):
        opened.push("r", [{"a": number}])
        clock.moment += timedelta(hours=1)
    yield opened
    opened.close()


def test_a_clock_set_back_restores_rows_within_the_grace(retaining: ManualEngine, clock: ManualClock) -> None:
    everything = retaining.register("SELECT a FROM r")
    counted = retaining.register("SELECT count(*) AS n FROM r")
    clock.moment += timedelta(days=5)
    retaining.push("r", [{"a": 5}])
    for _ in range(3):
        retaining.expire(upkeep.EXPIRED_GRACE)
        assert values(retaining, everything) == [5]
        clock.moment += timedelta(minutes=15)
    clock.moment -= timedelta(days=5)
    for _ in range(2):
        retaining.expire(upkeep.EXPIRED_GRACE)
        assert values(retaining, everything) == [0, 1, 2, 3, 4, 5]
        assert [row["n"] for row in retaining.invoke(counted)] == [6]
        sweep(retaining.catalog, grace=-1)
    with retaining.catalog.read() as tx:
        assert expiring_since(tx, 1) == {}


def test_expired_runs_are_dropped_after_the_grace(retaining: ManualEngine, clock: ManualClock) -> None:
    clock.moment += timedelta(days=5)
    retaining.push("r", [{"a": 5}])
    retaining.expire(upkeep.EXPIRED_GRACE)
    clock.moment += timedelta(minutes=59)
    retaining.expire(upkeep.EXPIRED_GRACE)
    assert len(runs_of(retaining)) == 6
    clock.moment += timedelta(minutes=1)
    retaining.expire(upkeep.EXPIRED_GRACE)
    assert len(runs_of(retaining)) == 1
    with retaining.catalog.read() as tx:
        assert expiring_since(tx, 1) == {}


def test_the_grace_restarts_when_the_clock_is_set_back(retaining: ManualEngine, clock: ManualClock) -> None:
    clock.moment += timedelta(days=9)
    retaining.push("r", [{"a": 5}])
    retaining.expire(upkeep.EXPIRED_GRACE)
    clock.moment -= timedelta(days=4)
    for minutes, left in ((0, 6), (59, 6), (1, 1)):
        clock.moment += timedelta(minutes=minutes)
        retaining.expire(upkeep.EXPIRED_GRACE)
        assert len(runs_of(retaining)) == left


def test_a_short_retention_has_a_short_grace(tmp_path: Path, clock: ManualClock) -> None:
    opened = ManualEngine(tmp_path / "short", clock)
    opened.create_stream("r", "a INT", retain="1 minute")
    opened.push("r", [{"a": 0}])
    clock.moment += timedelta(minutes=2)
    opened.push("r", [{"a": 1}])
    opened.expire(upkeep.EXPIRED_GRACE)
    assert len(runs_of(opened)) == 2
    clock.moment += timedelta(minutes=1)
    opened.expire(upkeep.EXPIRED_GRACE)
    assert len(runs_of(opened)) == 1
    opened.close()
