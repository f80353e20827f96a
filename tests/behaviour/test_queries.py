"""Standing queries, embedded and through a client, with and without the fast path of invocations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

import tureen
from tests.behaviour.conftest import BASE, AnySoup, rows
from tests.service.running import RunningServer
from tureen.errors import (
    DuplicateName,
    Location,
    QueryFailed,
    SqlError,
    TureenError,
    TypeMismatch,
    UnknownColumn,
    UnknownQuery,
    UnknownStream,
    Unsupported,
    WaitTimeout,
)

Names = Callable[[str], str]


@pytest.fixture(params=["open", "connect", "router"])
def soup(request: pytest.FixtureRequest, served_pot: RunningServer, routed_soup: tureen.Client) -> Iterator[AnySoup]:
    """The pot as returned by `open`, by `connect`, and by `connect` to a server without the fast path."""
    match request.param:
        case "open":
            yield served_pot.soup
        case "connect":
            with tureen.connect(served_pot.url, served_pot.tokens["admin"]) as client:
                yield client
        case _:
            yield routed_soup


def test_registered_before_and_after_the_rows(soup: AnySoup, trades: str) -> None:
    sql = f"SELECT sym, price FROM {trades} WHERE price > 100 BEGIN NOW - 10 SECONDS END NOW"
    before = soup.register(sql)
    pushed = soup.push(trades, rows(("A", 120.5, 3), ("B", 99.0, 1)))
    after = soup.register(sql, materialize=False)
    now = BASE + timedelta(seconds=5)
    for query in (before, after):
        answer = query.invoke(now=now, wait_for=pushed, timeout=30)
        assert answer.table.to_pylist() == list(answer) == [{"sym": "A", "price": 120.5}]
        assert (len(answer), answer.complete) == (1, True)
        assert answer.window == (now - timedelta(seconds=10), now)
        assert query.invoke(now=now.replace(tzinfo=None)).table.equals(answer.table)
        assert len(query.invoke(now=BASE + timedelta(hours=1))) == 0
        assert answer.position <= query.invoke().position
    assert answer.to_pandas()["price"].tolist() == [120.5]


def test_now_in_having(soup: AnySoup, trades: str) -> None:
    silent = soup.register(f"SELECT sym FROM {trades} GROUP BY sym HAVING max(ts) < NOW - INTERVAL 5 SECONDS")
    pushed = soup.push(trades, rows(("A", 1.0, 1), ("B", 1.0, 2), ("A", 1.0, 3)))
    for seconds, syms in ((5, []), (7, ["B"]), (8, ["A", "B"])):
        answer = silent.invoke(now=BASE + timedelta(seconds=seconds), wait_for=pushed, timeout=30)
        assert [row["sym"] for row in answer] == syms
    assert {row["sym"] for row in silent.invoke()} == {"A", "B"}
    with pytest.raises(Unsupported):
        soup.register(f"SELECT qty FROM {trades} WHERE ts < NOW").changes()


def test_window_functions_and_step_windows(soup: AnySoup, trades: str) -> None:
    pushed = soup.push(trades, rows(("A", 1.0, 1), ("B", 2.0, 2), ("A", 4.0, 3)))
    ranked = f"SELECT qty, lag(qty) OVER (PARTITION BY sym ORDER BY ts) AS before FROM {trades}"
    best = (
        f"SELECT window_start, qty FROM {trades} [TUMBLE 2 SECONDS] "
        "QUALIFY rank() OVER (PARTITION BY window_start ORDER BY price DESC) = 1"
    )
    totals = f"SELECT sym, sum(qty) AS total FROM {trades} GROUP BY ROLLUP (sym)"
    expected = [
        [{"qty": 1, "before": None}, {"qty": 2, "before": None}, {"qty": 3, "before": 1}],
        [{"window_start": BASE, "qty": 2}, {"window_start": BASE + timedelta(seconds=2), "qty": 3}],
        [{"sym": "A", "total": 4}, {"sym": "B", "total": 2}, {"sym": None, "total": 6}],
    ]
    for sql, answer in zip((ranked, best, totals), expected, strict=True):
        assert list(soup.register(sql).invoke(wait_for=pushed, timeout=30)) == answer


def test_look_up_list_and_unregister(soup: AnySoup, trades: str, fresh: Names) -> None:
    name = fresh("big")
    query = soup.register(f"SELECT * FROM {trades}", name=name)
    assert (query.name, query.sql, query.state) == (name, f"SELECT * FROM {trades}", "standing")
    for same in (soup.query(name), soup.query(name.upper()), soup.query(query.id)):
        assert (same.id, same.name, same.sql) == (query.id, name, query.sql)
    assert query.id in [listed.id for listed in soup.queries()]
    described = next(info for info in soup.describe_queries() if info["id"] == query.id)
    assert isinstance(described["registered_at"], datetime)
    assert query.registered.registered_at == described["registered_at"].timestamp() * 1_000_000
    with pytest.raises(DuplicateName):
        soup.register(f"SELECT * FROM {trades}", name=name)
    query.unregister()
    for call in (lambda: soup.query(name), lambda: soup.query(query.id), query.invoke, query.unregister):
        with pytest.raises(UnknownQuery):
            call()


def test_listed_in_pages(soup: AnySoup, trades: str) -> None:
    registered = [soup.register(f"SELECT * FROM {trades} WHERE qty > {number}").id for number in range(5)]
    listed: list[str] = []
    after = None
    while page := soup.queries(after=after, limit=2):
        assert len(page) <= 2
        listed += [query.id for query in page]
        after = page[-1].place
    assert [handle for handle in listed if handle in registered] == registered
    assert len(listed) == len(set(listed)) == len(soup.queries())
    assert [query["id"] for query in soup.describe_queries(limit=3)] == listed[:3]


@pytest.mark.parametrize(
    ("select", "error", "position", "hint"),
    [
        ("SELECT prize FROM {s}", UnknownColumn, Location(1, 8), "did you mean 'price'?"),
        ("SELECT sym\nFROM {s}\nWHERE sym > 1.5 AND", SqlError, Location(3, 17), None),
        ("SELECT sym FROM {s} WHERE sym = DATE '2026-01-01'", TypeMismatch, None, None),
        ("SELECT sym FROM nowhere", UnknownStream, None, None),
        ("SELECT sym FROM {s} ORDER BY 7", SqlError, None, None),
    ],
)
def test_errors_of_the_sql(
    soup: AnySoup, trades: str, select: str, error: type[TureenError], position: Location | None, hint: str | None
) -> None:
    with pytest.raises(TureenError) as raised:
        soup.register(select.format(s=trades))
    assert isinstance(raised.value, error)
    assert type(raised.value).code == raised.value.code
    if position is not None:
        assert raised.value.location == position
    if hint is not None:
        assert raised.value.hint == hint


def test_query_that_raises_is_stopped(soup: AnySoup, trades: str) -> None:
    query = soup.register(f"SELECT 1 / (qty - 7) AS x FROM {trades}")
    soup.push(trades, rows(("A", 1.0, 1)))
    pushed = soup.push(trades, rows(("A", 1.0, 7)))
    with pytest.raises(QueryFailed):
        query.invoke(wait_for=pushed)


def test_explain(soup: AnySoup, trades: str) -> None:
    query = soup.register(f"SELECT sym FROM {trades} WHERE qty > 5")
    plan = query.explain()
    assert (plan["id"], plan["stream"]) == (query.id, trades)
    assert "qty" in plan["factors"][0]
    unregistered = soup.explain_once(f"SELECT sym FROM {trades} WHERE qty > 5")
    assert (unregistered["id"], unregistered["factors"]) == (None, plan["factors"])


def test_answer_without_registration(soup: AnySoup, trades: str) -> None:
    soup.wait(soup.push(trades, rows(("A", 1.0, 1), ("B", 2.0, 2))))
    assert soup.answer_once(f"SELECT sym FROM {trades} WHERE qty > 1").table.to_pylist() == [{"sym": "B"}]


def test_wait(soup: AnySoup, trades: str) -> None:
    query = soup.register(f"SELECT * FROM {trades}")
    pushed = soup.push(trades, rows(("A", 1.0, 1)))
    soup.wait(pushed)
    soup.wait({pushed, query.invoke().position}, timeout=60)
    never = "999999999999999"
    with pytest.raises(WaitTimeout):
        soup.wait(never, timeout=0)
    with pytest.raises(WaitTimeout):
        query.invoke(wait_for=never, timeout=0)
    with pytest.raises(TureenError, match="not a position"):
        soup.wait("yesterday")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda soup: soup.register(5), "must be a string, got int"),
        (lambda soup: soup.query(None), "must be a string, got NoneType"),
        (lambda soup: soup.query(""), "no query|not a valid name"),
        (lambda soup: soup.wait("1", timeout="soon"), "timeout must be a number of seconds"),
        (lambda soup: soup._calls.answer("x", "now", None, None), "now must be a datetime, got str"),
        (lambda soup: soup.push("x", [], key=5), "must be a string, got int"),
    ],
)
def test_invalid_arguments(soup: AnySoup, call: Callable[[Any], object], message: str) -> None:
    with pytest.raises(TureenError, match=message):
        call(soup)


def test_share_and_unshare(soup: AnySoup, trades: str) -> None:
    query = soup.register(f"SELECT * FROM {trades}")
    soup.share(query.id)
    soup.share(query.id, False)
    alerts = soup.register_many(f"SELECT * FROM {trades} WHERE qty > :n", [{"n": 1}])
    soup.share(alerts.id)
    with pytest.raises(UnknownQuery):
        soup.share("nothing")


def test_status(soup: AnySoup, trades: str) -> None:
    soup.wait(soup.push(trades, rows(("A", 1.0, 1))))
    status = soup.status()
    assert status["streams"][trades]["rows"] == 1
    assert status["queries"] > 0
    assert status["engine"] == "running"
