"""Queries that leave it to the engine: kept ready while they are asked for, evaluated otherwise, right throughout."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tureen.errors import QueryFailed
from tureen.pipeline import arrival, choosing
from tureen.testing.hand_turned import HandTurned

START = datetime(2026, 1, 1, tzinfo=UTC)
SQL = "SELECT a FROM s WHERE a < 5"


def rows(count: int) -> list[dict[str, Any]]:
    return [{"a": number, "ts": START + timedelta(seconds=number)} for number in range(count)]


@pytest.fixture
def soup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HandTurned]:
    """A pot where four rows are enough for an index."""
    monkeypatch.setattr(arrival, "TAIL_ROWS", 4)
    opened = HandTurned(tmp_path)
    opened.create_stream("s", "a INT, ts TIMESTAMP", time="ts")
    opened.push("s", rows(64))
    yield opened
    opened.close()


def values(soup: HandTurned, handle: str) -> list[int]:
    return [row["a"] for row in soup.invoke(handle)]


def ask(soup: HandTurned, handle: str) -> None:
    """Let a query be asked for as often as it takes to be worth keeping."""
    for _ in range(3):
        values(soup, handle)
    registered = soup.invoker.view.query(handle)
    clause_id, stream_id = registered.stream.clause_id, registered.stream.stream_id
    assert clause_id is not None
    assert stream_id is not None
    kept = registered.stream.number is not None
    soup.invoker.watch.note(clause_id, stream_id, 10**12, 10**9, 10**10 if kept else 10**12, kept=kept)


def test_a_query_becomes_eager_when_asked_for_and_lazy_when_forgotten(soup: HandTurned) -> None:
    auto = soup.register(SQL, materialize=None)
    assert not soup.choose(5)
    about = soup.invoker.explain(auto)
    assert (about["materialize"], about["materialized"], about["tuples_by_path"]["lazy"]) == ("auto", False, 64)
    ask(soup, auto)
    assert soup.choose(5)
    about = soup.invoker.explain(auto)
    assert (about["materialized"], about["tuples_by_path"]["owed"]) == (True, 64), "no gap: owed cells are evaluated"
    assert about["why"].startswith("kept ready: keeping it takes")
    assert values(soup, auto) == [0, 1, 2, 3, 4]
    soup.compile()
    soup.pay()
    assert soup.invoker.explain(auto)["tuples_by_path"]["published"] == 64
    soup.push("s", rows(64))
    assert soup.invoker.explain(auto)["tuples_by_path"]["published"] == 128
    assert values(soup, auto) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    for _ in range(40):
        soup.push("s", rows(4))
        soup.choose(choosing.HALF_LIFE)
    about = soup.invoker.explain(auto)
    assert (about["materialized"], about["tuples_by_path"]["published"]) == (False, 0)
    assert about["why"].startswith("evaluated when asked for")
    assert len(values(soup, auto)) == 10 + 40 * 4


def test_a_million_that_are_not_asked_for_are_not_compiled(soup: HandTurned) -> None:
    for limit in range(20):
        soup.register(f"SELECT a FROM s WHERE a < {limit}", materialize=None)
    soup.choose(5)
    soup.compile()
    assert list((soup.catalog.root / "queries").glob("*")) == []


def test_who_says_what_is_wanted_gets_it(soup: HandTurned) -> None:
    eager = soup.register(SQL, materialize=True)
    lazy = soup.register("SELECT a FROM s WHERE a > 60", materialize=False)
    for handle in (eager, lazy):
        ask(soup, handle)
    assert not soup.choose(5), "there is nothing to choose"
    assert soup.invoker.explain(eager)["materialized"] is True
    assert soup.invoker.explain(lazy)["materialized"] is False
    for _ in range(40):
        soup.push("s", rows(4))
        soup.choose(choosing.HALF_LIFE)
    assert soup.invoker.explain(eager)["materialized"] is True


def test_what_was_kept_before_a_restart_is_kept_until_there_is_something_to_judge_by(soup: HandTurned) -> None:
    auto = soup.register(SQL, materialize=None)
    ask(soup, auto)
    assert soup.choose(5)
    again = HandTurned(soup.catalog.root)
    try:
        assert not again.choose(5)
        assert again.invoker.explain(auto)["materialized"] is True
        for _ in range(40):
            again.push("s", rows(4))
            again.choose(choosing.HALF_LIFE)
        assert again.invoker.explain(auto)["materialized"] is False
    finally:
        again.close()


def test_the_last_query_of_a_chosen_clause_takes_the_choice_along(soup: HandTurned) -> None:
    auto, other = soup.register(SQL, materialize=None), soup.register(SQL, materialize=False)
    ask(soup, auto)
    assert soup.choose(5)
    assert soup.invoker.explain(other)["why"].startswith("kept ready for the sake of another")
    soup.unregister(auto)
    assert soup.invoker.explain(other)["materialized"] is False
    assert values(soup, other) == [0, 1, 2, 3, 4]


def test_what_the_engine_chose_never_makes_a_query_fail(soup: HandTurned) -> None:
    """The tuple that raises lies outside of the window: a lazy query does not see it, and a chosen one must not."""
    sql = "SELECT a FROM s WHERE 10 / a > 2 BEGIN TIMESTAMP '2026-01-01 00:00:01' END NOW"
    auto, lazy = soup.register(sql, materialize=None), soup.register(sql, materialize=False)
    assert values(soup, auto) == [1, 2, 3, 4]
    ask(soup, auto)
    assert soup.choose(5)
    soup.compile()
    soup.pay()
    for handle in (auto, lazy):
        assert values(soup, handle) == [1, 2, 3, 4]
        assert soup.invoker.explain(handle)["materialized"] is False
    ask(soup, auto)
    assert not soup.choose(5), "it is not chosen again"
    eager = soup.register(sql, materialize=True)
    soup.pay()
    with pytest.raises(QueryFailed):
        values(soup, eager)
    assert values(soup, auto) == values(soup, lazy) == [1, 2, 3, 4]
