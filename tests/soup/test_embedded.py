"""The embedded engine as users see it: open, create, push, register, invoke, reopen."""

from __future__ import annotations

import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sqlalchemy import update

import tureen
from tureen import errors
from tureen.errors import QueryFailed
from tureen.position import parse_position
from tureen.pot.catalog import Catalog
from tureen.pot.catalog_tables import meta

SCHEMA = "sym STRING, price DOUBLE, qty INT, ts TIMESTAMP"


def trade(sym: str, price: float, qty: int = 1, ago: float = 1.0) -> dict[str, Any]:
    return {"sym": sym, "price": price, "qty": qty, "ts": datetime.now(UTC) - timedelta(seconds=ago)}


def test_a_query_sees_rows_from_before_and_after_it(soup: tureen.Soup) -> None:
    soup.create_stream("trades", SCHEMA, time="ts", retain="1 day")
    first = soup.push("trades", [trade("A", 150), trade("A", 50), trade("B", 101, qty=9)])
    sql = "SELECT sym, price FROM trades WHERE price > 100 AND qty < 5 BEGIN NOW - INTERVAL '10' MINUTE END NOW"
    query = soup.register(sql, name="big")
    assert query.invoke(wait_for=first).table.to_pylist() == [{"sym": "A", "price": 150.0}]
    second = soup.push("trades", [trade("C", 200, ago=0)])
    assert second > first
    answer = query.invoke(wait_for=second)
    assert [row["sym"] for row in answer] == ["A", "C"]
    assert len(answer) == 2
    assert answer.position > second
    assert answer.complete
    assert answer.window.begin is not None
    assert answer.window.end - answer.window.begin == timedelta(minutes=10)  # type: ignore[operator]
    assert list(answer.to_pandas()["sym"]) == ["A", "C"]
    assert query.invoke(wait_for=answer.position).table.equals(answer.table)
    assert soup.query("BIG").id == query.id == soup.query(query.id).id
    assert "big" in [query_info.name for query_info in soup.queries()]
    query.unregister()
    with pytest.raises(errors.UnknownQuery):
        soup.query("big")
    with pytest.raises(errors.UnknownQuery):
        query.invoke()
    with pytest.raises(errors.UnknownQuery):
        query.unregister()


def test_now_moves_the_window(soup: tureen.Soup) -> None:
    soup.create_stream("past", "a INT, ts TIMESTAMP", time="ts")
    start = datetime(2026, 1, 1, tzinfo=UTC)
    at = soup.push("past", [{"a": n, "ts": start + timedelta(minutes=n)} for n in range(10)])
    query = soup.register("SELECT a FROM past BEGIN NOW - 2 MINUTES END NOW")
    assert query.invoke(wait_for=at).table.num_rows == 0
    answer = query.invoke(now=start + timedelta(minutes=5))
    assert [row["a"] for row in answer] == [3, 4, 5]


def test_a_stream_clock_is_the_highest_time_seen(soup: tureen.Soup) -> None:
    soup.create_stream("replay", "a INT, ts TIMESTAMP", time="ts", clock="stream")
    start = datetime(2020, 1, 1, tzinfo=UTC)
    at = soup.push("replay", [{"a": n, "ts": start + timedelta(minutes=n)} for n in range(10)])
    query = soup.register("SELECT a FROM replay BEGIN NOW - 2 MINUTES END NOW")
    assert [row["a"] for row in query.invoke(wait_for=at)] == [7, 8, 9]


def test_a_stream_without_time_column_uses_arrival_time(soup: tureen.Soup) -> None:
    soup.create_stream("arrivals", "a INT")
    query = soup.register("SELECT * FROM arrivals BEGIN NOW - 1 MINUTE END NOW")
    before = datetime.now(UTC)
    at = soup.push("arrivals", pa.table({"a": pa.array([1, 2], pa.int32())}))
    assert query.invoke(wait_for=at).table.to_pydict() == {"a": [1, 2]}
    assert query.invoke(now=before - timedelta(minutes=5)).table.num_rows == 0


def test_a_large_push_is_indexed(soup: tureen.Soup) -> None:
    soup.create_stream("large", "a BIGINT")
    eager = soup.register("SELECT a FROM large WHERE a < 10", materialize=True)
    at = soup.push("large", pa.table({"a": pa.array(range(200_000), pa.int64())}))
    assert [row["a"] for row in eager.invoke(wait_for=at)] == list(range(10))
    late = soup.register("SELECT a FROM large WHERE a BETWEEN 5 AND 14", materialize=True)
    lazy = soup.register("SELECT a FROM large WHERE a IN (1, 199999)", materialize=False)
    assert [row["a"] for row in late.invoke()] == list(range(5, 15))
    assert [row["a"] for row in lazy.invoke()] == [1, 199_999]
    soup.settle()
    assert late.explain()["tuples_by_path"]["published"] == 200_000
    assert [row["a"] for row in late.invoke()] == list(range(5, 15))
    status = soup.status()["streams"]["large"]
    assert status["rows"] == 200_000
    assert status["runs"] >= 1
    assert status["debts"] == 0
    assert status["lag_bytes"] == 0


def test_a_push_with_a_key_is_idempotent(soup: tureen.Soup) -> None:
    soup.create_stream("keyed", "a INT")
    query = soup.register("SELECT a FROM keyed")
    first = soup.push("keyed", [{"a": 1}], key="client-7/42")
    again = soup.push("keyed", [{"a": 1}], key="client-7/42")
    assert (first.added, again.added) == (1, 0)
    ends = [parse_position(position).end for position in (first, again)]  # type: ignore[union-attr]
    assert ends[0] == ends[1]
    with pytest.raises(errors.KeyConflict):
        soup.push("keyed", [{"a": 2}], key="client-7/42")
    last = soup.push("keyed", [{"a": 3}])
    assert [row["a"] for row in query.invoke(wait_for=last)] == [1, 3]


def test_concurrent_registrations(soup: tureen.Soup) -> None:
    soup.create_stream("crowd", "a INT")
    handles: list[tureen.StandingQuery] = []
    threads = [
        threading.Thread(target=lambda n=n: handles.append(soup.register(f"SELECT a FROM crowd WHERE a = {n}")))
        for n in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    at = soup.push("crowd", [{"a": n} for n in range(16)])
    soup.wait(at)
    assert sorted(row["a"] for handle in handles for row in handle.invoke()) == list(range(16))


def test_equal_queries_share_a_clause(soup: tureen.Soup) -> None:
    soup.create_stream("shared", "a INT, b INT")
    before = soup.status()["clauses"]
    soup.register("SELECT a FROM shared WHERE a > 3 AND b = 2")
    soup.register("SELECT * FROM shared WHERE b = 2 AND 3 < a BEGIN NOW - 10 END NOW", name="other")
    assert soup.status()["clauses"] == before + 1


def test_dropping_a_stream_drops_its_queries(soup: tureen.Soup) -> None:
    soup.create_stream("doomed", "a INT")
    query = soup.register("SELECT a FROM doomed", name="orphan")
    at = soup.push("doomed", [{"a": 1}])
    soup.drop_stream("DOOMED")
    with pytest.raises(errors.UnknownQuery):
        query.invoke()
    with pytest.raises(errors.UnknownStream, match="was dropped"):
        soup.wait(at)
    soup.create_stream("doomed", "b STRING")
    fresh = soup.register("SELECT b FROM doomed", name="orphan")
    at = soup.push("doomed", [{"b": "x"}])
    assert fresh.invoke(wait_for=at).table.to_pydict() == {"b": ["x"]}


def bad_inputs(soup: tureen.Soup) -> list[tuple[type[errors.TureenError], str, Any]]:
    return [
        (errors.UnknownStream, "did you mean 'known'", lambda: soup.push("knwon", [{"a": 1}])),
        (errors.UnknownStream, "did you mean 'known'", lambda: soup.register("SELECT a FROM knwon")),
        (errors.UnknownColumn, "line 1, column 8", lambda: soup.register("SELECT aa FROM known")),
        (errors.TypeMismatch, "line 1, column", lambda: soup.register("SELECT a FROM known WHERE a > 'x'")),
        (errors.SqlError, "line 1", lambda: soup.register("SELECT FROM WHERE")),
        (errors.SqlError, "the text contains no query", lambda: soup.register("")),
        (errors.DuplicateName, "taken|already", lambda: soup.create_stream("KNOWN", "a INT")),
        (errors.DuplicateName, "already", lambda: soup.register("SELECT a FROM known", name="TAKEN")),
        (errors.InvalidSchema, "unknown type 'INTT'", lambda: soup.create_stream("x", "a INTT")),
        (errors.InvalidSchema, "time column 'b'", lambda: soup.create_stream("x", "a INT", time="b")),
        (errors.InvalidSchema, "must be TIMESTAMP, got INT", lambda: soup.create_stream("x", "a INT", time="a")),
        (errors.TureenError, "soon", lambda: soup.create_stream("x", "a INT", retain="soon")),
        (errors.InvalidRows, "row 1", lambda: soup.push("known", [{"a": 1}, {"a": "x"}])),
        (errors.TureenError, "is not a position", lambda: soup.wait("soon")),
        (errors.TureenError, "fed by its source", lambda: soup.push("fed", [{"value": 1}])),
    ]


def test_bad_input_is_a_clear_error_and_changes_nothing(soup: tureen.Soup) -> None:
    soup.create_stream("known", "a INT")
    rate = {"format": "rate", "options": {"rowsPerSecond": 1}}
    soup.create_stream("fed", "value BIGINT, timestamp TIMESTAMP", time="timestamp", source=rate)
    query = soup.register("SELECT a FROM known", name="taken")
    streams, queries = soup.streams(), [info.id for info in soup.queries()]
    for kind, text, call in bad_inputs(soup):
        with pytest.raises(kind, match=text):
            call()
    assert soup.streams() == streams
    assert [info.id for info in soup.queries()] == queries
    at = soup.push("known", [{"a": 5}])
    assert query.invoke(wait_for=at).table.to_pydict() == {"a": [5]}
    soup.drop_stream("fed")


def test_wait_times_out(soup: tureen.Soup) -> None:
    with pytest.raises(errors.WaitTimeout):
        soup.wait("000000999999999", timeout=0.01)


def test_another_process_can_read_but_not_write(soup: tureen.Soup) -> None:
    soup.create_stream("fed_elsewhere", "a INT")
    query = soup.register("SELECT a FROM fed_elsewhere", name="seen_elsewhere")
    at = soup.push("fed_elsewhere", [{"a": 1}, {"a": 2}])
    query.invoke(wait_for=at)
    code = """
import sys, tureen, subprocess
from tureen.errors import PotLocked
with tureen.open(sys.argv[1]) as soup:
    print(soup.query("seen_elsewhere").invoke(wait_for=sys.argv[2]).table.to_pydict())
    try:
        soup.push("fed_elsewhere", [{"a": 3}])
    except PotLocked as error:
        print("locked")
    print("pyspark" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code, str(soup.path), at], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["{'a': [1, 2]}", "locked", "False"]


def test_reopening_a_pot(tmp_path: Path, soup: tureen.Soup) -> None:
    assert soup
    with tureen.open(tmp_path / "pot") as first:
        first.create_stream("s", "a INT")
        at = first.push("s", [{"a": 1}])
        handle = first.register("SELECT a FROM s", name="all").id
        first.wait(at)
    with pytest.raises(errors.TureenError, match="closed"):
        first.push("s", [{"a": 2}])
    with tureen.open(tmp_path / "pot") as second:
        assert second.query(handle).invoke().table.to_pydict() == {"a": [1]}
        assert second.status()["engine"] == "none"
        at = second.push("s", [{"a": 2}])
        assert second.query("all").invoke(wait_for=at).table.to_pydict() == {"a": [1, 2]}
        second.settle()
        assert second.status()["engine"] == "running"
    with tureen.open(tmp_path / "pot", mode="read") as third, pytest.raises(errors.TureenError, match="reading only"):
        third.push("s", [{"a": 3}])
    catalog = Catalog(tmp_path / "pot")
    with catalog.write() as tx:
        tx.execute(update(meta).where(meta.c.key == "format").values(value="0"))
    catalog.close()
    with pytest.raises(errors.PotVersion):
        tureen.open(tmp_path / "pot")


def test_an_empty_directory_has_no_streams_and_queries(tmp_path: Path) -> None:
    with tureen.open(tmp_path / "none") as soup:
        assert soup.streams() == []
        assert soup.queries() == []
        assert soup.status()["queries"] == 0
        with pytest.raises(errors.UnknownQuery):
            soup.query("x")
    assert not (tmp_path / "none").exists()


def test_limits_of_joins(tmp_path: Path) -> None:
    """An answer that exceeds a limit fails; others go on."""
    with tureen.open(tmp_path / "pot", max_joined_rows=20, max_join_pairs=30) as soup:
        soup.create_stream("s", "a INT")
        soup.push("s", [{"a": number % 2} for number in range(6)])
        fine = soup.register("SELECT x.a FROM s x JOIN s y ON x.a = y.a")
        rows = soup.register("SELECT x.a FROM s x, s y WHERE x.a <= y.a")
        pairs = soup.register("SELECT x.a FROM s x, s y WHERE x.a + y.a = 7")
        with pytest.raises(QueryFailed, match="would have 27 rows, more than 20"):
            rows.invoke()
        with pytest.raises(QueryFailed, match="would examine 36 pairs of rows, more than 30"):
            pairs.invoke()
        assert len(fine.invoke()) == 18
    with pytest.raises(tureen.TureenError, match="max_joined_rows must be a positive integer, got 0"):
        tureen.open(tmp_path / "pot", max_joined_rows=0)
