"""Steps that are composed of those of a derived stream: the same answers as from the tuples, in every detail."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from tests.examples import example_settings
from tests.results.covers.test_reuse import check_equal, source
from tureen.closed.rules import NO_RULES, Rules
from tureen.pipeline import derivation
from tureen.pot.streams import drop_stream, find_stream
from tureen.results.covers import composed_steps
from tureen.testing.manual_engine import ManualClock, ManualEngine

BASE = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = "g INT, h STRING, x INT, d DECIMAL(12, 2), f DOUBLE, ts TIMESTAMP"
AGGREGATES = "count(*) AS n, count(x) AS cx, sum(x) AS sx, min(f) AS low, max(f) AS high, sum(d) AS sd, count(d) AS cd"

DERIVED = {
    "all": f"SELECT window_start, g, h, {AGGREGATES}, min(x) AS lx FROM s [TUMBLE 2 SECONDS] GROUP BY g, h",
    "some": f"SELECT g, window_start, {AGGREGATES} FROM s [TUMBLE 2 SECONDS] WHERE x > 1 GROUP BY g",
    "final": "SELECT window_start, g, count(*) AS n, sum(x) AS sx FROM s [TUMBLE 4 SECONDS] GROUP BY g EMIT FINAL",
}
QUERIES = [
    "SELECT window_start, window_end, g, count(*) AS n, sum(x) AS s FROM s [TUMBLE 6 SECONDS] GROUP BY g",
    "SELECT g, h, avg(x) AS a, avg(d) AS b, sum(d) AS c, min(f) AS low FROM s [RANGE 8 SECONDS SLIDE 4 SECONDS] "
    "GROUP BY g, h",
    "SELECT window_start, min(x) AS low, max(f) AS high FROM s [TUMBLE 4 SECONDS]",
    "SELECT window_start, count(x) AS n, sum(x) AS s FROM s [TUMBLE 4 SECONDS] WHERE x > 1 GROUP BY g",
    "SELECT window_start, h, sum(x) AS s FROM s [TUMBLE 8 SECONDS] WHERE g = 1 AND h LIKE 'a%' GROUP BY h "
    "HAVING sum(x) > 2 ORDER BY s DESC",
    "SELECT g, count(*) AS n FROM s [TUMBLE 4 SECONDS] WHERE x > 1 AND g IN (0, 2) GROUP BY g "
    "BEGIN NOW - 20 SECONDS END NOW",
    "SELECT g, sum(f) AS s FROM s [TUMBLE 4 SECONDS] GROUP BY g",
    "SELECT g, count(*) AS n FROM s [TUMBLE 4 SECONDS START AT '2026-01-01 00:00:01'] GROUP BY g",
]


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compose steps also if they have as many rows as tuples, and search for closed ones at every call."""
    monkeypatch.setattr(composed_steps, "FEWER", 0)
    monkeypatch.setattr(derivation, "STEPS_EVERY", 0.0)


def row(second: float, g: int | None, x: int | None = 1, h: str | None = "a", f: float | None = 0.5) -> dict[str, Any]:
    d = None if x is None else Decimal(x) / 4
    return {"g": g, "h": h, "x": x, "d": d, "f": f, "ts": BASE + timedelta(seconds=second)}


ROW = st.builds(
    row,
    st.integers(0, 40).map(lambda half: half / 2),
    st.sampled_from([0, 1, 2, None]),
    st.sampled_from([0, 1, 2, 7, None]),
    st.sampled_from(["a", "ab", "b", None]),
    st.sampled_from([0.0, -0.0, 1.5, -3.25, None]),
)
LATE_STEP: st.SearchStrategy[tuple[str, list[Any]]] = st.one_of(
    st.tuples(st.just("push"), st.lists(ROW, min_size=1, max_size=6)),
    st.tuples(st.sampled_from(["derive", "derive", "take", "seal", "restart", "later"]), st.just([])),
)


class Pot:
    """A pot with derived steps, and a clock."""

    def __init__(self, root: Path, clock: str, rules: Rules = NO_RULES, retain: str | None = None) -> None:
        self._root, self.clock = root, ManualClock(BASE + timedelta(seconds=10))
        self.engine = ManualEngine(root, self.clock)
        self.engine.create_stream("s", SCHEMA, time="ts", clock=clock, rules=rules, retain=retain)
        for name, sql in DERIVED.items():
            self.engine.derive_stream(name, sql)

    def run(self, word: str, rows: list[Any]) -> None:
        """Do a step."""
        match word:
            case "push":
                self.engine.append("s", rows)
            case "derive":
                self.engine.derive()
            case "take":
                self.engine.take_everything()
            case "seal":
                self.engine.seal(everything=True)
                self.engine.expire()
            case "later":
                self.clock.moment += timedelta(seconds=5)
            case "restart":
                self.engine.close()
                self.engine = ManualEngine(self._root, self.clock)


@given(
    st.lists(LATE_STEP, min_size=4, max_size=12),
    st.sampled_from(["stream", "wall"]),
    st.sampled_from([Rules(), Rules((), 2_000_000)]),
    st.sampled_from([None, "8 seconds"]),
)
@example_settings(3, explored=5)
def test_composed_answers_are_equal(
    steps: list[tuple[str, list[Any]]], clock: str, rules: Rules, retain: str | None
) -> None:
    note(f"{steps}, {clock}, {rules}")
    with TemporaryDirectory() as directory:
        pot = Pot(Path(directory), clock, rules, retain)
        for word, rows in [*steps, ("derive", [])]:
            pot.run(word, rows)
            for sql in QUERIES:
                check_equal(pot.engine, sql)
        pot.engine.close()


@pytest.fixture
def pot(tmp_path: Path) -> Iterator[Pot]:
    pot = Pot(tmp_path, "stream")
    pot.engine.append("s", [row(second, second % 3, second % 5) for second in range(30)])
    pot.engine.derive()
    yield pot
    pot.engine.close()


@pytest.mark.parametrize(
    ("sql", "stream"), list(zip(QUERIES, ["all", "all", "all", "some", "all", "some", None, None], strict=True))
)
def test_the_steps_of_a_stream_that_covers_are_read(pot: Pot, sql: str, stream: str | None) -> None:
    assert source(pot.engine, sql) == stream
    check_equal(pot.engine, sql)


def test_the_coarsest_steps_are_read(pot: Pot) -> None:
    sql = "SELECT g, sum(x) AS s FROM s [TUMBLE 8 SECONDS] GROUP BY g"
    assert source(pot.engine, sql) == "final"
    check_equal(pot.engine, sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT g, count(*) AS n FROM s [TUMBLE 3 SECONDS] GROUP BY g",
        "SELECT g, count(*) AS n FROM s [RANGE 6 SECONDS SLIDE 3 SECONDS] GROUP BY g",
        "SELECT x, count(*) AS n FROM s [TUMBLE 4 SECONDS] GROUP BY x",
        "SELECT g, count(*) AS n FROM s [TUMBLE 4 SECONDS] WHERE x > 0 GROUP BY g",
        "SELECT g, count(DISTINCT x) AS n FROM s [TUMBLE 4 SECONDS] GROUP BY g",
        "SELECT g, stddev(f) AS n FROM s [TUMBLE 4 SECONDS] GROUP BY g",
        "SELECT g, avg(f) AS n FROM s [TUMBLE 4 SECONDS] GROUP BY g",
        "SELECT g, max(h) AS n FROM s [TUMBLE 4 SECONDS] GROUP BY g",
        "SELECT g, count(*) AS n FROM s [TUMBLE 4 SECONDS] GROUP BY g EMIT PARTIAL",
        "SELECT g, count(*) AS n FROM s GROUP BY g",
    ],
)
def test_queries_that_need_tuples(pot: Pot, sql: str) -> None:
    assert source(pot.engine, sql) is None


def test_late_tuples_are_read_from_the_base_stream(pot: Pot) -> None:
    sql = QUERIES[0]
    assert pot.engine.invoker.explain_once(sql)["reuse"]["late_steps"] == 0
    pot.engine.append("s", [row(5, 1, 100), row(29.5, 1)])
    plan = pot.engine.invoker.explain_once(sql)["reuse"]
    assert (plan["stream"], plan["late_steps"]) == ("all", 1)
    check_equal(pot.engine, sql)
    pot.engine.append("s", [row(6, 1, 100)])
    pot.run("restart", [])
    pot.engine.derive()
    assert pot.engine.invoker.explain_once(sql)["reuse"]["late_steps"] == 2
    check_equal(pot.engine, sql)


def test_a_stream_that_is_behind_is_completed(pot: Pot) -> None:
    sql = QUERIES[0]
    before = pot.engine.invoker.explain_once(sql)["reuse"]
    pot.engine.append("s", [row(second, 1) for second in range(30, 50)])
    plan = pot.engine.invoker.explain_once(sql)["reuse"]
    assert plan["base_tuples"] > before["base_tuples"]
    check_equal(pot.engine, sql)


def test_rows_that_were_pushed_twice_are_noticed(pot: Pot, monkeypatch: pytest.MonkeyPatch) -> None:
    """A push that fails after it was stored is repeated."""
    pot.engine.append("s", [row(second, 1) for second in range(30, 40)])
    push = pot.engine.inbox.push
    failures = [OSError("no answer from the disk")]

    def store_and_fail(*arguments: Any) -> Any:
        stored = push(*arguments)
        if failures:
            raise failures.pop()
        return stored

    monkeypatch.setattr(pot.engine.inbox, "push", store_and_fail)
    with pytest.raises(OSError, match="no answer"):
        pot.engine.derive()
    pot.engine.derive()
    for sql in QUERIES:
        check_equal(pot.engine, sql)


def test_a_dropped_stream_of_steps_is_not_needed(pot: Pot) -> None:
    handle = pot.engine.register(QUERIES[0], materialize=False)
    assert source(pot.engine, QUERIES[0]) == "all"
    before = pot.engine.invoke(handle).table
    with pot.engine.catalog.write() as tx:
        drop_stream(tx, find_stream(tx, "all"))
    assert pot.engine.invoke(handle).table.equals(before)


def test_a_query_that_is_asked_often_is_aggregated(pot: Pot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Partial aggregates of its tuples are in memory then, and are combined faster than the rows of steps."""
    monkeypatch.setattr(composed_steps, "FEWER", 1)
    pot.engine.append("s", [row(29 + number / 1000, number % 3) for number in range(999)])
    pot.engine.append("s", [row(60, 1)])
    pot.engine.derive()
    handle = pot.engine.register(QUERIES[0], materialize=False)

    def is_composed() -> bool:
        return pot.engine.invoker.explain(handle)["reuse"] is not None

    answers = []
    while is_composed():
        answers.append(pot.engine.invoke(handle).table)
    assert 1 < len(answers) < 100
    answers.append(pot.engine.invoke(handle).table)
    assert not is_composed()
    assert all(answer.equals(answers[0]) for answer in answers)
    pot.engine.take_everything()
    assert is_composed(), "the rows are in a run without partial aggregates now"


def test_few_tuples_are_not_composed(pot: Pot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composed_steps, "FEWER", 4)
    assert source(pot.engine, QUERIES[0]) is None
    check_equal(pot.engine, QUERIES[0])
