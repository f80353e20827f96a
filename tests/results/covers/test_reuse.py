"""Answers from derived streams that cover a query: the same as from its base stream, in every detail."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.position import Position
from tureen.pot.streams import drop_stream, find_stream
from tureen.results.answer import Answer
from tureen.results.invoke import Invoker
from tureen.testing.manual_engine import ManualEngine
from tureen.window import to_micros

BASE = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = "k INT, v INT, x DOUBLE, s STRING, ts TIMESTAMP"

DERIVED = {
    "small": "SELECT * FROM s WHERE k = 1",
    "narrow": "SELECT v, ts, k FROM s WHERE k = 1 AND v > 2",
    "doubles": "SELECT x, ts FROM s WHERE x > 0.5",
    "renamed": "SELECT v AS k, k AS v, ts FROM s WHERE k = 1",
    "recent": "SELECT * FROM s WHERE k = 1 BEGIN NOW - 3 SECONDS END NOW",
}
QUERIES = [
    "SELECT * FROM s WHERE k = 1",
    "SELECT v, v * 2 AS w FROM s WHERE k = 1 AND v > 3",
    "SELECT v FROM s WHERE k = 1 AND v BETWEEN 3 AND 8 BEGIN NOW - 5 SECONDS END NOW",
    "SELECT v FROM s WHERE k = 1 AND v > 3 ORDER BY v DESC LIMIT 3",
    "SELECT DISTINCT k FROM s WHERE k = 1 AND v > 2",
    "SELECT x FROM s WHERE x > 1",
    "SELECT x FROM s WHERE x > 0.1",
    "SELECT s, v FROM s WHERE k = 1 AND s LIKE 'a%'",
    "SELECT v, row_number() OVER (ORDER BY v) AS n FROM s WHERE k = 1 AND v > 2",
    "SELECT v FROM s WHERE k = 1 AND v > 3 BEGIN NOW - 3 ROWS END NOW",
    "SELECT count(*) AS n, sum(v) AS total FROM s WHERE k = 1 AND v > 3",
    "SELECT v FROM s WHERE k = 1 AND ts > NOW - INTERVAL '4' SECOND",
    "SELECT v FROM s WHERE k = 1 AND v + k > 4",
]


def row(number: int, k: int, x: float | None) -> dict[str, Any]:
    times = BASE + timedelta(seconds=number - 4 * (number % 2))
    return {"k": k, "v": number, "x": x, "s": f"{'ab'[number % 2]}{number}", "ts": times}


def of_base(engine: ManualEngine, sql: str) -> Answer:
    """The answer of a process that does not know how far streams are derived."""
    return Invoker(engine.catalog, engine._clock).answer_once(sql)


def check_equal(engine: ManualEngine, sql: str) -> None:
    check_same(engine.invoker.answer_once(sql), of_base(engine, sql))


def check_same(answer: Answer, expected: Answer) -> None:
    assert answer.table.schema == expected.table.schema
    assert _text(answer) == _text(expected)
    assert (answer.window, answer.complete, answer.position) == (expected.window, expected.complete, expected.position)


def _text(answer: Answer) -> str:
    """The rows as a text, in which NaN equals itself."""
    return str(answer.table.to_pylist())


def source(engine: ManualEngine, sql: str) -> str | None:
    plan = engine.invoker.explain_once(sql)["reuse"]
    return None if plan is None else plan["stream"]


@pytest.fixture
def engine(engine: ManualEngine) -> ManualEngine:
    engine.create_stream("s", SCHEMA, time="ts", clock="stream")
    return engine


def fill(engine: ManualEngine, count: int = 40) -> None:
    engine.push("s", [row(number, number % 5, number / 10) for number in range(count)])
    engine.derive()


def test_the_smallest_covering_stream_is_read(engine: ManualEngine) -> None:
    engine.derive_stream("small", DERIVED["small"])
    engine.derive_stream("narrow", DERIVED["narrow"])
    fill(engine)
    assert source(engine, "SELECT v FROM s WHERE k = 1 AND v > 3") == "narrow"
    assert source(engine, "SELECT v FROM s WHERE k = 1 AND v > 1") == "small"
    assert source(engine, "SELECT v FROM s WHERE k < 2") is None
    assert source(engine, "SELECT x FROM s WHERE k = 1 AND v > 3") == "small", "narrow has no column x"
    explained = engine.invoker.explain_once("SELECT v FROM s WHERE k = 1 AND v > 3")["reuse"]
    assert explained["factors"] == ["v >= 4"]
    assert (explained["tuples"], explained["of"]) == (7, 40)


@pytest.mark.parametrize("sql", QUERIES)
def test_answers_are_equal(engine: ManualEngine, sql: str) -> None:
    for name, query in DERIVED.items():
        engine.derive_stream(name, query)
    fill(engine)
    check_equal(engine, sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT v FROM s WHERE k = 1 AND v > 3 BEGIN NOW - 3 ROWS END NOW",
        "SELECT count(*) AS n FROM s WHERE k = 1 AND v > 3",
        "SELECT window_start, count(*) AS n FROM s WHERE k = 1 GROUP BY TUMBLE(ts, INTERVAL '1' SECOND)",
        "SELECT v FROM s WHERE v + k = 4 AND k < 9",
    ],
)
def test_queries_that_need_the_base_stream(engine: ManualEngine, sql: str) -> None:
    engine.derive_stream("small", DERIVED["small"])
    fill(engine)
    assert source(engine, sql) is None


@pytest.mark.parametrize("name", ["renamed", "recent"])
def test_streams_that_are_not_a_part_of_another(engine: ManualEngine, name: str) -> None:
    engine.derive_stream(name, DERIVED[name])
    fill(engine)
    assert source(engine, "SELECT v FROM s WHERE k = 1 AND v > 3") is None


def test_a_stream_that_is_behind_is_not_read(engine: ManualEngine) -> None:
    engine.derive_stream("small", DERIVED["small"])
    fill(engine)
    sql = "SELECT v FROM s WHERE k = 1"
    assert source(engine, sql) == "small"
    engine.append("s", [row(99, 2, None)])
    assert source(engine, sql) is None, "also if the new row is not in it: nobody knows yet"
    check_equal(engine, sql)
    engine.derive()
    assert source(engine, sql) == "small"
    check_equal(engine, sql)


def test_a_stream_with_shorter_retention_is_not_read(engine: ManualEngine) -> None:
    engine.derive_stream("short", DERIVED["small"], retain="5 seconds")
    fill(engine)
    assert source(engine, "SELECT v FROM s WHERE k = 1") is None


def test_what_has_expired_in_the_base_stream_is_not_answered(engine: ManualEngine) -> None:
    engine.create_stream("r", SCHEMA, time="ts", clock="stream", retain="10 seconds")
    engine.derive_stream("kept", "SELECT * FROM r WHERE k = 1")
    engine.push("r", [row(number, number % 5, 1.0) for number in range(40)])
    engine.derive()
    sql = "SELECT v FROM r WHERE k = 1 BEGIN NOW - 20 SECONDS END NOW"
    assert source(engine, sql) == "kept"
    answer = engine.invoker.answer_once(sql)
    assert not answer.complete
    assert answer.table["v"].to_pylist() == [36]
    check_equal(engine, sql)


def test_streams_with_an_abstract_clock(engine: ManualEngine) -> None:
    """The time is a number of seconds."""
    engine.create_stream("d", "k INT, v INT, at DOUBLE", time="at", clock="stream", retain="20 seconds")
    engine.derive_stream("part", "SELECT v, k, at FROM d WHERE k = 1")
    engine.push("d", [{"k": number % 5, "v": number, "at": number - 4.5 * (number % 2)} for number in range(40)])
    engine.derive()
    for sql in ("SELECT v FROM d WHERE k = 1", "SELECT v, at FROM d WHERE k = 1 AND v > 3 BEGIN NOW - 9 END NOW"):
        assert source(engine, sql) == "part"
        check_equal(engine, sql)


def test_a_dropped_stream_is_not_read_any_more(engine: ManualEngine) -> None:
    engine.derive_stream("small", DERIVED["small"])
    fill(engine)
    handle = engine.register("SELECT v FROM s WHERE k = 1", materialize=False)
    before = engine.invoke(handle)
    assert engine.invoker.explain(handle)["reuse"]["stream"] == "small"
    with engine.catalog.write() as tx:
        drop_stream(tx, find_stream(tx, "small"))
    assert engine.invoke(handle).table.equals(before.table)
    assert engine.invoker.explain(handle)["reuse"] is None
    engine.derive_stream("small", DERIVED["small"])
    engine.derive()
    assert engine.invoke(handle).table.equals(before.table)
    assert engine.invoker.explain(handle)["reuse"]["stream"] == "small"


def test_an_eager_query_is_looked_up(engine: ManualEngine) -> None:
    engine.derive_stream("small", DERIVED["small"])
    fill(engine)
    handle = engine.register("SELECT v FROM s WHERE k = 1", materialize=True)
    assert engine.invoker.explain(handle)["reuse"] is None


def test_extra_tuples_are_noticed(engine: ManualEngine) -> None:
    """A copy of a pot in use may have derived tuples without those that they follow from."""
    engine.derive_stream("small", DERIVED["small"])
    fill(engine)
    engine.push("small", [row(500, 1, 0.0)])
    assert source(engine, "SELECT v FROM s WHERE k = 1") is None
    check_equal(engine, "SELECT v FROM s WHERE k = 1")


def test_a_factor_that_raises_raises(engine: ManualEngine) -> None:
    """The sum overflows for a tuple that the derived stream does not have."""
    engine.derive_stream("small", "SELECT * FROM s WHERE v <= k")
    engine.push("s", [{**row(number, 9, 0.0), "v": number} for number in range(3)])
    engine.push("s", [{**row(number, 2**31 - 1, 0.0), "v": 2**31 - 1} for number in range(9)])
    engine.derive()
    assert source(engine, "SELECT v FROM s WHERE v <= k - 5") is None


def test_answers_are_those_of_their_positions(engine: ManualEngine) -> None:
    """While rows are pushed and derived in other threads, each answer has exactly the rows up to its position."""
    engine.derive_stream("small", DERIVED["small"])
    fill(engine, 0)
    handle = engine.register("SELECT v FROM s WHERE k = 1", materialize=False)
    (stream_id,) = engine.invoker.view.query(handle).stream_ids
    done = Event()

    def push() -> None:
        for start in range(0, 450, 3):
            engine.append("s", [row(number, number % 5, None) for number in range(start, start + 3)])

    def derive() -> None:
        while not done.is_set():
            engine.deriver.catch_up()

    threads = [Thread(target=push), Thread(target=derive)]
    for thread in threads:
        thread.start()
    try:
        next_id = 0
        while next_id < 450:
            answer = engine.invoke(handle)
            next_id = Position.parse(answer.position).marks[stream_id].next_id
            assert sorted(answer.table["v"].to_pylist()) == list(range(1, next_id, 5))
    finally:
        threads[0].join()
        done.set()
        threads[1].join()
    engine.derive()
    assert source(engine, "SELECT v FROM s WHERE k = 1") == "small"


rows = st.lists(
    st.builds(
        row,
        st.integers(0, 30),
        st.sampled_from([0, 1, 1, 2, 3]),
        st.sampled_from([None, 0.1, 0.5, 0.6, 2.0, math.inf, -math.inf, math.nan]),
    ),
    min_size=1,
    max_size=12,
)
steps = st.lists(st.tuples(st.sampled_from(["push", "append", "derive", "take", "seal", "late"]), rows), max_size=7)


@given(steps, st.sampled_from([None, "8 seconds"]), st.lists(st.sampled_from(sorted(DERIVED)), unique=True, min_size=1))
@example_settings(8)
def test_answers_are_equal_at_every_step(
    actions: list[tuple[str, list[dict[str, Any]]]], retain: str | None, names: list[str]
) -> None:
    with TemporaryDirectory() as directory:
        engine = ManualEngine(Path(directory), lambda: to_micros(BASE + timedelta(seconds=40)))
        engine.create_stream("s", SCHEMA, time="ts", clock="stream", retain=retain)
        engine.push("s", [row(number, 4, None) for number in range(12)])
        for name in names:
            engine.derive_stream(name, DERIVED[name])
        handles = [engine.register(sql, materialize=False) for sql in QUERIES]
        base = Invoker(engine.catalog, engine._clock)
        for number, (action, batch) in enumerate(actions):
            _act(engine, action, batch)
            if number % 2:
                engine.derive()
            for handle in handles:
                check_same(engine.invoke(handle), base.invoke(handle))
        engine.close()


def _act(engine: ManualEngine, action: str, batch: list[dict[str, Any]]) -> None:
    match action:
        case "push":
            engine.push("s", batch)
        case "append":
            engine.append("s", batch)
        case "late":
            engine.append("s", [{**item, "ts": item["ts"] - timedelta(seconds=20)} for item in batch])
        case "take":
            engine.take("s")
        case "derive":
            engine.derive()
        case "seal":
            engine.seal(everything=True)
