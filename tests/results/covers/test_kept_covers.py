"""Lazy queries are answered from what is kept for others: the same answers, whatever is written or owed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.errors import QueryFailed
from tureen.matching.kept_selector import KeptSelector
from tureen.pipeline import arrival, upkeep
from tureen.results.invoke import Invoker
from tureen.testing.manual_engine import ManualClock, ManualEngine

BASE = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = "k INT, v INT, w INT, word STRING, ts TIMESTAMP"
EAGER = [
    "SELECT v FROM s WHERE k = 1 AND v < w",
    "SELECT v FROM s WHERE word LIKE '%a%'",
    "SELECT v FROM s WHERE k < 3 AND abs(v - w) > 2",
    "SELECT v FROM s WHERE k = 1",
]
LAZY = [
    "SELECT v, word FROM s WHERE v < w AND k = 1 AND v > 3",
    "SELECT k, count(*) AS n, sum(v) AS t FROM s WHERE v < w AND k = 1 AND word LIKE '%a%' GROUP BY k",
    "SELECT v FROM s WHERE word LIKE '%a%' AND k IS NOT NULL BEGIN NOW - 9 SECONDS END NOW",
    "SELECT v FROM s WHERE abs(v - w) > 2 AND k = 2",
    "SELECT window_start, max(v) AS top FROM s [TUMBLE 5 SECONDS] WHERE abs(v - w) > 2 AND k = 2 AND v % 2 = 0",
    "SELECT v FROM s WHERE abs(v - w) > 2",
    "SELECT v FROM s WHERE k = 1 AND v BETWEEN 3 AND 9",
]


def row(number: int) -> dict[str, Any]:
    moment = BASE + timedelta(seconds=number % 17 + number / 10)
    return {"k": number % 4, "v": number % 7, "w": number % 5, "word": ("ab", "b", None)[number % 3], "ts": moment}


def of_index(engine: ManualEngine) -> Invoker:
    """An invoker that does not use what is kept for others."""
    invoker = Invoker(engine.catalog, engine._clock)
    invoker._kept_covers._is_enabled = False
    return invoker


def check(engine: ManualEngine, others: Invoker | None = None) -> None:
    others = others or of_index(engine)
    for sql in LAZY:
        expected = others.answer_once(sql)
        answer = engine.invoker.answer_once(sql)
        assert answer.table.equals(expected.table), sql
        assert (answer.window, answer.complete, answer.position) == (
            expected.window,
            expected.complete,
            expected.position,
        )


def is_kept(engine: ManualEngine, sql: str) -> bool:
    plan = engine.invoker.explain_once(sql)["reuse"]
    return plan is not None and "kept ready" in plan["why"]


@pytest.fixture(autouse=True)
def small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small runs have cells, too."""
    for module in (arrival, upkeep):
        monkeypatch.setattr(module, "TAIL_ROWS", 4)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[ManualEngine]:
    engine = opened(tmp_path)
    yield engine
    engine.close()


def opened(root: Path) -> ManualEngine:
    engine = ManualEngine(root, ManualClock(BASE))
    engine.create_stream("s", SCHEMA, time="ts", clock="stream")
    return engine


def fill(engine: ManualEngine) -> None:
    engine.compile()
    engine.push("s", [row(number) for number in range(300)])
    engine.seal(everything=True)
    engine.pay()


STEPS = st.lists(
    st.tuples(st.sampled_from(["push", "append", "eager", "unregister", "upkeep", "take"]), st.integers(0, 99)),
    min_size=4,
    max_size=8,
)


@given(STEPS)
@example_settings(4)
def test_answers_are_equal(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]) -> None:
    note(str(steps))
    engine = opened(tmp_path_factory.mktemp("pot"))
    standing, others = [engine.register(EAGER[0]), engine.register(EAGER[2])], of_index(engine)
    for word, number in [("upkeep", 0), ("push", 80), *steps]:
        match word:
            case "push":
                engine.push("s", [row(each) for each in range(number, number + 60)])
            case "append":
                engine.append("s", [row(each) for each in range(number, number + 9)])
            case "eager":
                standing.append(engine.register(EAGER[number % len(EAGER)]))
            case "unregister" if standing:
                engine.unregister(standing.pop(number % len(standing)))
            case "take":
                engine.take_everything()
            case "upkeep":
                engine.compile()
                engine.seal(everything=True)
                engine.pay()
        check(engine, others)
    engine.close()


def test_a_query_with_the_clause_of_another_one_shares_what_is_kept(engine: ManualEngine) -> None:
    engine.register(EAGER[0])
    handle = engine.register("SELECT k, count(*) AS n FROM s WHERE v < w AND k = 1 GROUP BY k", materialize=False)
    fill(engine)
    explained = engine.invoker.explain(handle)
    assert explained["materialized"]
    assert explained["why"] == "kept ready for another query with the same condition"
    assert explained["tuples_by_path"]["published"] == 300


@pytest.mark.parametrize(
    ("sql", "expected"), list(zip(LAZY, [True, True, True, True, True, False, False], strict=True))
)
def test_narrower_queries_read_what_is_kept(
    engine: ManualEngine, sql: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for eager in EAGER:
        engine.register(eager)
    fill(engine)
    assert is_kept(engine, sql) == expected
    calls = []
    rows_among = KeptSelector.rows_among

    def count(selector: KeptSelector, *arguments: Any) -> Any:
        calls.append(selector.number)
        return rows_among(selector, *arguments)

    monkeypatch.setattr(KeptSelector, "rows_among", count)
    check(engine)
    assert bool(calls), "other queries are answered, too"


def test_what_is_kept_for_others_ends_with_them(engine: ManualEngine) -> None:
    handle = engine.register(EAGER[0])
    fill(engine)
    assert is_kept(engine, LAZY[0])
    engine.unregister(handle)
    assert not is_kept(engine, LAZY[0])
    check(engine)


def test_a_factor_that_raises_still_does(engine: ManualEngine) -> None:
    engine.register("SELECT v FROM s WHERE v < w")
    fill(engine)
    sql = "SELECT v FROM s WHERE v < w AND 10 % v = 1"
    assert is_kept(engine, sql)
    for invoker in (engine.invoker, of_index(engine)):
        with pytest.raises(QueryFailed, match="raised"):
            invoker.answer_once(sql)
