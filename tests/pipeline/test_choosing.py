"""Queries with `materialize="auto"`: eager while they are used, lazy otherwise, with the same answers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tureen.errors import QueryFailed
from tureen.pipeline import arrival, choosing
from tureen.testing.manual_engine import ManualEngine

START = datetime(2026, 1, 1, tzinfo=UTC)
SQL = "SELECT a FROM s WHERE a < 5"


def rows(count: int) -> list[dict[str, Any]]:
    return [{"a": number, "ts": START + timedelta(seconds=number)} for number in range(count)]


@pytest.fixture
def soup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ManualEngine]:
    """A pot in which four rows are indexed."""
    monkeypatch.setattr(arrival, "TAIL_ROWS", 4)
    opened = ManualEngine(tmp_path)
    opened.create_stream("s", "a INT, ts TIMESTAMP", time="ts")
    opened.push("s", rows(64))
    yield opened
    opened.close()


def values(soup: ManualEngine, handle: str) -> list[int]:
    return [row["a"] for row in soup.invoke(handle)]


def use(soup: ManualEngine, handle: str) -> None:
    """Invoke a query often enough for the engine to make it eager."""
    for _ in range(3):
        values(soup, handle)
    registered = soup.invoker.view.query(handle)
    clause_id, stream_id = registered.stream.clause_id, registered.stream.stream_id
    assert clause_id is not None
    assert stream_id is not None
    eager = registered.stream.number is not None
    soup.invoker.watch.note(clause_id, stream_id, 10**12, 10**9, 10**10 if eager else 10**12, eager=eager)


def test_a_query_becomes_eager_when_used_and_lazy_when_unused(soup: ManualEngine) -> None:
    auto = soup.register(SQL, materialize=None)
    assert not soup.choose(5)
    about = soup.invoker.explain(auto)
    assert (about["materialize"], about["materialized"], about["tuples_by_path"]["lazy"]) == ("auto", False, 64)
    use(soup, auto)
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


def test_unused_queries_are_not_compiled(soup: ManualEngine) -> None:
    for limit in range(20):
        soup.register(f"SELECT a FROM s WHERE a < {limit}", materialize=None)
    soup.choose(5)
    soup.compile()
    assert list((soup.catalog.root / "queries").glob("*")) == []


def test_explicit_materialize_is_respected(soup: ManualEngine) -> None:
    eager = soup.register(SQL, materialize=True)
    lazy = soup.register("SELECT a FROM s WHERE a > 60", materialize=False)
    for handle in (eager, lazy):
        use(soup, handle)
    assert not soup.choose(5), "there is nothing to choose"
    assert soup.invoker.explain(eager)["materialized"] is True
    assert soup.invoker.explain(lazy)["materialized"] is False
    for _ in range(40):
        soup.push("s", rows(4))
        soup.choose(choosing.HALF_LIFE)
    assert soup.invoker.explain(eager)["materialized"] is True


def test_choices_survive_a_restart_until_there_are_statistics(soup: ManualEngine) -> None:
    auto = soup.register(SQL, materialize=None)
    use(soup, auto)
    assert soup.choose(5)
    again = ManualEngine(soup.catalog.root)
    try:
        assert not again.choose(5)
        assert again.invoker.explain(auto)["materialized"] is True
        for _ in range(40):
            again.push("s", rows(4))
            again.choose(choosing.HALF_LIFE)
        assert again.invoker.explain(auto)["materialized"] is False
    finally:
        again.close()


def test_unregistering_the_last_auto_query_makes_its_clause_lazy(soup: ManualEngine) -> None:
    auto, other = soup.register(SQL, materialize=None), soup.register(SQL, materialize=False)
    use(soup, auto)
    assert soup.choose(5)
    assert soup.invoker.explain(other)["why"].startswith("kept ready for another query")
    soup.unregister(auto)
    assert soup.invoker.explain(other)["materialized"] is False
    assert values(soup, other) == [0, 1, 2, 3, 4]


def test_automatic_materialization_never_fails_a_query(soup: ManualEngine) -> None:
    """The tuple that raises is outside of the window: a lazy query does not evaluate it, and `auto` must not fail."""
    sql = "SELECT a FROM s WHERE 10 / a > 2 BEGIN TIMESTAMP '2026-01-01 00:00:01' END NOW"
    auto, lazy = soup.register(sql, materialize=None), soup.register(sql, materialize=False)
    assert values(soup, auto) == [1, 2, 3, 4]
    use(soup, auto)
    assert soup.choose(5)
    soup.compile()
    soup.pay()
    for handle in (auto, lazy):
        assert values(soup, handle) == [1, 2, 3, 4]
        assert soup.invoker.explain(handle)["materialized"] is False
    use(soup, auto)
    assert not soup.choose(5), "it is not made eager again"
    eager = soup.register(sql, materialize=True)
    soup.pay()
    with pytest.raises(QueryFailed):
        values(soup, eager)
    assert values(soup, auto) == values(soup, lazy) == [1, 2, 3, 4]


def is_small(number: int) -> bool:
    return number < 5


def test_calls_of_functions_have_a_price_of_their_own(soup: ManualEngine) -> None:
    soup.create_function("is_small", is_small, "BOOLEAN", arguments="INT")
    plain = soup.register("SELECT a FROM s WHERE a < 7", materialize=None)
    costly = soup.register("SELECT a FROM s WHERE is_small(a)", materialize=None)
    for handle in (plain, costly):
        soup.invoke(handle)
    counts = soup.invoker.watch.take()
    clauses = {handle: soup.invoker.view.query(handle).stream.clause_id or 0 for handle in (plain, costly)}
    assert counts.clauses[clauses[costly]].functions.tuples == 64
    assert counts.clauses[clauses[plain]].functions.tuples == 0
    assert counts.evaluated.tuples == 64, "the price of other clauses does not include calls"
