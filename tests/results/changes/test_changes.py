"""Changes: every row that is added to an answer, once, in order of arrival, from any position on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tureen
from tests.examples import example_settings
from tureen.errors import SqlError, TureenError, Unsupported
from tureen.evaluation.duck import run
from tureen.pipeline import arrival, upkeep
from tureen.position import BEGINNING, Mark, Position
from tureen.pot.pot_progress import PotProgress
from tureen.results.rows import finish
from tureen.soup.change_batches import QueryChanges
from tureen.soup.waiting import follow
from tureen.testing.manual_engine import ManualEngine

BASE = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def engine(engine: ManualEngine) -> ManualEngine:
    """A stream of numbers."""
    engine.create_stream("s", "n INT, ts TIMESTAMP", time="ts")
    return engine


def _rows(*numbers: int) -> list[dict[str, Any]]:
    """Tuples whose times run against their order of arrival."""
    return [{"n": number, "ts": BASE - timedelta(seconds=number)} for number in numbers]


def _news(engine: ManualEngine, handle: str, since: str) -> tuple[list[int], str]:
    news = engine.invoker.new_rows(handle, Position.parse(since))
    return news.rows.column(0).to_pylist(), news.position()


def test_changes_since_an_answer_are_in_order_of_arrival(engine: ManualEngine) -> None:
    even = engine.register("SELECT n FROM s WHERE n % 2 = 0")
    engine.push("s", _rows(1, 2))
    since = engine.invoke(even).position
    assert _news(engine, even, since)[0] == []
    engine.push("s", _rows(3, 4))
    engine.push("s", _rows(5, 6))
    numbers, after = _news(engine, even, since)
    assert numbers == [4, 6]
    assert since < after
    assert _news(engine, even, after)[0] == []


@example_settings(25)
@given(
    st.lists(
        st.tuples(st.sampled_from(["push", "push", "seal", "seal all", "pay", "read"]), st.integers(1, 5)), max_size=25
    ),
    st.booleans(),
)
def test_merging_neither_skips_nor_repeats_changes(steps: list[tuple[str, int]], eager: bool) -> None:
    with TemporaryDirectory() as root, pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrival, "TAIL_ROWS", 4)
        patch.setattr(upkeep, "TAIL_ROWS", 4)
        patch.setattr(upkeep, "FAN", 2)
        engine = ManualEngine(Path(root))
        engine.create_stream("s", "n INT, ts TIMESTAMP", time="ts")
        handle = engine.register("SELECT n FROM s WHERE n % 3 <> 0", materialize=eager)
        position = engine.invoke(handle).position
        pushed: list[int] = []
        seen: list[int] = []
        for step, size in steps:
            if step == "push":
                numbers = list(range(len(pushed), len(pushed) + size))
                # Later tuples have earlier times, so that merging reverses their order.
                engine.push("s", [{"n": number, "ts": BASE - timedelta(seconds=number)} for number in numbers])
                pushed += numbers
            elif step == "read":
                new_numbers, position = _news(engine, handle, position)
                seen += new_numbers
            elif step == "pay":
                engine.compile()
                engine.pay()
            else:
                engine.seal(everything=step == "seal all")
        new_numbers, position = _news(engine, handle, position)
        # Within a push, ids follow time: the last tuple has the earliest time.
        assert sorted([*seen, *new_numbers]) == [number for number in pushed if number % 3]
        assert len({*seen, *new_numbers}) == len(seen) + len(new_numbers)
        engine.close()


def test_changes_since_a_change(engine: ManualEngine) -> None:
    every = engine.register("SELECT n * 10 AS ten FROM s")
    since = engine.invoke(every).position
    engine.push("s", _rows(3, 2, 1))
    news = engine.invoker.new_rows(every, Position.parse(since))
    assert news.rows.column(0).to_pylist() == [30, 20, 10]
    assert _news(engine, every, news.position(0))[0] == [20, 10]
    engine.seal(everything=True)
    assert _news(engine, every, news.position(1))[0] == [10]


def test_nothing_is_evaluated_for_followers_without_new_rows(
    engine: ManualEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = engine.register("SELECT n + 1 AS more FROM s WHERE n > 5")
    since = engine.invoke(handle).position
    evaluated: list[str] = []

    def count(sql: str, *rest: Any) -> Any:
        evaluated.append(sql)
        return run(sql, *rest)

    monkeypatch.setattr(finish, "run", count)
    engine.append("s", _rows(1))
    nothing = engine.invoker.new_rows(handle, Position.parse(since))
    assert nothing.rows.to_pydict() == {"more": []}
    assert not evaluated
    engine.append("s", _rows(6))
    assert engine.invoker.new_rows(handle, Position.parse(since)).rows.to_pydict() == {"more": [7]}
    assert len(evaluated) == 1


def test_changes_respect_constant_window_bounds_only(engine: ManualEngine) -> None:
    fixed = engine.register("SELECT n FROM s BEGIN TIMESTAMP '2025-12-31 23:59:58' END NOW")
    sliding = engine.register("SELECT n FROM s BEGIN NOW - 1 SECOND END NOW")
    since = engine.invoke(fixed).position
    engine.push("s", _rows(1, 2, 3))
    assert _news(engine, fixed, since)[0] == [1, 2]
    assert _news(engine, sliding, since)[0] == [1, 2, 3]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM s",
        "SELECT DISTINCT n FROM s",
        "SELECT n FROM s ORDER BY n",
        "SELECT n FROM s LIMIT 1",
        "SELECT n, lag(n) OVER (ORDER BY n) AS p FROM s",
        "SELECT n FROM s QUALIFY row_number() OVER (ORDER BY n) = 1",
        "SELECT n, NOW AS asked FROM s",
        "SELECT n FROM s WHERE NOW > TIMESTAMP '2026-01-01 00:00:00'",
    ],
)
def test_queries_without_changes(engine: ManualEngine, sql: str) -> None:
    handle = engine.register(sql)
    with pytest.raises(Unsupported, match="has no changes"):
        engine.invoker.new_rows(handle, None)


def test_changes_from_the_beginning(engine: ManualEngine) -> None:
    handle = engine.register("SELECT n FROM s WHERE n > 1")
    engine.push("s", _rows(1, 2, 3))
    assert sorted(_news(engine, handle, BEGINNING)[0]) == [2, 3]
    assert sorted(_news(engine, handle, "0")[0]) == [2, 3]


def test_positions_of_other_kinds_are_rejected(engine: ManualEngine) -> None:
    every = engine.register("SELECT n FROM s")
    for other in (Position(3), Position(3, {99: Mark(5)})):
        with pytest.raises(TureenError, match="not one of this stream"):
            engine.invoker.new_rows(every, other)


def test_changes_on_spark(soup: tureen.Soup) -> None:
    soup.create_stream("followed", "n INT, ts TIMESTAMP", time="ts")
    big = soup.register("SELECT n FROM followed WHERE n > 10")
    since = big.invoke().position
    with pytest.raises(SqlError):
        soup.register("SELECT n FROM followed LIMIT 3").changes()
    soup.push("followed", [{"n": 5, "ts": BASE}, {"n": 50, "ts": BASE}])
    changes = big.changes(since=since)
    first = next(changes)
    assert (first.query, first.row) == (big.id, {"n": 50})
    at = soup.push("followed", [{"n": 60, "ts": BASE}, {"n": 70, "ts": BASE}])
    assert next(changes).row == {"n": 60}
    soup.wait(at)
    assert [change.row["n"] for change in big.changes(since=first.position, timeout=0)] == [60, 70]
    assert list(big.changes(timeout=0)) == []


def test_other_commits_do_not_extend_the_timeout_of_a_follower(engine: ManualEngine) -> None:
    """Following ends some time after the last row, although other commits continue."""
    query = engine.register("SELECT n FROM s")
    positions: list[str] = []

    def read(position: str) -> QueryChanges:
        engine.unregister(engine.register(f"SELECT n FROM s WHERE n > {len(positions)}"))
        positions.append(position)
        new = engine.invoker.new_rows(query, Position.parse(position))
        return QueryChanges(query, new)

    first = QueryChanges(query, engine.invoker.new_rows(query, None))
    assert list(follow(PotProgress(engine.catalog), first, read, 0.3, lambda: None)) == []
    assert len(positions) > 1
