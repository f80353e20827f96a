"""Streams and pushes, embedded and through a client."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tests.behaviour.conftest import BASE, AnySoup, rows
from tureen.errors import DuplicateName, InvalidRows, InvalidSchema, KeyConflict, TureenError, UnknownStream
from tureen.schema import Schema

Names = Callable[[str], str]


def test_create_list_and_drop(soup: AnySoup, fresh: Names) -> None:
    name = fresh("created")
    soup.create_stream(name, "n INT, ts TIMESTAMP", time="ts", retain="1 day")
    listed = next(stream for stream in soup.streams() if stream["name"] == name)
    assert listed == {
        "name": name,
        "schema": "`n` INT, `ts` TIMESTAMP",
        "time": "ts",
        "clock": "wall",
        "home": None,
        "retain_seconds": 86400.0,
        "retain_needed": False,
        "freed_before": None,
        "item": None,
        "source": None,
        "query": None,
        "unique": None,
        "lateness_seconds": None,
        "punctuate": None,
        "closed": None,
        "error": None,
    }
    with pytest.raises(DuplicateName):
        soup.create_stream(name.upper(), "n INT")
    soup.drop_stream(name)
    assert name not in [stream["name"] for stream in soup.streams()]
    with pytest.raises(UnknownStream):
        soup.drop_stream(name)


def test_create_a_stream_that_keeps_what_is_needed(soup: AnySoup, fresh: Names) -> None:
    name, stated, derived = fresh("needed"), fresh("stated"), fresh("derived")
    soup.create_stream(name, "n INT, ts TIMESTAMP", time="ts", retain="needed")
    soup.sql(f"CREATE STREAM {stated} (n INT, ts TIMESTAMP) TIME ts RETAIN NEEDED CLOCK stream")
    soup.sql(f"CREATE STREAM {derived} RETAIN NEEDED AS SELECT n, ts FROM {name}")
    listed = {stream["name"]: stream for stream in soup.streams()}
    for each in (name, stated, derived):
        assert (listed[each]["retain_needed"], listed[each]["retain_seconds"]) == (True, None)
    soup.register(f"SELECT n FROM {name} BEGIN NOW - 90 END NOW")
    expected = [{"by": "windows from NOW - 0:01:30", "queries": 1, "runs": None}]
    assert soup.status()["streams"][name]["needed"] == expected
    for wrong in ("needed 1 day", "need", ""):
        with pytest.raises(TureenError):
            soup.create_stream(fresh("wrong"), "n INT", retain=wrong)
    for each in (derived, stated, name):
        soup.drop_stream(each)


def test_create_with_a_source_and_a_clock(soup: AnySoup, fresh: Names) -> None:
    name = fresh("ticks")
    source = {"format": "rate", "options": {"rowsPerSecond": "1"}}
    soup.create_stream(
        name, Schema.parse("value BIGINT, timestamp TIMESTAMP", "timestamp"), clock="stream", source=source
    )
    listed = next(stream for stream in soup.streams() if stream["name"] == name)
    assert (listed["time"], listed["clock"], listed["source"]) == ("timestamp", "stream", source)
    with pytest.raises(TureenError, match="fed by its source"):
        soup.push(name, [{"value": 1, "timestamp": BASE}])
    soup.drop_stream(name)


@pytest.mark.parametrize(
    ("schema", "time", "message"),
    [("n NOSUCH", None, "NOSUCH"), ("n INT", "ts", "ts"), ("n INT, N STRING", None, "n")],
)
def test_invalid_schemas(soup: AnySoup, fresh: Names, schema: str, time: str | None, message: str) -> None:
    with pytest.raises(InvalidSchema, match=f"(?i){message}"):
        soup.create_stream(fresh("bad"), schema, time=time)


@pytest.mark.parametrize(
    "container",
    [
        list,
        tuple,
        iter,
        pa.Table.from_pylist,
        lambda rows: pa.RecordBatch.from_pylist(rows),
        pd.DataFrame,
        pl.DataFrame,
    ],
    ids=["list", "tuple", "iterator", "table", "batch", "pandas", "polars"],
)
def test_rows_in_every_container(soup: AnySoup, trades: str, container: Callable[[Any], Any]) -> None:
    pushed = soup.push(trades, container(rows(("A", 1.5, 1), ("B", 2.5, 2))))
    query = soup.register(f"SELECT sym, price, qty FROM {trades}")
    assert query.invoke(wait_for=pushed).table.to_pylist() == [
        {"sym": "A", "price": 1.5, "qty": 1},
        {"sym": "B", "price": 2.5, "qty": 2},
    ]


def test_values_of_every_type_round_trip(soup: AnySoup, fresh: Names) -> None:
    name = fresh("typed")
    soup.create_stream(
        name, "a BOOLEAN, b INT, c BIGINT, d FLOAT, e DOUBLE, f DECIMAL(20, 3), g STRING, h DATE, i TIMESTAMP"
    )
    row = {
        "a": True,
        "b": -(2**31),
        "c": 2**63 - 1,
        "d": 0.5,
        "e": float("inf"),
        "f": Decimal("12345678901234567.125"),
        "g": 'naïve, "quoted"\n \u2028 ok',
        "h": date(2026, 1, 31),
        "i": datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC),
    }
    query = soup.register(f"SELECT * FROM {name}")
    since = query.invoke().position
    pushed = soup.push(name, [row, dict.fromkeys(row)])
    answer = query.invoke(wait_for=pushed)
    assert answer.table.to_pylist() == [row, dict.fromkeys(row)]
    assert [change.row for change in query.changes(since=since, timeout=0)] == answer.table.to_pylist()


def test_invalid_rows_reject_the_push(soup: AnySoup, trades: str) -> None:
    valid = rows(("A", 1.0, 1))
    with pytest.raises(InvalidRows) as error:
        soup.push(trades, [*valid, {**valid[0], "qty": "many"}])
    assert "qty" in str(error.value)
    with pytest.raises(InvalidRows) as error:
        soup.push(trades, [{**valid[0], "prize": 1}])
    assert error.value.hint == "did you mean 'price'?"
    for not_rows in ({"sym": "A"}, "text", 5):
        with pytest.raises(InvalidRows):
            soup.push(trades, not_rows)
    with pytest.raises(UnknownStream):
        soup.push("nowhere", valid)
    pushed = soup.push(trades, valid)
    assert len(soup.register(f"SELECT * FROM {trades}").invoke(wait_for=pushed)) == 1


def test_push_with_a_key_is_idempotent(soup: AnySoup, trades: str) -> None:
    first = soup.push(trades, rows(("A", 1.0, 1)), key="k/1")
    again = soup.push(trades, rows(("A", 1.0, 1)), key="k/1")
    with pytest.raises(KeyConflict):
        soup.push(trades, rows(("A", 2.0, 1)), key="k/1")
    query = soup.register(f"SELECT * FROM {trades}")
    soup.wait([first, again])
    assert len(query.invoke()) == 1


def test_pushes_without_a_key_are_not_deduplicated(soup: AnySoup, trades: str) -> None:
    soup.push(trades, rows(("A", 1.0, 1)))
    pushed = soup.push(trades, rows(("A", 1.0, 1)))
    assert len(soup.register(f"SELECT * FROM {trades}").invoke(wait_for=pushed)) == 2
    assert soup.push(trades, []) >= pushed


def test_recreate_with_other_columns(soup: AnySoup, fresh: Names) -> None:
    name = fresh("recreated")
    soup.create_stream(name, "n INT")
    soup.push(name, [{"n": 1}])
    soup.sql(f"DROP STREAM {name}")
    soup.create_stream(name, "text STRING")
    pushed = soup.push(name, [{"text": "x"}])
    assert soup.register(f"SELECT text FROM {name}").invoke(wait_for=pushed).table.to_pylist() == [{"text": "x"}]


def test_rejected_rows(soup: AnySoup, trades: str) -> None:
    assert soup.rejected(trades) == []
    with pytest.raises(UnknownStream):
        soup.rejected("nowhere")
