"""Changes and templates, embedded and through a client."""

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


def test_changes_are_ordered_and_can_be_resumed(soup: AnySoup, trades: str) -> None:
    query = soup.register(f"SELECT qty FROM {trades} WHERE qty > 1")
    since = query.invoke().position
    changes = query.changes(since=since)
    soup.push(trades, rows(("A", 1.0, 1), ("A", 1.0, 2), ("A", 1.0, 3)))
    soup.push(trades, rows(("A", 1.0, 4), start=9))
    seen = list(islice(changes, 3))
    assert [change.row for change in seen] == [{"qty": 2}, {"qty": 3}, {"qty": 4}]
    assert {change.query for change in seen} == {query.id}
    for index, change in enumerate(seen, 1):
        resumed = [later.row for later in query.changes(since=change.position, timeout=0)]
        assert resumed == [later.row for later in seen[index:]]
    assert list(query.changes(timeout=0)) == []


def test_errors_of_following_are_raised_at_once(soup: AnySoup, trades: str) -> None:
    query = soup.register(f"SELECT sym FROM {trades}")
    with pytest.raises(Unsupported):
        soup.register(f"SELECT sym FROM {trades} LIMIT 3").changes()
    for position in ("yesterday", 5):
        with pytest.raises(TureenError):
            query.changes(since=position)  # type: ignore[arg-type]
    query.unregister()
    with pytest.raises(UnknownQuery):
        query.changes()


def test_followers_of_one_join_share_its_operator(soup: AnySoup, trades: str, fresh: Names) -> None:
    quotes = fresh("quotes")
    soup.create_stream(quotes, "sym STRING, bid DOUBLE, ts TIMESTAMP", time="ts", clock="stream")
    join = f"FROM {trades} t JOIN {quotes} q ON t.sym = q.sym"
    queries = [soup.register(f"SELECT t.qty, q.bid {join} WHERE t.qty = {number}") for number in (1, 2)]
    assert queries[0].explain()["operator"] is None
    streams = [query.changes() for query in queries]
    soup.push(quotes, [{"sym": "A", "bid": 7.0, "ts": "2026-01-01T00:00:00Z"}])
    soup.push(trades, rows(("A", 1.0, 1), ("A", 1.0, 2), ("A", 1.0, 3)))
    first = [next(changes) for changes in streams]
    assert [change.row for change in first] == [{"qty": 1, "bid": 7.0}, {"qty": 2, "bid": 7.0}]
    soup.push(quotes, [{"sym": "A", "bid": 8.0, "ts": "2026-01-01T00:00:01Z"}])
    assert next(streams[1]).row == {"qty": 2, "bid": 8.0}
    assert queries[0].explain()["operator"]["queries"] == 2
    assert [change.row["bid"] for change in queries[0].changes(since=first[0].position, timeout=0)] == [8.0]
    for changes in streams:
        changes.close()  # type: ignore[attr-defined]


def test_template(soup: AnySoup, trades: str, fresh: Names) -> None:
    name = fresh("alerts")
    sql = f"SELECT sym, price FROM {trades} WHERE sym = :sym AND price > :p"
    params = [{"sym": sym, "p": p} for sym in "AB" for p in (0.0, 5.0)]
    alerts = soup.register_many(sql, params, name=name)
    assert (len(alerts), alerts.name, alerts.sql) == (4, name, sql)
    assert [query.id for query in alerts] == [f"{alerts.id}.{number}" for number in range(4)]
    assert (alerts[-1].id, [query.id for query in alerts[1:3]]) == (
        f"{alerts.id}.3",
        [f"{alerts.id}.1", f"{alerts.id}.2"],
    )
    with pytest.raises(IndexError):
        alerts[4]
    since = alerts[0].invoke().position
    soup.push(trades, rows(("A", 9.0, 1), ("B", 3.0, 1)))
    seen = list(islice(alerts.changes(since=since), 3))
    assert [(number_of(change.query), change.row["price"]) for change in seen] == [("0", 9.0), ("1", 9.0), ("2", 3.0)]
    resumed = alerts.changes(since=seen[0].position, timeout=0)
    assert [change.row for change in resumed] == [change.row for change in seen[1:]]
    assert soup.query(f"{name}.1").invoke().table.to_pylist() == [{"sym": "A", "price": 9.0}]
    alerts[1].unregister()
    assert [number_of(query.id) for query in soup.template(name)] == ["0", "2", "3"]
    assert alerts[1].id == f"{alerts.id}.2"
    listed = next(template for template in soup.templates() if template["id"] == alerts.id)
    assert (listed["name"], listed["queries"]) == (name, 3)
    with pytest.raises(DuplicateName):
        soup.register_many(sql, params, name=name)
    soup.template(alerts.id).unregister()
    for call in (lambda: soup.template(name), lambda: soup.query(f"{alerts.id}.0"), alerts.changes):
        with pytest.raises(UnknownQuery):
            call()


def test_template_over_a_join(soup: AnySoup, trades: str, fresh: Names) -> None:
    quotes, companies, name = fresh("quotes"), fresh("companies"), fresh("spreads")
    soup.create_stream(quotes, "sym STRING, ask DOUBLE, ts TIMESTAMP", time="ts")
    soup.create_table(companies, "sym STRING, sector STRING", [{"sym": "A", "sector": "tech"}])
    sql = (
        f"SELECT t.sym, t.price, q.ask, c.sector FROM {trades} t, {quotes} q, {companies} c"
        " WHERE t.sym = q.sym AND c.sym = t.sym AND t.sym = :sym AND q.ask > :p"
    )
    rules = [{"sym": sym, "p": p, "rule": f"{sym}{p}"} for sym in "AB" for p in (0.0, 5.0)]
    spreads = soup.register_many(sql, rules, name=name, label="rule")
    since = spreads[0].invoke().position
    soup.push(trades, rows(("A", 9.0, 1), ("B", 3.0, 1)))
    soup.push(
        quotes,
        [
            {"sym": "A", "ask": ask, "ts": row["ts"]}
            for row, ask in zip(rows(("A", 1.0, 1)) * 2, (7.0, 1.0), strict=True)
        ],
    )
    seen = list(islice(spreads.changes(since=since), 3))
    assert [(change.label, change.row["ask"]) for change in seen] == [("A0.0", 7.0), ("A5.0", 7.0), ("A0.0", 1.0)]
    for index, change in enumerate(seen, 1):
        resumed = [later.row for later in spreads.changes(since=change.position, timeout=0)]
        assert resumed == [later.row for later in seen[index:]]
    alone = soup.register(sql.replace(":sym", "'A'").replace(":p", "0.0"))
    assert soup.query(f"{name}.0").invoke().table.to_pylist() == alone.invoke().table.to_pylist()
    assert list(spreads.add([{"sym": "A", "p": 2.0, "rule": "late"}])) == [4]
    soup.push(trades, rows(("A", 8.0, 1), start=5))
    later = list(islice(spreads.changes(since=seen[-1].position), 4))
    assert sorted((change.label, change.row["ask"]) for change in later) == [
        ("A0.0", 1.0),
        ("A0.0", 7.0),
        ("A5.0", 7.0),
        ("late", 7.0),
    ]
    assert spreads.explain()["matching"]["columns"] == ["t.sym", "q.ask"]
    assert [entry.get("stream") for entry in spreads[0].explain()["inputs"]] == [trades, quotes, None]
    spreads[1].unregister()
    assert (spreads.remove(where={"sym": "B"}), len(spreads)) == (2, 2)
    with pytest.raises(Unsupported, match="inner joins only"):
        soup.register_many(
            f"SELECT t.sym FROM {trades} t LEFT JOIN {quotes} q USING (sym) WHERE t.qty > :n", [{"n": 1}]
        )
    soup.drop_table(companies)
    with pytest.raises(UnknownQuery):
        soup.template(name)


def number_of(handle: str) -> str:
    """The number of a template's query."""
    return handle.rpartition(".")[2]


@pytest.mark.parametrize("container", [list, pa.Table.from_pylist, pd.DataFrame, pl.DataFrame])
def test_parameters_in_every_container(soup: AnySoup, trades: str, container: Callable[..., object]) -> None:
    template = soup.register_many(f"SELECT * FROM {trades} WHERE qty > :n", container([{"n": 1}, {"n": 2}]))
    assert len(template) == 2


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ([{"m": 1}], TureenError, "no values for :n"),
        ([], InvalidRows, "parameters must have at least one row"),
        ([{"n": 1}, {"n": "x"}], InvalidRows, "cannot be converted to Arrow"),
        (5, InvalidRows, "got int"),
    ],
)
def test_invalid_parameters(soup: AnySoup, trades: str, params: object, error: type[TureenError], message: str) -> None:
    with pytest.raises(error, match=message):
        soup.register_many(f"SELECT * FROM {trades} WHERE qty > :n", params)


def test_feed_of_all_queries(soup: AnySoup, trades: str) -> None:
    query = soup.register(f"SELECT qty, ts FROM {trades} WHERE qty > 1")
    alerts = soup.register_many(f"SELECT qty FROM {trades} WHERE qty > :n", [{"n": 1}, {"n": 5}])
    feed = soup.feed()
    soup.push(trades, rows(("A", 1.0, 2), ("A", 1.0, 9)))
    ours = (change for change in feed if change.query.partition(".")[0] in (query.id, alerts.id))
    seen = list(islice(ours, 5))
    assert sorted((change.query, change.row["qty"]) for change in seen) == sorted(
        [(query.id, 2), (query.id, 9), (f"{alerts.id}.0", 2), (f"{alerts.id}.0", 9), (f"{alerts.id}.1", 9)]
    )
    resumed = [
        (change.query, change.row)
        for change in soup.feed(since=seen[1].position, timeout=0)
        if change.query.partition(".")[0] in (query.id, alerts.id)
    ]
    assert resumed == [(change.query, change.row) for change in seen[2:]]


def test_feed_with_joins(soup: AnySoup, trades: str, fresh: Names) -> None:
    quotes = fresh("quotes")
    soup.create_stream(quotes, "sym STRING, ask DOUBLE, ts TIMESTAMP", time="ts")
    join = f"SELECT t.qty, q.ask FROM {trades} t JOIN {quotes} q ON t.sym = q.sym"
    handles = {
        soup.register(f"SELECT qty FROM {trades}").id: 2,
        soup.register(join).id: 4,
        soup.register(f"{join} AND t.qty > 1 BEGIN NOW - 10 MINUTES END NOW").id: 2,
        soup.register(f"SELECT qty FROM {trades} t WHERE EXISTS (SELECT 1 FROM {quotes} q WHERE q.sym = t.sym)").id: 2,
        soup.register_many(f"{join} WHERE q.ask > :p", [{"p": 0.0}, {"p": 5.0}]).id: 6,
        soup.register(f"SELECT t.qty FROM {trades} t LEFT JOIN {quotes} q ON t.sym = q.sym").id: 0,
    }
    feed = soup.feed()
    soup.push(trades, rows(("A", 1.0, 1)))
    soup.push(quotes, [{"sym": "A", "ask": ask, "ts": rows(("A", 1.0, 1))[0]["ts"]} for ask in (7.0, 1.0)])
    soup.push(trades, rows(("A", 1.0, 2), start=5))
    ours = (change for change in feed if change.query.partition(".")[0] in handles)
    seen = list(islice(ours, sum(handles.values())))
    of_queries = [change.query.partition(".")[0] for change in seen]
    assert {handle: of_queries.count(handle) for handle in handles} == handles
    told = [(change.query, change.row) for change in seen]
    for index, change in enumerate(seen, 1):
        later = soup.feed(since=change.position, timeout=0)
        resumed = [(change.query, change.row) for change in later if change.query.partition(".")[0] in handles]
        assert sorted(map(repr, resumed)) == sorted(map(repr, told[index:]))


def test_feed_with_groups(soup: AnySoup, trades: str) -> None:
    totals = soup.register(f"SELECT sym, sum(qty) AS total FROM {trades} GROUP BY sym")
    limits = soup.register_many(
        f"SELECT sym, count(*) AS n FROM {trades} GROUP BY sym HAVING count(*) < :n", [{"n": 2}]
    )
    single = soup.register(f"SELECT qty FROM {trades}")
    handles = {totals.id, limits.id, single.id}
    feed = (change for change in soup.feed() if change.query.partition(".")[0] in handles)
    soup.push(trades, rows(("A", 1.0, 2)))
    seen = list(islice(feed, 3))
    soup.push(trades, rows(("A", 1.0, 3), ("B", 1.0, 9)))
    seen += islice(feed, 6)
    told = [(change.query.partition(".")[0], change.kind, change.row, change.before) for change in seen]
    assert told[0] == (single.id, "insert", {"qty": 2}, None)
    assert sorted(map(repr, told[1:3])) == sorted(
        [
            repr((totals.id, "insert", {"sym": "A", "total": 2}, None)),
            repr((limits.id, "insert", {"sym": "A", "n": 1}, None)),
        ]
    )
    assert [row for _, _, row, _ in told[3:5]] == [{"qty": 3}, {"qty": 9}]
    updated = {"sym": "A", "total": 5}, {"sym": "A", "total": 2}
    assert (totals.id, "update", *updated) in told[5:]
    assert (limits.id, "delete", {"sym": "A", "n": 1}, {"sym": "A", "n": 1}) in told[5:]
    for index in (0, 1, 3, 5, 7):
        later = (change for change in soup.feed(since=seen[index].position, timeout=0))
        resumed = [
            (change.query, change.kind, change.row) for change in later if change.query.partition(".")[0] in handles
        ]
        assert len(resumed) == len({repr(change) for change in resumed})
        assert {change[0] for change in resumed} <= {change.query for change in seen[index + 1 :]}
    assert resumed == [(change.query, change.kind, change.row) for change in seen[8:]]


def test_rows_are_added_to_and_removed_from_a_template(soup: AnySoup, trades: str, fresh: Names) -> None:
    sql = f"SELECT :p AS least, sym, price FROM {trades} WHERE sym = :sym AND price > :p"
    params = [{"sym": "A", "p": 1.0, "rule": "low"}, {"sym": "A", "p": 5.0, "rule": "high"}]
    alerts = soup.register_many(sql, params, name=fresh("rules"), label="rule")
    since = alerts[0].invoke().position
    soup.push(trades, rows(("B", 9.0, 1)))
    soup.wait(soup.push(trades, rows(("A", 2.0, 1), start=1)))
    assert list(alerts.add([{"sym": "B", "p": 3, "rule": "b"}])) == [2]
    frame = pd.DataFrame({"sym": ["B", "C"], "p": [4.0, 0.0], "rule": ["b2", None]})
    assert list(alerts.add(frame)) == [3, 4]
    assert (list(alerts.numbers), [query.label for query in alerts]) == (
        [0, 1, 2, 3, 4],
        ["low", "high", "b", "b2", None],
    )
    assert (alerts[-2].label, alerts[2].invoke().table.to_pylist()) == (
        "b2",
        [{"least": 3.0, "sym": "B", "price": 9.0}],
    )
    soup.push(trades, rows(("B", 8.0, 1), ("C", 1.0, 1), start=5))
    seen = list(islice(alerts.changes(since=since), 4))
    assert [(number_of(change.query), change.label, change.row) for change in seen] == [
        ("0", "low", {"least": 1.0, "sym": "A", "price": 2.0}),
        ("2", "b", {"least": 3.0, "sym": "B", "price": 8.0}),
        ("3", "b2", {"least": 4.0, "sym": "B", "price": 8.0}),
        ("4", None, {"least": 0.0, "sym": "C", "price": 1.0}),
    ]
    assert alerts.remove([1, 2]) == 2
    assert alerts.remove(where={"rule": ["low", "nobody"]}) == 1
    assert alerts.remove(where={"sym": "Z"}) == 0
    assert (len(alerts), [query.id for query in alerts]) == (2, [f"{alerts.id}.3", f"{alerts.id}.4"])
    assert [change.label for change in alerts.changes(since=since, timeout=0)] == ["b2", None]
    assert [change.row["price"] for change in alerts.changes(since=seen[1].position, timeout=0)] == [8.0, 1.0]
    listed = next(template for template in soup.templates() if template["id"] == alerts.id)
    assert (listed["queries"], listed["label"]) == (2, "rule")


def test_followers_of_a_template_see_added_rows(soup: AnySoup, trades: str) -> None:
    alerts = soup.register_many(f"SELECT qty FROM {trades} WHERE qty = :n", [{"n": 1}])
    changes = alerts.changes()
    feed = soup.feed()
    soup.push(trades, rows(("A", 1.0, 1)))
    assert next(changes).query == f"{alerts.id}.0"
    alerts.add([{"n": 2}])
    soup.push(trades, rows(("A", 1.0, 2)))
    assert next(changes).query == f"{alerts.id}.1"
    ours = (change.query for change in feed if change.query.startswith(alerts.id))
    assert list(islice(ours, 2)) == [f"{alerts.id}.0", f"{alerts.id}.1"]


def test_errors_of_adding_and_removing_rows(soup: AnySoup, trades: str) -> None:
    alerts = soup.register_many(f"SELECT qty FROM {trades} WHERE qty = :n", [{"n": 1}, {"n": 2}])
    invalid: list[Any] = [[], [{"n": "x"}], [{"m": 1}], [{}], [{"n": 2**70}], pa.table({"n": ["x"]})]
    for params in invalid:
        with pytest.raises(TureenError):
            alerts.add(params)
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
