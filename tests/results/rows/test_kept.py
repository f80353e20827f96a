"""The cache of partial aggregates: bounded, dropped in time, and safe under concurrent invocations."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tureen.errors import QueryFailed
from tureen.pipeline import arrival
from tureen.results.rows import kept
from tureen.testing.manual_engine import ManualClock, ManualEngine

BASE = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def clock() -> ManualClock:
    """A clock at the beginning of 2026."""
    return ManualClock(BASE)


@pytest.fixture
def engine(tmp_path: Path, clock: ManualClock) -> Iterator[ManualEngine]:
    """A pot with that clock."""
    engine = ManualEngine(tmp_path, clock)
    yield engine
    engine.close()


def _rows(first: int, count: int, every: float = 1.0) -> list[dict[str, Any]]:
    return [{"i": number, "ts": BASE + timedelta(seconds=every * number)} for number in range(first, first + count)]


def test_concurrent_invocations_during_pushes_and_merges(engine: ManualEngine, clock: ManualClock) -> None:
    clock.moment = BASE + timedelta(days=1)
    engine.create_stream("s", "i INT, ts TIMESTAMP", time="ts")
    engine.push("s", _rows(0, 500))
    errors: list[BaseException] = []
    done = threading.Event()

    def invoke(text: str) -> None:
        number = 0
        try:
            while not done.is_set():
                number += 1
                engine.invoker.answer_once(text.format(number % 37 + 1))
        except BaseException as error:
            errors.append(error)

    texts = [
        "SELECT window_start, sum(i) AS a FROM s [TUMBLE {0} SECONDS EMIT PARTIAL]",
        "SELECT i % {0} AS k, count(*), avg(i) FROM s GROUP BY k",
        "SELECT sum(i) AS a, count(DISTINCT i % {0}) FROM s WHERE i > {0}",
        "SELECT window_start, count(*) FROM s [ROWS {0} SLIDE 3] WHERE i % 2 = 0",
    ]
    threads = [threading.Thread(target=invoke, args=(text,)) for text in texts]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for number in range(500, 1500, 50):
            engine.push("s", _rows(number, 50))
            engine.seal(everything=number % 200 == 0)
    finally:
        done.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(before)
    assert not errors
    assert engine.invoker.answer_once("SELECT sum(i) AS a FROM s").table.to_pylist() == [{"a": sum(range(1500))}]


def test_the_cache_stays_within_its_limit(
    engine: ManualEngine, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.moment = BASE + timedelta(days=1)
    engine.create_stream("s", "i INT, ts TIMESTAMP", time="ts")
    engine.push("s", _rows(0, 5000))
    monkeypatch.setattr(engine.invoker.answers._structure_cache, "_limit", 1 << 20)
    for number in range(40):
        start = f"2026-01-01 00:00:00.{number:06d}"
        sql = f"SELECT window_start, sum(i), avg(i) FROM s [TUMBLE 2 SECONDS START AT TIMESTAMP '{start}'] LIMIT 1"
        assert len(engine.invoker.answer_once(sql)) == 1
        engine.invoker.answer_once(f"SELECT sum(i) FROM s WHERE i > {number}")
        assert (
            sum(structure.nbytes for structure in engine.invoker.answers._structure_cache._structures.values())
            < 2 << 20
        )


def test_aggregates_of_replaced_runs_are_dropped(engine: ManualEngine, clock: ManualClock) -> None:
    clock.moment = BASE + timedelta(days=1)
    engine.create_stream("s", "i INT, ts TIMESTAMP", time="ts")
    texts = [f"SELECT i % {number} AS k, count(*) AS n FROM s GROUP BY k" for number in range(1, 9)]
    for first in range(0, 40, 10):
        engine.push("s", _rows(first, 10))
        for text in texts:
            engine.invoker.answer_once(text)
    engine.seal(everything=True)
    structures = list(engine.invoker.answers._structure_cache._structures.values())
    assert len(structures) == len(texts)
    for _ in range(3 * len(texts)):
        assert [row["n"] for row in engine.invoker.answer_once(texts[0])] == [40]
    live = {segment.key for segment in engine.invoker.view.stream(1).segments}
    assert [set(structure._strips) - live for structure in structures] == [set()] * len(texts)


def test_overlapping_steps_are_combined_from_panes(engine: ManualEngine, clock: ManualClock) -> None:
    clock.moment = BASE + timedelta(days=10)
    engine.create_stream("s", "i INT, ts TIMESTAMP", time="ts")
    engine.push("s", _rows(0, 5000))
    answer = engine.invoker.answer_once("SELECT window_start, sum(i) AS a FROM s [RANGE 1 HOUR SLIDE 1 SECOND]")
    assert len(answer) == 3599 + 5000
    whole = [row["a"] for row in answer if BASE <= row["window_start"] < BASE + timedelta(seconds=1400)]
    assert whole == [sum(range(first, first + 3600)) for first in range(1400)]


@pytest.mark.parametrize("item", ["count(*)", "median(i)"])
def test_too_many_steps_fail(engine: ManualEngine, clock: ManualClock, item: str) -> None:
    clock.moment = BASE + timedelta(days=10)
    engine.create_stream("s", "i INT, ts TIMESTAMP", time="ts")
    engine.push("s", _rows(0, 4))
    with pytest.raises(QueryFailed, match="too many steps"):
        engine.invoker.answer_once(f"SELECT {item} AS a FROM s [RANGE 1 DAY SLIDE 1 MICROSECOND]")


def test_many_distinct_values_are_counted_from_the_rows(
    engine: ManualEngine, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "MOST_DISTINCT", 100)
    monkeypatch.setattr(kept, "_MANY_GROUPS", 10)
    engine.create_stream("s", "i INT, ts TIMESTAMP", time="ts", retain="100 seconds")
    query = engine.register("SELECT count(DISTINCT i) AS n FROM s")
    engine.push("s", _rows(0, 300, 0.1))
    clock.moment = BASE + timedelta(seconds=30)
    assert engine.invoke(query).table.to_pylist() == [{"n": 300}]
    (structure,) = engine.invoker.answers._structure_cache._structures.values()
    assert not structure._strips
    for first in range(2000, 2100, 20):
        engine.push("s", _rows(first, 20))
        clock.moment = BASE + timedelta(seconds=first + 20)
        engine.expire()
        assert engine.invoke(query).table.to_pylist() == [{"n": min(first + 20 - 2000, 100)}]
    assert structure._strips


def test_a_window_of_rows_is_complete_only_if_nothing_expired(engine: ManualEngine, clock: ManualClock) -> None:
    engine.create_stream("s", "i INT, ts TIMESTAMP", time="ts", retain="10 seconds")
    engine.push("s", _rows(0, 5, 5.0))
    clock.moment = BASE + timedelta(seconds=20)
    complete = {
        rows: engine.invoker.answer_once(f"SELECT i FROM s BEGIN NOW - {rows} ROWS END NOW").complete
        for rows in (2, 3, 4, 5, 100)
    }
    assert complete == {2: True, 3: True, 4: False, 5: False, 100: False}


def test_a_window_of_rows_is_complete_if_all_rows_are_retained(engine: ManualEngine, clock: ManualClock) -> None:
    engine.create_stream("s", "i INT, ts TIMESTAMP", time="ts", retain="1 day")
    engine.push("s", _rows(0, 5))
    clock.moment = BASE + timedelta(seconds=20)
    assert engine.invoker.answer_once("SELECT i FROM s BEGIN NOW - 100 ROWS END NOW").complete


def test_aggregates_of_a_run_without_hits(
    engine: ManualEngine, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No row selects a block, so the block is not read, whatever the types of its columns are."""
    monkeypatch.setattr(arrival, "TAIL_ROWS", 1)
    engine.create_stream("small", "tiny TINYINT, text STRING, ts TIMESTAMP", "ts")
    query = "SELECT text, max(tiny) AS top FROM small WHERE tiny {} GROUP BY text"
    handles = [engine.register(query.format(condition)) for condition in ("> 11", "> 12")]
    engine.compile()
    engine.push("small", [{"tiny": number, "text": "x", "ts": clock.moment} for number in range(13)])
    assert [engine.invoke(handle).table.to_pylist() for handle in reversed(handles)] == [[], [{"text": "x", "top": 12}]]
