"""Streams and pushes, opened and connected."""

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


def test_made_listed_and_dropped(soup: AnySoup, fresh: Names) -> None:
    name = fresh("made")
    soup.create_stream(name, "n INT, ts TIMESTAMP", time="ts", retain="1 day")
    found = next(one for one in soup.streams() if one["name"] == name)
    assert found == {
        "name": name,
        "schema": "`n` INT, `ts` TIMESTAMP",
        "time": "ts",
        "clock": "wall",
        "retain_seconds": 86400.0,
        "source": None,
        "error": None,
    }
    with pytest.raises(DuplicateName):
        soup.create_stream(name.upper(), "n INT")
    soup.drop_stream(name)
    assert name not in [one["name"] for one in soup.streams()]
    with pytest.raises(UnknownStream):
        soup.drop_stream(name)


def test_made_from_a_schema_with_a_source_and_a_clock(soup: AnySoup, fresh: Names) -> None:
    name = fresh("ticks")
    source = {"format": "rate", "options": {"rowsPerSecond": "1"}}
    soup.create_stream(
        name, Schema.parse("value BIGINT, timestamp TIMESTAMP", "timestamp"), clock="stream", source=source
    )
    found = next(one for one in soup.streams() if one["name"] == name)
    assert (found["time"], found["clock"], found["source"]) == ("timestamp", "stream", source)
    with pytest.raises(TureenError, match="fed by its source"):
        soup.push(name, [{"value": 1, "timestamp": BASE}])
    soup.drop_stream(name)


@pytest.mark.parametrize(
    ("schema", "time", "says"),
    [("n NOSUCH", None, "NOSUCH"), ("n INT", "ts", "ts"), ("n INT, N STRING", None, "n")],
)
def test_what_cannot_be_made(soup: AnySoup, fresh: Names, schema: str, time: str | None, says: str) -> None:
    with pytest.raises(InvalidSchema, match=f"(?i){says}"):
        soup.create_stream(fresh("bad"), schema, time=time)


@pytest.mark.parametrize(
    "shape",
    [
        list,
        tuple,
        iter,
        pa.Table.from_pylist,
        lambda given: pa.RecordBatch.from_pylist(given),
        pd.DataFrame,
        pl.DataFrame,
    ],
    ids=["list", "tuple", "iterator", "table", "batch", "pandas", "polars"],
)
def test_rows_of_every_shape(soup: AnySoup, trades: str, shape: Callable[[Any], Any]) -> None:
    at = soup.push(trades, shape(rows(("A", 1.5, 1), ("B", 2.5, 2))))
    query = soup.register(f"SELECT sym, price, qty FROM {trades}")
    assert query.invoke(wait_for=at).table.to_pylist() == [
        {"sym": "A", "price": 1.5, "qty": 1},
        {"sym": "B", "price": 2.5, "qty": 2},
    ]


def test_values_of_every_type_come_back(soup: AnySoup, fresh: Names) -> None:
    name = fresh("typed")
    soup.create_stream(
        name, "a BOOLEAN, b INT, c BIGINT, d FLOAT, e DOUBLE, f DECIMAL(20, 3), g STRING, h DATE, i TIMESTAMP"
    )
    given = {
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
    at = soup.push(name, [given, dict.fromkeys(given)])
    answer = query.invoke(wait_for=at)
    assert answer.table.to_pylist() == [given, dict.fromkeys(given)]
    assert [change.row for change in query.changes(since=since, timeout=0)] == answer.table.to_pylist()


def test_all_rows_or_none(soup: AnySoup, trades: str) -> None:
    good = rows(("A", 1.0, 1))
    with pytest.raises(InvalidRows) as error:
        soup.push(trades, [*good, {**good[0], "qty": "many"}])
    assert "qty" in str(error.value)
    with pytest.raises(InvalidRows) as error:
        soup.push(trades, [{**good[0], "prize": 1}])
    assert error.value.hint == "did you mean 'price'?"
    for odd in ({"sym": "A"}, "text", 5):
        with pytest.raises(InvalidRows):
            soup.push(trades, odd)
    with pytest.raises(UnknownStream):
        soup.push("nowhere", good)
    at = soup.push(trades, good)
    assert len(soup.register(f"SELECT * FROM {trades}").invoke(wait_for=at)) == 1


def test_a_key_makes_a_push_repeatable(soup: AnySoup, trades: str) -> None:
    first = soup.push(trades, rows(("A", 1.0, 1)), key="k/1")
    again = soup.push(trades, rows(("A", 1.0, 1)), key="k/1")
    with pytest.raises(KeyConflict):
        soup.push(trades, rows(("A", 2.0, 1)), key="k/1")
    query = soup.register(f"SELECT * FROM {trades}")
    soup.wait([first, again])
    assert len(query.invoke()) == 1


def test_pushes_without_a_key_are_all_kept(soup: AnySoup, trades: str) -> None:
    soup.push(trades, rows(("A", 1.0, 1)))
    at = soup.push(trades, rows(("A", 1.0, 1)))
    assert len(soup.register(f"SELECT * FROM {trades}").invoke(wait_for=at)) == 2
    assert soup.push(trades, []) >= at


def test_a_stream_that_was_made_again_with_other_columns(soup: AnySoup, fresh: Names) -> None:
    name = fresh("again")
    soup.create_stream(name, "n INT")
    soup.push(name, [{"n": 1}])
    soup.sql(f"DROP STREAM {name}")
    soup.create_stream(name, "text STRING")
    at = soup.push(name, [{"text": "x"}])
    assert soup.register(f"SELECT text FROM {name}").invoke(wait_for=at).table.to_pylist() == [{"text": "x"}]


def test_nothing_was_rejected(soup: AnySoup, trades: str) -> None:
    assert soup.rejected(trades) == []
    with pytest.raises(UnknownStream):
        soup.rejected("nowhere")
