"""Punctuations, unique keys and lateness, embedded and through a client."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date, timedelta
from itertools import islice
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import tureen
from tests.behaviour.conftest import BASE, AnySoup, rows
from tests.service.running import RunningServer
from tureen.errors import (
    InvalidPunctuation,
    InvalidSchema,
    KeyConflict,
    SqlError,
    TureenError,
    UnknownStream,
    Unsupported,
)
from tureen.results.answer import Change

Names = Callable[[str], str]
REJECTED = "tureen_pushed_rows_rejected_total"
PUNCTUATIONS = "tureen_punctuations_total"


def answered(soup: AnySoup, stream: str) -> list[tuple[Any, ...]]:
    return [(row["sym"], row["qty"]) for row in soup.answer_once(f"SELECT sym, qty FROM {stream}")]


def test_later_rows_that_match_are_rejected(soup: AnySoup, trades: str) -> None:
    soup.push(trades, rows(("A", 1.0, 1), ("B", 1.0, 1)))
    position = soup.punctuate(trades, {"sym": "A"})
    pushed = soup.push(trades, rows(("A", 2.0, 2), ("B", 2.0, 2), start=5))
    assert (pushed.added, pushed.rejected) == (1, 1)
    soup.wait([position, pushed])
    assert answered(soup, trades) == [("A", 1), ("B", 1), ("B", 2)]
    (rejected,) = soup.rejected(trades)
    assert rejected["reason"].startswith("closed by the punctuation sym = 'A', pushed at ")
    assert (rejected["row"]["sym"], rejected["row"]["qty"]) == ("A", 2)
    assert rejected["row"]["ts"] == (BASE + timedelta(seconds=5)).isoformat()
    assert soup.status()["streams"][trades]["rejected"] == 1
    if isinstance(soup, tureen.Soup):
        soup.settle()
        assert soup.rejected(trades) == [rejected], "taken by Spark, it is in the catalog, and no longer pending"


def test_punctuations_among_rows_bind_later_rows_only(soup: AnySoup, trades: str) -> None:
    first, second, third = rows(("A", 1.0, 1), ("A", 1.0, 2), ("B", 1.0, 3))
    pushed = soup.push(trades, [first, tureen.Punctuation(sym="A"), second, third])
    assert (pushed.added, pushed.rejected) == (2, 1)
    assert answered(soup, trades) == [("A", 1), ("B", 3)]
    assert "earlier in the same push" in soup.rejected(trades)[0]["reason"]


PATTERNS: list[tuple[dict[str, Any], list[int]]] = [
    ({"qty": 2}, [2]),
    ({"qty": [1, 3]}, [1, 3]),
    ({"qty": tureen.Range(low=2)}, [2, 3, 4]),
    ({"qty": tureen.Range(low=1, high=3, low_open=True, high_open=True)}, [2]),
    ({"ts": tureen.Range(high=BASE + timedelta(seconds=1))}, [1, 2]),
    ({"sym": "A", "qty": tureen.Range(high=3)}, [1, 2]),
    ({"SYM": ["A", "B"], "price": 1.5}, [1, 3]),
    ({"price": tureen.Range(high=1.5, high_open=True)}, []),
    ({"sym": tureen.Range(low="B", high="C")}, [3]),
]


@pytest.mark.parametrize(("where", "closed"), PATTERNS, ids=[str(where) for where, _ in PATTERNS])
def test_patterns(soup: AnySoup, trades: str, where: dict[str, Any], closed: list[int]) -> None:
    soup.punctuate(trades, where)
    batch = rows(("A", 1.5, 1), ("A", 2.5, 2), ("B", 1.5, 3), ("D", 9.0, 4))
    assert soup.push(trades, batch).rejected == len(closed)
    assert [row["row"]["qty"] for row in soup.rejected(trades)] == closed


@pytest.mark.parametrize("container", [pa.Table.from_pylist, pd.DataFrame], ids=["arrow", "pandas"])
def test_punctuations_after_a_table(soup: AnySoup, trades: str, container: Callable[[Any], Any]) -> None:
    table = container(rows(("A", 1.0, 1), ("B", 1.0, 2)))
    closing: list[Any] = [tureen.Punctuation(sym="A"), {"qty": {"low": 2}}]
    assert soup.push(trades, table, punctuations=closing).rejected == 0
    assert soup.push(trades, table).rejected == 2


def test_repeated_key_punctuates_once(soup: AnySoup, trades: str) -> None:
    batch = [*rows(("A", 1.0, 1)), tureen.Punctuation(sym="A"), *rows(("A", 1.0, 2))]
    first = soup.push(trades, batch, key="push")
    again = soup.push(trades, batch, key="push")
    assert (first.added, first.rejected) == (1, 1)
    assert (again.added, again.rejected) == (0, 1)
    assert len(soup.rejected(trades)) == 1
    assert (
        soup.punctuate(trades, {"qty": 9}, key="close")[-15:] == soup.punctuate(trades, {"qty": 9}, key="close")[-15:]
    )
    with pytest.raises(KeyConflict, match="'close' was used with other rows"):
        soup.punctuate(trades, {"qty": 8}, key="close")


ERRORS: list[tuple[Any, str, str | None]] = [
    ({"symm": "A"}, "unknown column 'symm' in a punctuation", "did you mean 'sym'?"),
    ({"qty": "many"}, "in a punctuation, column 'qty' is INT, not 'many'", None),
    (
        {"qty": None},
        "column 'qty': NULL cannot be punctuated",
        "NULL equals no value; leave the column out to match any",
    ),
    ({"qty": []}, "column 'qty': the list of a punctuation is empty", "name a value"),
    ({"qty": {"low": 3, "high": 2}}, "column 'qty': the range from 3 to 2 is empty", None),
    ({"qty": {"lo": 3}}, "column 'qty': a range has no 'lo'", "its keys are low, high, low_open, high_open"),
]


@pytest.mark.parametrize(("where", "message", "hint"), ERRORS, ids=[str(where) for where, *_ in ERRORS])
def test_invalid_punctuations(soup: AnySoup, trades: str, where: Any, message: str, hint: str | None) -> None:
    with pytest.raises(InvalidPunctuation) as error:
        soup.punctuate(trades, where)
    assert error.value.message == message
    assert hint is None or error.value.hint == hint
    with pytest.raises(InvalidPunctuation):
        soup.push(trades, rows(("A", 1.0, 1)), punctuations=[where])
    assert answered(soup, trades) == []


def test_streams_that_cannot_be_punctuated(soup: AnySoup, trades: str, fresh: Names) -> None:
    with pytest.raises(UnknownStream):
        soup.punctuate("nowhere", {"a": 1})
    derived = fresh("derived")
    soup.create_stream(derived, query=f"SELECT * FROM {trades}")
    with pytest.raises(TureenError, match=f"stream '{derived}' is derived from a query"):
        soup.punctuate(derived, {"sym": "A"})
    with pytest.raises(InvalidSchema, match="derived from a query cannot have a unique key"):
        soup.create_stream(fresh("derived"), query=f"SELECT * FROM {trades}", unique=["sym"])
    with pytest.raises(InvalidSchema, match="a lateness needs a time column"):
        soup.create_stream(fresh("timeless"), "value INT", lateness="1 second")
    with pytest.raises(InvalidSchema, match="unknown column 'valu' in the unique key"):
        soup.create_stream(fresh("misspelt"), "value INT", unique=["valu"])


def test_unique_keys_and_lateness(soup: AnySoup, fresh: Names) -> None:
    name = fresh("auctions")
    soup.create_stream(name, "item INT, day DATE, ts TIMESTAMP", time="ts", unique=["item"], lateness="10 seconds")

    def auction(item: int | None, second: int) -> dict[str, Any]:
        return {"item": item, "day": date(2026, 1, 1), "ts": BASE + timedelta(seconds=second)}

    first = soup.push(name, [auction(1, 0), auction(1, 1), auction(None, 2), auction(None, 3), auction(2, 20)])
    assert (first.added, first.rejected) == (4, 1)
    second = soup.push(name, [auction(2, 21), auction(3, 10), auction(4, 9)])
    assert (second.added, second.rejected) == (1, 2)
    assert [each["reason"] for each in soup.rejected(name)] == [
        "there is a tuple with the unique key item = 1 already",
        "there is a tuple with the unique key item = 2 already",
        "ts = '2026-01-01T00:00:09+00:00' is more than 0:00:10 before the highest time seen",
    ]
    listed = next(stream for stream in soup.streams() if stream["name"] == name)
    assert (listed["unique"], listed["lateness_seconds"]) == (["item"], 10.0)
    assert (listed["closed"]["unique_keys"], listed["closed"]["highest_time"]) == (3, "2026-01-01T00:00:20+00:00")
    assert soup.status()["streams"][name]["closed"] == listed["closed"]


def test_what_is_closed_is_told_in_numbers(soup: AnySoup, trades: str) -> None:
    assert next(stream for stream in soup.streams() if stream["name"] == trades)["closed"] is None
    soup.push(trades, [tureen.Punctuation(qty=list(range(1000))), tureen.Punctuation(qty=tureen.Range(low=5000))])
    soup.punctuate(trades, {"sym": "A", "qty": -1})
    soup.punctuate(trades, {"sym": "A", "ts": tureen.Range(high=BASE)})
    assert next(stream for stream in soup.streams() if stream["name"] == trades)["closed"] == {
        "values": [{"columns": ["qty"], "count": 1000}, {"columns": ["sym", "qty"], "count": 1}],
        "ranges": ["qty >= 5000"],
        "patterns": ["sym = 'A' AND ts <= '2026-01-01T00:00:00+00:00'"],
        "unique_keys": None,
        "highest_time": None,
    }


STATEMENTS = {
    "sym = 'A'": [1, 2],
    "qty IN (1, 3)": [1, 3],
    "ts BETWEEN TIMESTAMP '2026-01-01 00:00:01' AND TIMESTAMP '2026-01-01 00:00:02'": [2, 3],
    "QTY > 1 AND qty <= 3 AND sym = 'A'": [2],
    "price >= 2.5": [2],
    "price >= 25e-1": [2],
    "price < -12345678901234567890123": [],
    "`qty` = -1": [],
}


@pytest.mark.parametrize(("condition", "closed"), STATEMENTS.items())
def test_statement(soup: AnySoup, trades: str, condition: str, closed: list[int]) -> None:
    outcome = soup.sql(f"PUNCTUATE {trades} WHERE {condition};")
    assert isinstance(outcome, dict)
    soup.wait(outcome["position"])
    assert soup.push(trades, rows(("A", 1.5, 1), ("A", 2.5, 2), ("B", 1.5, 3))).rejected == len(closed)
    assert [row["row"]["qty"] for row in soup.rejected(trades)] == closed


def test_statement_errors_have_a_location(soup: AnySoup, trades: str) -> None:
    for condition, message in {
        "sym LIKE 'A%'": "expected a comparison, got 'LIKE'",
        "sym = 'A' OR sym = 'B'": "OR is not allowed in a punctuation",
        "sym = NULL": "NULL cannot be punctuated",
        "qty = 1 AND qty = 2": "duplicate condition of column 'qty'",
        "quantity = 1": "unknown column 'quantity' in a punctuation",
        "": "expected the name of a column",
    }.items():
        with pytest.raises((SqlError, InvalidPunctuation)) as error:
            soup.sql(f"PUNCTUATE {trades} WHERE {condition}")
        assert error.value.message.startswith(message)
        assert error.value.location is not None


def test_create_statement(soup: AnySoup, fresh: Names) -> None:
    name = fresh("auctions")
    soup.sql(
        f"CREATE STREAM {name} (item INT, seller INT, ts TIMESTAMP) TIME ts UNIQUE (item, seller) LATENESS 1 MINUTE"
    )
    listed = next(stream for stream in soup.streams() if stream["name"] == name)
    assert (listed["unique"], listed["lateness_seconds"]) == (["item", "seller"], 60.0)


def test_client_with_write_scope_alone(served_pot: RunningServer, trades: str) -> None:
    with tureen.connect(served_pot.url, served_pot.tokens["write"]) as client:
        first, second = rows(("A", 1.0, 1), ("A", 1.0, 2))
        pushed = client.push(trades, [first, tureen.Punctuation(ts=tureen.Range(high=first["ts"])), second])
        assert (pushed.added, pushed.rejected) == (2, 0)
        assert client.push(trades, [first]).rejected == 1
        table = pa.Table.from_pylist([second])
        assert client.push(trades, table, punctuations=[tureen.Punctuation(sym="A")]).rejected == 0
        assert client.push(trades, table).rejected == 1


def test_http_requests(served_pot: RunningServer, trades: str) -> None:
    row = b'{"sym": "A", "qty": 1, "ts": "2026-01-01"}\n'
    ndjson = {"Content-Type": "application/x-ndjson"}
    lines = row + b'{"$punctuation": {"sym": "A"}}\n' + row
    with served_pot.client("admin") as http:
        path = f"/v1/streams/{trades}"
        # The pot's derived streams have none left to pass on.
        served_pot.soup.settle()
        punctuations = counted(PUNCTUATIONS, http.get("/metrics").text)
        receipt = http.post(f"{path}/rows", content=lines, headers=ndjson)
        assert receipt.status_code == 202
        assert {key: receipt.json()[key] for key in ("rows", "added", "rejected")} == {
            "rows": 2,
            "added": 1,
            "rejected": 1,
        }
        body = {"where": {"qty": {"low": 5, "low_open": True}}}
        first = http.post(f"{path}/punctuations", json=body, headers={"Idempotency-Key": "k"})
        again = http.post(f"{path}/punctuations", json=body, headers={"Idempotency-Key": "k"})
        assert (first.status_code, list(first.json())) == (202, ["position"])
        assert again.json()["position"][-15:] == first.json()["position"][-15:]
        assert http.get(path).json()["closed"]["ranges"] == ["qty >= 6"]
        wrong = http.post(f"{path}/punctuations", json={"where": {"sym": 3}})
        assert (wrong.status_code, wrong.json()["error"]["code"]) == (400, "invalid_punctuation")
        assert http.post("/v1/sql", json={"sql": f"PUNCTUATE {trades} WHERE qty = 3"}).status_code == 200
        assert counted(PUNCTUATIONS, http.get("/metrics").text) == punctuations + 3, (
            "repeated and wrong ones do not count"
        )
        before = counted(REJECTED, http.get("/metrics").text)
        for _ in range(2):
            again = http.post(f"{path}/rows", content=row, headers={**ndjson, "Idempotency-Key": "rejected"})
            assert (again.json()["added"], again.json()["rejected"]) == (0, 1)
        assert counted(REJECTED, http.get("/metrics").text) == before + 1


def counted(counter: str, metrics: str) -> float:
    """The value of a server's counter."""
    return next(float(line.split()[1]) for line in metrics.splitlines() if line.startswith(f"{counter} "))


def shown(changes: Iterable[Change]) -> list[Any]:
    return [change.row if change.punctuation is None else change.punctuation for change in changes]


def test_changes_with_punctuations(soup: AnySoup, trades: str) -> None:
    query = soup.register(f"SELECT sym, qty AS n, price, ts FROM {trades} WHERE qty > 1")
    first, second, third = rows(("A", 1.5, 2), ("A", 1.0, 1), ("B", 2.0, 3))
    since = query.invoke().position
    closing = [
        tureen.Punctuation(sym="A"),
        tureen.Punctuation(qty=[7, 8], price=tureen.Range(low=1.5, high_open=False)),
        tureen.Punctuation(ts=tureen.Range(high=BASE)),
    ]
    soup.push(trades, [first, second, *closing, third])
    assert shown(query.changes(since=since, timeout=0)) == [renamed(first), renamed(third)]
    expected = [
        renamed(first),
        closing[0],
        tureen.Punctuation(n=[7, 8], price=tureen.Range(low=1.5)),
        closing[2],
        renamed(third),
    ]
    batch = list(query.changes(since=since, timeout=0, punctuations=True))
    assert shown(batch) == expected
    assert [change.kind for change in batch].count("punctuation") == 3
    for index, change in enumerate(batch):
        assert shown(query.changes(since=change.position, timeout=0, punctuations=True)) == expected[index + 1 :]


def renamed(row: dict[str, Any]) -> dict[str, Any]:
    return {"sym": row["sym"], "n": row["qty"], "price": row["price"], "ts": row["ts"]}


def test_a_punctuation_alone_wakes_a_follower(soup: AnySoup, trades: str) -> None:
    query = soup.register(f"SELECT sym FROM {trades} WHERE qty > 100")
    changes = query.changes(punctuations=True, timeout=20)
    soup.punctuate(trades, {"sym": "A"})
    assert next(changes).punctuation == tureen.Punctuation(sym="A")


def test_joins_and_derived_streams_pass_punctuations_on(soup: AnySoup, trades: str, fresh: Names) -> None:
    quotes, pairs = fresh("quotes"), fresh("pairs")
    soup.create_stream(quotes, "sym STRING, bid DOUBLE")
    soup.create_stream(pairs, query=f"SELECT t.sym, q.bid FROM {trades} t JOIN {quotes} q ON t.sym = q.sym")
    query = soup.register(f"SELECT sym, bid FROM {pairs}")
    follower = query.changes(since="0", punctuations=True, timeout=20)
    soup.push(trades, [*rows(("A", 1.0, 1)), tureen.Punctuation(sym="A")])
    soup.push(quotes, [{"sym": "A", "bid": 2.0}, tureen.Punctuation(sym=["A", "B"])])
    assert shown(islice(follower, 2)) == [{"sym": "A", "bid": 2.0}, tureen.Punctuation(sym="A")]
    assert soup.status()["streams"][pairs]["rejected"] == 0


def test_groups_and_templates_have_no_punctuations(soup: AnySoup, trades: str) -> None:
    query = soup.register(f"SELECT sym, count(*) AS n FROM {trades} GROUP BY sym")
    with pytest.raises(Unsupported, match="groups have no punctuations"):
        next(query.changes(punctuations=True, timeout=0), None)
    template = soup.register_many(f"SELECT sym FROM {trades} WHERE qty > :n", [{"n": 1}])
    with pytest.raises(Unsupported, match="template have no punctuations"):
        template.changes(punctuations=True)


def test_rows_that_are_the_last_with_their_key(soup: AnySoup, fresh: Names) -> None:
    name = fresh("offers")
    soup.sql(f"CREATE STREAM {name} (item INT, price DOUBLE, closed BOOLEAN) PUNCTUATE BY closed KEY (item)")
    (listed,) = [stream for stream in soup.streams() if stream["name"] == name]
    assert listed["punctuate"] == {"column": "closed", "key": ["item"]}
    query = soup.register(f"SELECT item, max(price) AS top FROM {name} GROUP BY item EMIT FINAL")
    offers = [(1, 5.0, False), (2, 6.0, None), (1, 7.0, True), (1, 8.0, False), (None, 9.0, True), (None, 1.0, False)]
    pushed = soup.push(name, [{"item": item, "price": price, "closed": closed} for item, price, closed in offers])
    assert (pushed.added, pushed.rejected) == (5, 1)
    assert "closed by the punctuation item = 1" in soup.rejected(name)[0]["reason"]
    assert list(query.invoke()) == [{"item": 1, "top": 7.0}]
    assert soup.push(name, [{"item": 1, "price": 1.0, "closed": True}]).rejected == 1


def test_rows_that_carry_punctuations(soup: AnySoup, fresh: Names) -> None:
    name = fresh("offers")
    soup.sql(f"CREATE STREAM {name} (item INT, over STRING) PUNCTUATE BY over")
    (listed,) = [stream for stream in soup.streams() if stream["name"] == name]
    assert listed["punctuate"] == {"column": "over"}
    query = soup.register(f"SELECT item, count(*) AS n FROM {name} GROUP BY item EMIT FINAL")
    offers = [(1, None), (1, '{"item": [1, 2]}'), (2, None), (3, '{"thing": 3}'), (3, "soon"), (3, None)]
    pushed = soup.push(name, [{"item": item, "over": over} for item, over in offers])
    assert (pushed.added, pushed.rejected) == (3, 3)
    reasons = [each["reason"] for each in soup.rejected(name)]
    assert reasons[0].startswith("closed by the punctuation item = 2")
    assert reasons[1:] == [
        "the pattern in column 'over' is not valid: unknown column 'thing' in a punctuation",
        "the pattern in column 'over' is not JSON",
    ]
    assert list(query.invoke()) == [{"item": 1, "n": 2}]


def test_rules_of_last_rows_are_checked(soup: AnySoup, fresh: Names) -> None:
    columns = "item INT, closed BOOLEAN, over STRING"
    for arguments, message in (
        ({"punctuate": "closed"}, "punctuate and key belong together"),
        ({"key": ["item"]}, "punctuate and key belong together"),
        ({"punctuate": "clsed", "key": ["item"]}, "unknown column 'clsed' in punctuate"),
        ({"punctuate": "item", "key": ["item"]}, "column 'item' of punctuate must be BOOLEAN or STRING, got INT"),
        ({"punctuate": "over", "key": ["item"]}, "column 'over' of punctuate has whole patterns, and no key"),
        ({"punctuate": "closed", "key": ["itm"]}, "unknown column 'itm' in the key"),
        ({"punctuate": "closed", "key": ["closed"]}, "column 'closed' of punctuate cannot be part of the key"),
    ):
        with pytest.raises(InvalidSchema, match=message):
            soup.create_stream(fresh("offers"), columns, **arguments)
    with pytest.raises(InvalidSchema, match="punctuate and key belong together"):
        soup.sql(f"CREATE STREAM {fresh('offers')} ({columns}) PUNCTUATE BY closed")
