"""Why tuples are in an answer or not, embedded and through a client: the same objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

import tureen
from tests.behaviour.conftest import BASE, AnySoup, rows
from tests.service.running import RunningServer
from tureen.errors import Location, SqlError, TureenError, UnknownColumn, UnknownQuery

Names = Callable[[str], str]


def test_a_tuple_is_explained_when_its_push_has_returned(soup: AnySoup, trades: str) -> None:
    query = soup.register(f"SELECT sym FROM {trades} WHERE price > 100 BEGIN NOW - 10 SECONDS END NOW")
    soup.push(trades, rows(("IBM", 99.0, 3), ("IBM", 120.0, 3), ("SAP", 120.0, 3)))
    now = BASE + timedelta(seconds=11)
    answer = query.why("sym = 'IBM' AND qty = 3", now=now)
    assert isinstance(answer, tureen.Explanation)
    assert [(explained.row, explained.time, explained.in_answer) for explained in answer] == [
        ({"sym": "IBM", "price": 99.0, "qty": 3, "ts": BASE}, BASE, False),
        (
            {"sym": "IBM", "price": 120.0, "qty": 3, "ts": BASE + timedelta(seconds=1)},
            BASE + timedelta(seconds=1),
            True,
        ),
    ]
    outside, factor = answer.tuples[0].reasons
    assert outside.text == "outside the window: 0:00:01 before it begins at 2026-01-01 00:00:01"
    assert factor == tureen.Reason(
        "factor", "price > 100.0 is false (price = 99.0)", "price > 100.0", "false", {"price": 99.0}
    )
    assert (answer.total, answer.has_more, answer.input) == (2, False, trades)
    assert query.why("qty = 3", now=now, limit=1).has_more
    stated = soup.sql(f"EXPLAIN ROW `{query.id}` AT TIMESTAMP '{now:%Y-%m-%d %H:%M:%S}' WHERE sym = 'IBM'")
    assert isinstance(stated, tureen.Explanation)
    # Spark may take the rows in between.
    assert replace(stated, position=answer.position) == answer
    assert answer.position <= query.why("qty = 3").position


def test_nearest_partner_of_a_join(soup: AnySoup, trades: str, fresh: Names) -> None:
    quotes = fresh("quotes")
    soup.create_stream(quotes, "sym STRING, bid DOUBLE, day DATE, net DECIMAL(6,2), ts TIMESTAMP", time="ts")
    query = soup.register(f"SELECT t.sym, q.bid FROM {trades} t JOIN {quotes} q ON t.sym = q.sym AND t.ts = q.ts")
    soup.push(trades, rows(("IBM", 99.0, 3)))
    quote = {"sym": "IBM", "bid": float("nan"), "day": "2026-01-01", "net": "1.50", "ts": BASE + timedelta(seconds=2)}
    soup.push(quotes, [quote, {**quote, "ts": BASE + timedelta(seconds=9)}])
    (explained,) = query.why("t.qty = 3")
    (reason,) = explained.reasons
    assert (explained.input, explained.in_answer, reason.kind, reason.input) == ("t", False, "no partner", "q")
    assert reason.values == {"q.ts": BASE + timedelta(seconds=2), "t.ts": BASE}
    assert "for the nearest of its 2 rows, 0:00:02 away, q.ts = t.ts is false" in reason.text
    assert reason.nearest is not None
    typed: dict[str, Any] = {name.partition(".")[2]: value for name, value in reason.nearest.items()}
    assert (str(typed["bid"]), str(typed["day"]), str(typed["net"])) == ("nan", "2026-01-01", "1.50")
    assert {type(typed[name]).__name__ for name in ("day", "net")} == {"date", "Decimal"}


def test_queries_of_templates(soup: AnySoup, trades: str) -> None:
    template = soup.register_many(f"SELECT sym FROM {trades} WHERE sym = :sym", [{"sym": "A"}, {"sym": "B"}])
    soup.push(trades, rows(("A", 1.0, 1)))
    assert [query.why("qty = 1").tuples[0].in_answer for query in template] == [True, False]
    assert template[1].why("qty = 1").tuples[0].reasons[0].text == "sym = 'B' is false (sym = 'A')"


def test_errors(soup: AnySoup, trades: str) -> None:
    query = soup.register(f"SELECT sym FROM {trades}")
    with pytest.raises(UnknownColumn, match="no column 'prize'") as raised:
        query.why("qty = 3\n  AND prize > 3")
    assert (raised.value.location, raised.value.hint) == (Location(2, 7), "did you mean 'price'?")
    with pytest.raises(UnknownColumn) as raised:
        soup.sql(f"EXPLAIN ROW `{query.id}` WHERE prize > 3")
    assert raised.value.location == Location(1, 54)
    for limit in (0, 1_001, True, "5"):
        with pytest.raises(TureenError, match="limit must be an integer from 1 to 1,000"):
            query.why("qty = 3", limit=limit)  # type: ignore[arg-type]
    with pytest.raises(TureenError, match="a condition must be a string"):
        query.why(3)  # type: ignore[arg-type]
    with pytest.raises(SqlError, match="expected WHERE"):
        soup.sql(f"EXPLAIN ROW `{query.id}`")
    query.unregister()
    with pytest.raises(UnknownQuery):
        query.why("qty = 3")


def test_only_those_who_may_invoke_a_query_can_ask(served_pot: RunningServer, fresh: Names) -> None:
    stream = fresh("trades")
    served_pot.soup.create_stream(stream, "sym STRING, price DOUBLE, qty INT, ts TIMESTAMP", time="ts")
    with tureen.connect(served_pot.url, served_pot.tokens["admin"]) as owner:
        query = owner.register(f"SELECT sym FROM {stream}")
        owner.push(stream, rows(("A", 1.0, 1)))
    with tureen.connect(served_pot.url, served_pot.tokens["other"]) as other:
        theirs = tureen.StandingQuery(other._calls, query.id, None, "")
        with pytest.raises(UnknownQuery):
            theirs.why("qty = 1")
        served_pot.soup.share(query.id)
        assert theirs.why("qty = 1").tuples[0].in_answer
