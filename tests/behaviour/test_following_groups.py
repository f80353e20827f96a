"""Changes of groups, embedded and through a client."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest

from tests.behaviour.conftest import AnySoup, rows
from tureen.errors import TureenError, Unsupported

Names = Callable[[str], str]


def test_groups_appear_change_and_go(soup: AnySoup, trades: str) -> None:
    query = soup.register(f"SELECT sym, avg(price) a FROM {trades} GROUP BY sym HAVING avg(price) < 30")
    since = query.invoke().position
    changes = query.changes(since=since)
    soup.push(trades, rows(("A", 10.0, 1), ("B", 50.0, 1)))
    first = next(changes)
    assert (first.query, first.kind, first.row, first.before) == (query.id, "insert", {"sym": "A", "a": 10.0}, None)
    soup.push(trades, rows(("A", 20.0, 1), start=1))
    second = next(changes)
    assert (second.kind, second.row, second.before) == ("update", {"sym": "A", "a": 15.0}, {"sym": "A", "a": 10.0})
    soup.push(trades, rows(("A", 90.0, 1), start=2))
    third = next(changes)
    assert (third.kind, third.row, third.before) == ("delete", {"sym": "A", "a": 15.0}, {"sym": "A", "a": 15.0})
    resumed = [(change.kind, change.row) for change in query.changes(since=first.position, timeout=0)]
    assert resumed == [("delete", {"sym": "A", "a": 10.0})]
    assert list(query.changes(since=third.position, timeout=0)) == []
    assert first.position < second.position < third.position


def test_one_row_without_group_by(soup: AnySoup, trades: str) -> None:
    query = soup.register(f"SELECT count(*) n FROM {trades}")
    (first,) = query.changes(since="0", timeout=0)
    assert (first.kind, first.row) == ("insert", {"n": 0})
    soup.push(trades, rows(("A", 1.0, 1), ("A", 1.0, 2)))
    (second,) = query.changes(since=first.position, timeout=0)
    assert (second.kind, second.row, second.before) == ("update", {"n": 2}, {"n": 0})


def test_groups_leave_as_time_passes(soup: AnySoup, fresh: Names) -> None:
    """No tuple arrives when the window's edge passes the last one."""
    name = fresh("readings")
    soup.create_stream(name, "k INT, ts TIMESTAMP", time="ts")
    query = soup.register(f"SELECT k, count(*) n FROM {name} GROUP BY k BEGIN NOW - 1 SECOND END NOW")
    changes = query.changes(since=query.invoke().position, timeout=30)
    soup.push(name, [{"k": 7, "ts": datetime.now(UTC) - timedelta(seconds=0.2)}])
    seen = list(islice(changes, 2))
    assert [change.kind for change in seen] == ["insert", "delete"]
    assert [change.row for change in seen] == [{"k": 7, "n": 1}] * 2


def test_a_read_of_many_groups_can_be_resumed_at_each(soup: AnySoup, trades: str) -> None:
    query = soup.register(f"SELECT sym, sum(qty) q FROM {trades} GROUP BY sym")
    since = query.invoke().position
    soup.push(trades, rows(*((sym, 1.0, 1) for sym in "ABCDE")))
    seen = list(query.changes(since=since, timeout=0))
    assert {change.row["sym"] for change in seen} == set("ABCDE")
    soup.push(trades, rows(*((sym, 1.0, 1) for sym in "AE"), start=20))
    for index, change in enumerate(seen, 1):
        answer = {each.row["sym"]: each.row["q"] for each in seen[:index]}
        for later in query.changes(since=change.position, timeout=0):
            was = None if later.before is None else later.before["q"]
            assert answer.get(later.row["sym"]) == was
            answer[later.row["sym"]] = later.row["q"]
        assert answer == {"A": 2, "B": 1, "C": 1, "D": 1, "E": 2}


def test_only_turns(soup: AnySoup, trades: str) -> None:
    query = soup.register(f"SELECT sym, max(price) p FROM {trades} GROUP BY sym HAVING max(price) < 30")
    changes = query.changes(since=query.invoke().position, on="turn")
    soup.push(trades, rows(("A", 10.0, 1)))
    assert next(changes).kind == "insert"
    soup.push(trades, rows(("A", 20.0, 1), start=1))
    soup.push(trades, rows(("A", 40.0, 1), start=2))
    last = next(changes)
    assert (last.kind, last.row["sym"]) == ("delete", "A")


def test_turns_that_last(soup: AnySoup, trades: str) -> None:
    query = soup.register(f"SELECT sym, max(price) p FROM {trades} GROUP BY sym HAVING max(price) < 30")
    changes = query.changes(since=query.invoke().position, on="turn", hold="0.2 seconds")
    soup.push(trades, rows(("A", 10.0, 1), ("B", 50.0, 1)))
    change = next(changes)
    assert (change.kind, change.row) == ("insert", {"sym": "A", "p": 10.0})


def test_template_with_limits(soup: AnySoup, trades: str) -> None:
    sql = f"SELECT sym, avg(price) a FROM {trades} GROUP BY sym HAVING avg(price) < :p"
    alerts = soup.register_many(sql, [{"p": 20.0, "who": "x"}, {"p": 40.0, "who": "y"}], label="who")
    changes = alerts.changes(since=alerts[0].invoke().position)
    soup.push(trades, rows(("A", 30.0, 1)))
    first = next(changes)
    assert (first.query, first.kind, first.row, first.label) == (
        alerts[1].id,
        "insert",
        {"sym": "A", "a": 30.0},
        "y",
    )
    soup.push(trades, rows(("A", 2.0, 1), start=1))
    seen = {change.query: (change.kind, change.row["a"]) for change in islice(changes, 2)}
    assert seen == {alerts[0].id: ("insert", 16.0), alerts[1].id: ("update", 16.0)}
    (own,) = alerts[0].changes(since=first.position, timeout=0)
    assert (own.kind, own.row) == ("insert", {"sym": "A", "a": 16.0})


def test_errors_of_following_groups(soup: AnySoup, trades: str) -> None:
    plain = soup.register(f"SELECT sym FROM {trades}")
    grouped = soup.register(f"SELECT sym, count(*) n FROM {trades} GROUP BY sym ORDER BY n")
    for on, hold in (("turn", None), (None, "5 seconds"), ("never", None)):
        with pytest.raises(TureenError):
            plain.changes(on=on, hold=hold)
    with pytest.raises(TureenError):
        grouped.changes(on="turn", hold="soon")
    with pytest.raises(TureenError, match="NOW"):
        grouped.changes(since=plain.invoke().position)
    for ending in ("LIMIT 3", "QUALIFY rank() OVER (ORDER BY count(*)) < 3"):
        with pytest.raises(Unsupported):
            soup.register(f"SELECT sym, count(*) n FROM {trades} GROUP BY sym {ending}").changes()
    assert list(grouped.changes(timeout=0)) == []
