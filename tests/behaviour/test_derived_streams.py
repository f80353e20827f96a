"""Derived streams, in an open pot and behind a server: the same tuples and errors, at every level."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

import tureen
from tests.behaviour.conftest import AnySoup, rows
from tureen.errors import DependentStreams, DuplicateName, InvalidSchema, TureenError, UnknownColumn, Unsupported
from tureen.fast_paths import FastPath, is_enabled
from tureen.position import BEGINNING

Names = Callable[[str], str]


def test_chain_of_derived_streams(soup: AnySoup, trades: str, fresh: Names) -> None:
    big, pairs, names = fresh("big"), fresh("pairs"), fresh("names")
    soup.push(trades, rows(("A", 1.0, 1), ("B", 20.0, 2)))
    soup.create_table(names, "sym STRING, name STRING", [{"sym": "A", "name": "Alpha"}, {"sym": "B", "name": "Beta"}])
    sql = f"SELECT sym, price * qty AS value, ts FROM {trades} WHERE price > 10"
    soup.create_stream(big, query=sql, retain="1 day")
    soup.sql(f"CREATE STREAM {pairs} AS SELECT n.name, b.value, b.ts FROM {big} b JOIN {names} n ON b.sym = n.sym")
    query = soup.register(f"SELECT name, value FROM {pairs} ORDER BY value")
    at = soup.push(trades, rows(("A", 30.0, 3), ("B", 5.0, 1), start=10))
    expected = [{"name": "Beta", "value": 40.0}, {"name": "Alpha", "value": 90.0}]
    assert list(query.invoke(wait_for=at)) == expected
    followed = soup.register(f"SELECT value FROM {pairs}").changes(since=BEGINNING, timeout=30)
    assert [next(followed).row["value"] for _ in range(2)] == [40.0, 90.0]
    soup.push(trades, rows(("A", 50.0, 1), start=20))
    assert next(followed).row == {"value": 50.0}
    described = {stream["name"]: stream for stream in soup.streams()}
    assert described[big]["query"] == sql
    assert (described[big]["time"], described[big]["retain_seconds"], described[trades]["query"]) == ("ts", 86400, None)
    assert soup.status()["streams"][big]["unread_tuples"] == 0
    assert soup.status()["streams"][pairs]["rows_per_second"] > 0
    for name in (pairs, big):
        soup.drop_stream(name)


def test_steps_that_are_over(soup: AnySoup, fresh: Names) -> None:
    source, steps = fresh("source"), fresh("steps")
    soup.create_stream(source, "sym STRING, price DOUBLE, qty INT, ts TIMESTAMP", time="ts", clock="stream")
    soup.create_stream(
        steps, query=f"SELECT sym, sum(qty) AS qty, window_start FROM {source} [TUMBLE 5 SECONDS] GROUP BY sym"
    )
    query = soup.register(f"SELECT sym, qty FROM {steps} ORDER BY window_start, sym")
    later = soup.register(f"SELECT count(*) AS n FROM {steps}")
    soup.push(source, rows(*(("AB"[number % 2], 1.0, number) for number in range(8))))
    followed = soup.register(f"SELECT sym, qty FROM {steps}").changes(since=BEGINNING, timeout=30)
    assert sorted(next(followed).row["qty"] for _ in range(2)) == [4, 6]
    assert list(query.invoke()) == [{"sym": "A", "qty": 6}, {"sym": "B", "qty": 4}]
    # The tuples of the second step are read when the third begins.
    for number in range(2, 12):
        at = soup.push(source, rows(("A", 1.0, 1), start=5 * number))
        assert list(later.invoke(wait_for=at, timeout=30)) == [{"n": number + 2}]


def test_queries_of_derived_streams_are_not_listed(soup: AnySoup, trades: str, fresh: Names) -> None:
    before = len(soup.queries(owner="*"))
    soup.create_stream(fresh("derived"), query=f"SELECT sym, ts FROM {trades}")
    assert len(soup.queries(owner="*")) == before


def test_queries_are_answered_from_a_stream_that_covers_them(soup: AnySoup, trades: str, fresh: Names) -> None:
    big = fresh("big")
    soup.create_stream(big, query=f"SELECT * FROM {trades} WHERE price > 10")
    query = soup.register(f"SELECT sym, qty FROM {trades} WHERE price > 20", materialize=False)
    at = soup.push(trades, rows(("A", 1.0, 1), ("B", 20.5, 2), ("C", 5.0, 3), ("D", 15.0, 4), ("E", 7.0, 5)))
    expected = [{"sym": "B", "qty": 2}]
    assert list(query.invoke(wait_for=at, timeout=30)) == expected
    plan = query.explain()["reuse"]
    assert (None if plan is None else plan["stream"]) == (big if is_enabled(FastPath.REUSE) else None)
    soup.drop_stream(big)
    assert list(query.invoke()) == expected
    assert query.explain()["reuse"] is None


def test_errors(soup: AnySoup, trades: str, fresh: Names) -> None:
    derived = fresh("derived")
    soup.create_stream(derived, query=f"SELECT sym, ts FROM {trades}")
    with pytest.raises(DuplicateName):
        soup.create_stream(derived, query=f"SELECT sym, ts FROM {trades}")
    soup.create_stream(derived, query="SELECT x FROM unknown", if_not_exists=True)
    with pytest.raises(DependentStreams, match=f"stream '{trades}' cannot be dropped: '{derived}' is derived from it"):
        soup.drop_stream(trades)
    with pytest.raises(TureenError, match="is derived from a query"):
        soup.push(derived, [{"sym": "A", "ts": "2026-01-01"}])
    with pytest.raises(UnknownColumn) as unknown:
        soup.sql(f"CREATE STREAM {fresh('x')}\nAS SELECT wrong FROM {trades}")
    assert unknown.value.location == tureen.errors.Location(2, 11)
    with pytest.raises(Unsupported, match="groups without steps"):
        soup.create_stream(fresh("x"), query=f"SELECT count(*) AS n FROM {trades}")
    for schema, query in ((None, None), ("a INT", f"SELECT sym FROM {trades}")):
        with pytest.raises(InvalidSchema, match="needs columns, or a query"):
            soup.create_stream(fresh("x"), schema, query=query)
    with pytest.raises(InvalidSchema, match="has no source"):
        soup.create_stream(fresh("x"), query=f"SELECT sym FROM {trades}", source={"format": "rate"})


def test_waiting_for_a_push_waits_for_what_is_derived_from_it(soup: AnySoup, trades: str, fresh: Names) -> None:
    names = [trades, *(fresh("level") for _ in range(3))]
    for before, name in pairwise(names):
        soup.create_stream(name, query=f"SELECT sym, qty, ts FROM {before} WHERE qty <> 3")
    query = soup.register(f"SELECT qty FROM {names[-1]} ORDER BY qty")
    for number in range(10):
        # A row that is not derived wakes nobody.
        at = soup.push(trades, rows(("A", 1.0, number)))
        seen = [row["qty"] for row in query.invoke(wait_for=at, timeout=30)]
        assert seen == [qty for qty in range(number + 1) if qty != 3]
