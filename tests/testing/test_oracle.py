"""The oracle's streams, windows, order and retention, against expected answers by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from tureen.errors import DuplicateName, InvalidRows, InvalidSchema, UnknownQuery, UnknownStream
from tureen.predicate import Clause, Interval, Within
from tureen.query import Expression, Input, Output, Query
from tureen.schema import Type
from tureen.testing import Oracle, comparable
from tureen.window import At, Bound, Now, RowsBack, Window

SECOND = 1_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
X = Expression('"x"', Type.parse("INT"), ("x",), "x")


def moment(seconds: float) -> datetime:
    return EPOCH + timedelta(seconds=seconds)


def select_x(begin: Bound | None = None, end: Bound | None = None, clause: Clause = ()) -> Query:
    return Query("", (Input("s", clause, Window(begin, end)),), (Output("x", X),))


def oracle_with(*pairs: tuple[float, int], **options: Any) -> Oracle:
    """An oracle with a stream of (time in seconds, x), at wall clock 100 s."""
    oracle = Oracle(clock=lambda: 100 * SECOND)
    oracle.create_stream("s", "x INT, ts TIMESTAMP", time="ts", **options)
    oracle.push("s", [{"x": x, "ts": moment(seconds)} for seconds, x in pairs])
    return oracle


def answer(oracle: Oracle, query: Query, now: int | None = None) -> list[int]:
    return [row["x"] for row in oracle.register(query).invoke(now)]


def test_rows_are_ordered_by_time_and_arrival() -> None:
    oracle = oracle_with((3, 1), (1, 2), (3, 3), (2, 4))
    oracle.push("s", [{"x": 5, "ts": moment(1)}, {"x": 6, "ts": moment(0)}])
    assert answer(oracle, select_x()) == [6, 2, 5, 4, 1, 3]


@pytest.mark.parametrize(
    ("begin", "end", "now", "expected"),
    [
        (None, None, 3, [0, 1, 2, 3, 4, 5]),
        (Now(-2 * SECOND), Now(), 3, [1, 2, 3]),
        (Now(-2 * SECOND), Now(-1 * SECOND), 3, [1, 2]),
        (Now(-2 * SECOND + 1), Now(), 3, [2, 3]),
        (At(2 * SECOND), Now(), 4, [2, 3, 4]),
        (At(2 * SECOND), At(5 * SECOND), 3, [2, 3, 4, 5]),
        (At(4 * SECOND), At(2 * SECOND), 3, []),
        (RowsBack(2), Now(), 3, [2, 3]),
        (RowsBack(4), RowsBack(1), 4, [1, 2, 3]),
        (RowsBack(0), Now(), 3, []),
        (RowsBack(99), Now(), 3, [0, 1, 2, 3]),
        (None, RowsBack(2), 4, [0, 1, 2]),
        (At(1 * SECOND), RowsBack(2), 4, [1, 2]),
        (None, RowsBack(0), 4, [0, 1, 2, 3, 4]),
    ],
)
def test_windows(begin: Bound | None, end: Bound | None, now: int, expected: list[int]) -> None:
    oracle = oracle_with(*((x, x) for x in range(6)))
    assert answer(oracle, select_x(begin, end), now * SECOND) == expected


def test_rows_windows_count_before_where() -> None:
    oracle = oracle_with(*((x, x) for x in range(6)))
    small = (Within("x", (Interval(None, 3),)),)
    assert answer(oracle, select_x(RowsBack(3), Now(), small)) == [3]


def test_rows_windows_count_equal_times_by_arrival() -> None:
    oracle = oracle_with((1, 1), (1, 2), (1, 3), (0, 4))
    assert answer(oracle, select_x(RowsBack(2), Now())) == [2, 3]


def test_now_is_the_wall_clock_or_the_highest_time_seen() -> None:
    last = select_x(Now(-5 * SECOND), Now())
    pairs = [(50, 1), (94, 2), (96, 3), (101, 4)]
    assert answer(oracle_with(*pairs), last) == [3]
    assert answer(oracle_with(*pairs, clock="stream"), last) == [3, 4]
    assert answer(oracle_with(*pairs, clock="stream"), last, now=95 * SECOND) == [2]


@pytest.mark.parametrize(
    ("retain", "times", "expected"),
    [
        ("10 seconds", [9, 10, 20], [10, 20]),
        ("10 seconds", [89, 90, 500], [90, 500]),
        ("1 minute", [0, 60], [0, 60]),
        (timedelta(seconds=1), [5, 4, 3], [4, 5]),
    ],
)
def test_retention_counts_from_the_lower_of_wall_clock_and_highest_time(
    retain: Any, times: list[int], expected: list[int]
) -> None:
    oracle = oracle_with(*((time, time) for time in times), retain=retain)
    assert answer(oracle, select_x()) == expected


def test_now_does_not_move_retention() -> None:
    oracle = oracle_with((1, 1), (20, 2), retain="10 seconds")
    assert answer(oracle, select_x(Now(-5 * SECOND), Now()), now=1 * SECOND) == []


def test_a_stream_without_time_column_uses_arrival_time() -> None:
    oracle = Oracle(clock=lambda: 7 * SECOND)
    oracle.create_stream("s", "x INT")
    oracle.push("s", [{"x": 1}, {"x": 2}])
    oracle.push("s", [{"x": 3}], at=3 * SECOND)
    assert answer(oracle, select_x()) == [3, 1, 2]
    assert answer(oracle, select_x(Now(-1), Now())) == [1, 2]


def test_queries_before_and_after_data_and_unregistering() -> None:
    oracle = oracle_with()
    before = oracle.register(select_x())
    oracle.push("s", pa.table({"x": pa.array([1], pa.int32()), "ts": [moment(1)]}))
    after = oracle.register(select_x())
    assert before.invoke() == after.invoke() == [{"x": 1}]
    before.unregister()
    with pytest.raises(UnknownQuery):
        before.invoke()
    with pytest.raises(UnknownQuery):
        before.unregister()
    assert after.invoke() == [{"x": 1}]


def test_a_push_is_atomic() -> None:
    oracle = oracle_with()
    for bad in ({"x": 2}, {"x": "2", "ts": moment(1)}, {"y": 2, "ts": moment(1)}):
        with pytest.raises(InvalidRows):
            oracle.push("s", [{"x": 1, "ts": moment(1)}, bad])
    oracle.push("s", [{"X": 3, "TS": moment(1)}, {"ts": moment(1)}])
    assert oracle.register(select_x()).invoke() == [{"x": 3}, {"x": None}]


def test_duplicate_and_unknown_names() -> None:
    oracle = oracle_with()
    with pytest.raises(DuplicateName):
        oracle.create_stream("S", "x INT")
    with pytest.raises(InvalidSchema):
        oracle.create_stream("t", "x INT", clock="moon")
    with pytest.raises(UnknownStream):
        oracle.push("t", [])


def test_sql_is_bound_to_the_stream() -> None:
    oracle = oracle_with((1, 1), (2, 2), (3, 3))
    handle = oracle.register("SELECT X AS y, ts FROM S WHERE x >= 2 BEGIN NOW - 98 END NOW")
    assert [row["y"] for row in handle.invoke()] == [2, 3]
    with pytest.raises(UnknownStream):
        oracle.register("SELECT * FROM nowhere")


def test_comparable() -> None:
    assert comparable([{"x": float("nan")}]) == comparable([{"x": float("nan")}])
    assert comparable([{"x": 0.0}]) != comparable([{"x": -0.0}])
    assert comparable([{"x": 1}]) != comparable([{"x": True}])
    assert comparable([{"x": 1, "y": 2}]) != comparable([{"y": 2, "x": 1}])
