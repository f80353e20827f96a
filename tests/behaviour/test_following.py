"""Changes and templates, opened and connected."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tests.behaviour.conftest import AnySoup, rows
from tureen.errors import DuplicateName, InvalidRows, TureenError, UnknownQuery, Unsupported

Names = Callable[[str], str]


def test_rows_come_in_order_and_from_every_position_on(soup: AnySoup, trades: str) -> None:
    query = soup.register(f"SELECT qty FROM {trades} WHERE qty > 1")
    since = query.invoke().position
    changes = query.changes(since=since)
    soup.push(trades, rows(("A", 1.0, 1), ("A", 1.0, 2), ("A", 1.0, 3)))
    soup.push(trades, rows(("A", 1.0, 4), start=9))
    seen = list(islice(changes, 3))
    assert [change.row for change in seen] == [{"qty": 2}, {"qty": 3}, {"qty": 4}]
    assert {change.query for change in seen} == {query.id}
    for place, change in enumerate(seen):
        rest = [one.row for one in query.changes(since=change.position, timeout=0)]
        assert rest == [one.row for one in seen[place + 1 :]]
    assert list(query.changes(timeout=0)) == []


def test_what_is_wrong_is_said_at_once(soup: AnySoup, trades: str) -> None:
    query = soup.register(f"SELECT sym FROM {trades}")
    with pytest.raises(Unsupported):
        soup.register(f"SELECT count(*) FROM {trades}").changes()
    for odd in ("yesterday", 5):
        with pytest.raises(TureenError):
            query.changes(since=odd)  # type: ignore[arg-type]
    query.unregister()
    with pytest.raises(UnknownQuery):
        query.changes()


def test_many_queries_of_one_shape(soup: AnySoup, trades: str, fresh: Names) -> None:
    name = fresh("alerts")
    sql = f"SELECT sym, price FROM {trades} WHERE sym = :sym AND price > :p"
    params = [{"sym": sym, "p": p} for sym in "AB" for p in (0.0, 5.0)]
    alerts = soup.register_many(sql, params, name=name)
    assert (len(alerts), alerts.name, alerts.sql) == (4, name, sql)
    assert [one.id for one in alerts] == [f"{alerts.id}.{number}" for number in range(4)]
    assert (alerts[-1].id, [one.id for one in alerts[1:3]]) == (f"{alerts.id}.3", [f"{alerts.id}.1", f"{alerts.id}.2"])
    with pytest.raises(IndexError):
        alerts[4]
    since = alerts[0].invoke().position
    soup.push(trades, rows(("A", 9.0, 1), ("B", 3.0, 1)))
    seen = list(islice(alerts.changes(since=since), 3))
    assert [(one.query.rpartition(".")[2], one.row["price"]) for one in seen] == [("0", 9.0), ("1", 9.0), ("2", 3.0)]
    assert [one.row for one in alerts.changes(since=seen[0].position, timeout=0)] == [one.row for one in seen[1:]]
    assert soup.query(f"{name}.1").invoke().table.to_pylist() == [{"sym": "A", "price": 9.0}]
    alerts[1].unregister()
    assert [one.id.rpartition(".")[2] for one in soup.template(name)] == ["0", "2", "3"]
    assert alerts[1].id == f"{alerts.id}.2"
    listed = next(one for one in soup.templates() if one["id"] == alerts.id)
    assert (listed["name"], listed["queries"]) == (name, 3)
    with pytest.raises(DuplicateName):
        soup.register_many(sql, params, name=name)
    soup.template(alerts.id).unregister()
    for gone in (lambda: soup.template(name), lambda: soup.query(f"{alerts.id}.0"), alerts.changes):
        with pytest.raises(UnknownQuery):
            gone()


@pytest.mark.parametrize("shape", [list, pa.Table.from_pylist, pd.DataFrame, pl.DataFrame])
def test_parameters_of_every_shape(soup: AnySoup, trades: str, shape: Callable[..., object]) -> None:
    found = soup.register_many(f"SELECT * FROM {trades} WHERE qty > :n", shape([{"n": 1}, {"n": 2}]))
    assert len(found) == 2


@pytest.mark.parametrize(
    ("params", "kind", "says"),
    [
        ([{"m": 1}], TureenError, "no values for :n"),
        ([], InvalidRows, "no row of parameters"),
        ([{"n": 1}, {"n": "x"}], InvalidRows, "cannot be converted to Arrow"),
        (5, InvalidRows, "got int"),
    ],
)
def test_parameters_that_do_not_fit(
    soup: AnySoup, trades: str, params: object, kind: type[TureenError], says: str
) -> None:
    with pytest.raises(kind, match=says):
        soup.register_many(f"SELECT * FROM {trades} WHERE qty > :n", params)


def test_one_feed_over_all(soup: AnySoup, trades: str) -> None:
    query = soup.register(f"SELECT qty, ts FROM {trades} WHERE qty > 1")
    alerts = soup.register_many(f"SELECT qty FROM {trades} WHERE qty > :n", [{"n": 1}, {"n": 5}])
    feed = soup.feed()
    soup.push(trades, rows(("A", 1.0, 2), ("A", 1.0, 9)))
    ours = (change for change in feed if change.query.partition(".")[0] in (query.id, alerts.id))
    seen = list(islice(ours, 5))
    assert sorted((one.query, one.row["qty"]) for one in seen) == sorted(
        [(query.id, 2), (query.id, 9), (f"{alerts.id}.0", 2), (f"{alerts.id}.0", 9), (f"{alerts.id}.1", 9)]
    )
    rest = [
        one
        for one in soup.feed(since=seen[1].position, timeout=0)
        if one.query.partition(".")[0] in (query.id, alerts.id)
    ]
    assert [(one.query, one.row) for one in rest] == [(one.query, one.row) for one in seen[2:]]


def test_rows_of_a_template_come_and_go(soup: AnySoup, trades: str, fresh: Names) -> None:
    sql = f"SELECT :p AS least, sym, price FROM {trades} WHERE sym = :sym AND price > :p"
    params = [{"sym": "A", "p": 1.0, "rule": "low"}, {"sym": "A", "p": 5.0, "rule": "high"}]
    alerts = soup.register_many(sql, params, name=fresh("rules"), label="rule")
    since = alerts[0].invoke().position
    soup.push(trades, rows(("B", 9.0, 1)))
    soup.wait(soup.push(trades, rows(("A", 2.0, 1), start=1)))
    assert list(alerts.add([{"sym": "B", "p": 3, "rule": "b"}])) == [2]
    frame = pd.DataFrame({"sym": ["B", "C"], "p": [4.0, 0.0], "rule": ["b2", None]})
    assert list(alerts.add(frame)) == [3, 4]
    assert (list(alerts.numbers), [one.label for one in alerts]) == ([0, 1, 2, 3, 4], ["low", "high", "b", "b2", None])
    assert (alerts[-2].label, alerts[2].invoke().table.to_pylist()) == (
        "b2",
        [{"least": 3.0, "sym": "B", "price": 9.0}],
    )
    soup.push(trades, rows(("B", 8.0, 1), ("C", 1.0, 1), start=5))
    told = list(islice(alerts.changes(since=since), 4))
    assert [(one.query.rpartition(".")[2], one.label, one.row) for one in told] == [
        ("0", "low", {"least": 1.0, "sym": "A", "price": 2.0}),
        ("2", "b", {"least": 3.0, "sym": "B", "price": 8.0}),
        ("3", "b2", {"least": 4.0, "sym": "B", "price": 8.0}),
        ("4", None, {"least": 0.0, "sym": "C", "price": 1.0}),
    ]
    assert alerts.remove([1, 2]) == 2
    assert alerts.remove(where={"rule": ["low", "nobody"]}) == 1
    assert alerts.remove(where={"sym": "Z"}) == 0
    assert (len(alerts), [one.id for one in alerts]) == (2, [f"{alerts.id}.3", f"{alerts.id}.4"])
    assert [one.label for one in alerts.changes(since=since, timeout=0)] == ["b2", None]
    assert [one.row["price"] for one in alerts.changes(since=told[1].position, timeout=0)] == [8.0, 1.0]
    listed = next(one for one in soup.templates() if one["id"] == alerts.id)
    assert (listed["queries"], listed["label"]) == (2, "rule")


def test_a_template_that_is_followed_hears_of_added_rows(soup: AnySoup, trades: str) -> None:
    alerts = soup.register_many(f"SELECT qty FROM {trades} WHERE qty = :n", [{"n": 1}])
    changes = alerts.changes()
    feed = soup.feed()
    soup.push(trades, rows(("A", 1.0, 1)))
    assert next(changes).query == f"{alerts.id}.0"
    alerts.add([{"n": 2}])
    soup.push(trades, rows(("A", 1.0, 2)))
    assert next(changes).query == f"{alerts.id}.1"
    assert [one.query for one in islice((one for one in feed if one.query.startswith(alerts.id)), 2)] == [
        f"{alerts.id}.0",
        f"{alerts.id}.1",
    ]


def test_what_is_wrong_with_rows_of_a_template(soup: AnySoup, trades: str) -> None:
    alerts = soup.register_many(f"SELECT qty FROM {trades} WHERE qty = :n", [{"n": 1}, {"n": 2}])
    wrong: list[Any] = [[], [{"n": "x"}], [{"m": 1}], [{}], [{"n": 2**70}], pa.table({"n": ["x"]})]
    for bad in wrong:
        with pytest.raises(TureenError):
            alerts.add(bad)
    with pytest.raises(UnknownQuery, match="no query 7"):
        alerts.remove([0, 7])
    for numbers, where in ((None, None), (None, {"x": 1}), ([0], {"n": 1}), (None, {"n": "x"})):
        with pytest.raises(TureenError):
            alerts.remove(numbers, where=where)
    with pytest.raises(TureenError):
        soup.register_many(f"SELECT qty FROM {trades} WHERE qty = :n", [{"n": 1, "why": "x"}])
    assert list(alerts.numbers) == [0, 1]
    alerts.unregister()
    for call in (lambda: alerts.add([{"n": 1}]), lambda: alerts.remove([0]), lambda: alerts[0]):
        with pytest.raises(UnknownQuery):
            call()
