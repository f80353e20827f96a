"""The oracle's groups, aggregates, steps and order, against answers worked out by hand."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from tureen.errors import QueryFailed
from tureen.testing import Oracle, comparable

SECOND = 1_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NAN = math.nan
"""Python takes one NaN for equal to itself where two are not, so some tests make another."""

Row = tuple[Any, ...]


def at(seconds: float) -> datetime:
    return EPOCH + timedelta(seconds=seconds)


def stream(columns: str, *rows: Row, **options: Any) -> Oracle:
    """Make an oracle at wall clock 100 s with one stream of those columns and a time: the last value, in seconds."""
    oracle = Oracle(clock=lambda: 100 * SECOND)
    oracle.create_stream("s", f"{columns}, ts TIMESTAMP", time="ts", **options)
    more(oracle, columns, *rows)
    return oracle


def more(oracle: Oracle, columns: str, *rows: Row) -> None:
    names = [part.split()[0] for part in columns.split(", ")]
    oracle.push("s", [{**dict(zip(names, row, strict=False)), "ts": at(row[-1])} for row in rows])


def answer(oracle: Oracle, sql: str, now: int | None = None) -> list[Row]:
    """The answer's rows as tuples; instants as seconds."""
    found = oracle.register(sql).invoke(None if now is None else now * SECOND)
    return [tuple(_seconds(value) for value in row.values()) for row in found]


def _seconds(value: Any) -> Any:
    return (value - EPOCH) / timedelta(seconds=1) if isinstance(value, datetime) else value


def look(rows: list[Row]) -> Any:
    """Rows in a form where NaN equals itself, and -0.0 is not 0.0."""
    return comparable([{str(number): value for number, value in enumerate(row)} for row in rows])


def numbers(*values: Any, type_: str = "INT") -> Oracle:
    """Make a stream of those x, one a second from 0 s."""
    return stream(f"x {type_}", *((value, second) for second, value in enumerate(values)))


# What is selected


def test_expressions_are_evaluated_on_each_row_and_named_by_their_text() -> None:
    oracle = stream("x INT, s STRING", (1, "a", 2), (None, "b", 1))
    found = oracle.register("SELECT x + 1, upper(s) AS big, ts + INTERVAL '1' SECOND AS later FROM s").invoke()
    assert found == [
        {"x + 1": None, "big": "B", "later": at(2)},
        {"x + 1": 2, "big": "A", "later": at(3)},
    ]
    assert found[0]["later"].tzinfo is not None


def test_only_rows_that_satisfy_the_condition_are_looked_at() -> None:
    oracle = stream("x INT", (0, 1), (4, 2), (0, 90))
    assert answer(oracle, "SELECT 8 / x FROM s WHERE x > 0") == [(2.0,)]
    assert answer(oracle, "SELECT 8 / x FROM s BEGIN NOW - 99 END NOW - 50 ROWS") == []
    for broken in ("SELECT 8 / x FROM s", "SELECT x FROM s ORDER BY 8 / x", "SELECT sum(8 / x) FROM s"):
        with pytest.raises(QueryFailed):
            answer(oracle, broken)
    for broken in ("SELECT count(*) FROM s GROUP BY 8 / x", "SELECT x FROM s GROUP BY x HAVING 8 / x > 1"):
        with pytest.raises(QueryFailed):
            answer(oracle, broken)


def test_what_having_takes_away_is_not_selected() -> None:
    oracle = stream("x INT", (0, 1), (4, 2))
    assert answer(oracle, "SELECT 8 / x FROM s GROUP BY x HAVING x > 0") == [(2.0,)]


def test_distinct_rows_come_where_they_came_first() -> None:
    oracle = numbers(3, 1, 3, None, 2, 1, None)
    assert answer(oracle, "SELECT DISTINCT x FROM s") == [(3,), (1,), (None,), (2,)]
    assert answer(oracle, "SELECT DISTINCT x FROM s LIMIT 2 OFFSET 1") == [(1,), (None,)]
    assert answer(oracle, "SELECT DISTINCT x FROM s ORDER BY x DESC") == [(3,), (2,), (1,), (None,)]
    assert answer(oracle, "SELECT DISTINCT count(*) FROM s GROUP BY x") == [(2,), (1,)]


def test_distinct_floats_are_as_keys_are() -> None:
    oracle = numbers(-0.0, NAN, 0.0, float("nan"), type_="DOUBLE")
    assert look(answer(oracle, "SELECT DISTINCT x FROM s")) == look([(0.0,), (NAN,)])


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("x", [None, -1.0, 2.0, NAN]),
        ("x DESC", [NAN, 2.0, -1.0, None]),
        ("x NULLS LAST", [-1.0, 2.0, NAN, None]),
        ("x DESC NULLS FIRST", [None, NAN, 2.0, -1.0]),
        ("x ASC NULLS FIRST", [None, -1.0, 2.0, NAN]),
    ],
)
def test_nulls_and_nan_have_their_place_in_the_order(order: str, expected: list[float | None]) -> None:
    oracle = numbers(2.0, None, NAN, -1.0, type_="DOUBLE")
    assert look(answer(oracle, f"SELECT x FROM s ORDER BY {order}")) == look([(value,) for value in expected])


def test_ties_stay_in_order_of_time_and_then_of_arrival() -> None:
    oracle = stream("x INT, y INT", (1, 1, 5), (0, 2, 3), (1, 3, 2), (0, 4, 3))
    assert answer(oracle, "SELECT y FROM s ORDER BY x DESC") == [(3,), (1,), (2,), (4,)]
    assert answer(oracle, "SELECT y FROM s ORDER BY x, y DESC") == [(4,), (2,), (3,), (1,)]


def test_offset_and_limit_cut_the_ordered_rows() -> None:
    oracle = numbers(*range(5))
    assert answer(oracle, "SELECT x FROM s ORDER BY x DESC LIMIT 2 OFFSET 1") == [(3,), (2,)]
    assert answer(oracle, "SELECT x FROM s OFFSET 3") == [(3,), (4,)]
    assert answer(oracle, "SELECT x FROM s LIMIT 0") == []
    assert answer(oracle, "SELECT x FROM s OFFSET 5") == []
    assert answer(oracle, "SELECT x FROM s LIMIT 9 OFFSET 99") == []


# Groups


def test_groups_come_in_order_of_their_keys() -> None:
    oracle = stream("a STRING, b INT", ("b", 2, 1), ("Z", 1, 2), ("é", 1, 3), (None, 1, 4), ("b", None, 5), ("b", 1, 6))
    expected = [(None, 1), ("Z", 1), ("b", None), ("b", 1), ("b", 2), ("é", 1)]
    assert answer(oracle, "SELECT a, b FROM s GROUP BY a, b") == expected
    turned = [("b", None), (None, 1), ("Z", 1), ("b", 1), ("é", 1), ("b", 2)]
    assert answer(oracle, "SELECT a, b FROM s GROUP BY b, a") == turned


def test_null_nan_and_both_zeros_are_keys() -> None:
    oracle = numbers(NAN, -0.0, None, 0.0, float("nan"), None, -1.0, type_="DOUBLE")
    found = answer(oracle, "SELECT x, count(*) FROM s GROUP BY x")
    assert look(found) == look([(None, 2), (-1.0, 1), (0.0, 2), (NAN, 2)])


def test_an_empty_window_has_one_row_only_without_keys_and_steps() -> None:
    oracle = numbers(1, 2)
    empty = "BEGIN NOW - 1 END NOW"
    asked = "count(*), count(x), sum(x), avg(x), min(x), stddev(x), first(x), max_by(x, ts), median(x)"
    assert answer(oracle, f"SELECT {asked} FROM s {empty}") == [(0, 0, *[None] * 7)]
    assert answer(oracle, f"SELECT count(*) FROM s GROUP BY x {empty}") == []
    assert answer(oracle, f"SELECT count(*) FROM s [TUMBLE 5 SECONDS EMIT PARTIAL] {empty}") == []
    assert answer(oracle, f"SELECT count(*) FROM s HAVING count(*) > 0 {empty}") == []
    assert answer(oracle, f"SELECT 7 AS seven FROM s GROUP BY x {empty}") == []


def test_groups_by_number_name_and_expression() -> None:
    oracle = numbers(1, 2, 3, 4, 5)
    for keys in ("1", "odd", "x % 2"):
        assert answer(oracle, f"SELECT x % 2 AS odd, sum(x) FROM s GROUP BY {keys}") == [(0, 6), (1, 9)]
    assert answer(oracle, "SELECT sum(x) AS t FROM s GROUP BY x % 2 HAVING t > 6") == [(9,)]
    assert answer(oracle, "SELECT sum(x) FROM s GROUP BY x % 2 ORDER BY x % 2 DESC") == [(9,), (6,)]
    assert answer(oracle, "SELECT sum(x) FROM s GROUP BY x % 2 HAVING max(x) > 99") == []
    assert answer(oracle, "SELECT x % 2 FROM s GROUP BY x % 2 HAVING CAST(NULL AS BOOLEAN)") == []


# Aggregates


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("count(*)", 6),
        ("count(x)", 5),
        ("count(x, y)", 3),
        ("count(DISTINCT x)", 3),
        ("count(DISTINCT x, y)", 3),
        ("approx_count_distinct(x)", 3),
        ("sum(x)", 11),
        ("sum(DISTINCT x)", 6),
        ("avg(x)", 2.2),
        ("avg(DISTINCT x)", 2.0),
        ("min(x)", 1),
        ("max(x)", 3),
        ("count_if(x = 3)", 2),
        ("count(*) FILTER (WHERE x > 1)", 4),
        ("sum(x) FILTER (WHERE x > 99)", None),
        ("count(x) FILTER (WHERE x > 99)", 0),
        ("bool_and(x > 0)", True),
        ("bool_or(x > 3)", False),
        ("every(x > 1)", False),
        ("first(x)", 3),
        ("last(x)", None),
        ("last(x) IGNORE NULLS", 2),
        ("first(y)", None),
        ("first(y) IGNORE NULLS", 5),
        ("first(y) FILTER (WHERE y > 5) IGNORE NULLS", 6),
        ("max_by(x, y)", 1),
        ("min_by(x, y)", 3),
        ("max_by(y, x)", None),
        ("percentile(x, 0.25)", 2.0),
        ("median(x)", 2.0),
        ("percentile(x, 0.9)", 3.0),
        ("percentile(x, 0.1)", 1.4),
        ("approx_percentile(x, 0.5)", 2),
        ("approx_percentile(x, 0.6)", 2),
        ("approx_percentile(x, 0.61)", 3),
        ("approx_percentile(x, 0)", 1),
        ("approx_percentile(x, 1)", 3),
        ("var_pop(x)", 0.56),
        ("var_samp(x)", 0.7),
        ("stddev_pop(x)", math.sqrt(0.56)),
        ("stddev(x)", math.sqrt(0.7)),
        ("sum(x) + count(*)", 17),
    ],
)
def test_aggregates(asked: str, expected: Any) -> None:
    oracle = stream("x INT, y INT", (3, None, 0), (3, 5, 1), (2, None, 2), (1, 6, 3), (2, 5, 4), (None, 5, 5))
    ((found,),) = answer(oracle, f"SELECT {asked} AS found FROM s")
    assert found == (pytest.approx(expected, rel=1e-14) if isinstance(expected, float) else expected)
    assert type(found) is type(expected)


def test_one_value_has_no_deviation_in_a_sample() -> None:
    oracle = numbers(3.0, None, type_="DOUBLE")
    asked = "stddev_samp(x), var_samp(x), stddev_pop(x), var_pop(x)"
    assert answer(oracle, f"SELECT {asked} FROM s") == [(None, None, 0.0, 0.0)]


def test_nan_and_infinity_go_through_sums() -> None:
    oracle = numbers(1.0, math.inf, type_="DOUBLE")
    assert answer(oracle, "SELECT sum(x), avg(x), max(x) FROM s") == [(math.inf, math.inf, math.inf)]
    assert look(answer(oracle, "SELECT var_pop(x), stddev(x) FROM s")) == look([(NAN, NAN)])
    oracle = numbers(math.inf, -math.inf, NAN, type_="DOUBLE")
    found = answer(oracle, "SELECT sum(x), avg(x), min(x), max(x), median(x) FROM s")
    assert look(found) == look([(NAN, NAN, -math.inf, NAN, math.inf)])
    oracle = numbers(-math.inf, 1.0, type_="DOUBLE")
    assert answer(oracle, "SELECT median(x), percentile(x, 1) FROM s") == [(-math.inf, 1.0)]


def test_distinct_values_are_told_apart_as_keys_are() -> None:
    oracle = numbers(0.0, -0.0, NAN, float("nan"), 1.0, None, type_="DOUBLE")
    asked = "count(DISTINCT x), approx_count_distinct(x), sum(DISTINCT x) FILTER (WHERE NOT isnan(x))"
    assert answer(oracle, f"SELECT {asked} FROM s") == [(3, 3, 1.0)]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["0.01", "0.02"], "0.015000"),
        (["0.01", "0.00", "0.00"], "0.003333"),
        (["0.02", "0.00", "0.00"], "0.006667"),
        (["-0.02", "0.00", "0.00"], "-0.006667"),
    ],
)
def test_decimals_are_averaged_to_four_digits_more(values: list[str], expected: str) -> None:
    oracle = numbers(*map(Decimal, values), type_="DECIMAL(10,2)")
    ((found,),) = answer(oracle, "SELECT avg(x) FROM s")
    assert str(found) == expected


@pytest.mark.parametrize("sign", [1, -1])
def test_averages_of_decimals_are_rounded_half_up(sign: int) -> None:
    # A hundredth in 32 parts is 0.0003125, which has one digit more than the type: 0.000313, not the even 0.000312.
    values = [Decimal("0.01") * sign, *[Decimal(0)] * 31]
    ((found,),) = answer(numbers(*values, type_="DECIMAL(10,2)"), "SELECT avg(x) FROM s")
    assert found == Decimal("0.000313") * sign


def test_sums_that_do_not_fit_raise() -> None:
    oracle = numbers(2**63 - 1, 1, -1, type_="BIGINT")
    assert answer(oracle, "SELECT sum(x) FROM s") == [(2**63 - 1,)]
    with pytest.raises(QueryFailed):
        answer(oracle, "SELECT sum(x) FROM s WHERE x > 0")
    assert answer(oracle, "SELECT x, sum(x) FROM s WHERE x > 0 GROUP BY x") == [(1, 1), (2**63 - 1, 2**63 - 1)]
    assert answer(numbers(2**31 - 1, 2**31 - 1), "SELECT sum(x) FROM s") == [(2**32 - 2,)]
    largest = Decimal("9" * 38)
    oracle = numbers(largest, Decimal(1), type_="DECIMAL(38,0)")
    with pytest.raises(QueryFailed):
        answer(oracle, "SELECT sum(x) FROM s")
    with pytest.raises(QueryFailed):
        answer(oracle, "SELECT avg(x) FROM s")
    assert answer(oracle, "SELECT max(x) FROM s") == [(largest,)]


def test_first_last_and_ties_go_by_time_and_then_arrival() -> None:
    oracle = stream("x STRING, y INT", ("c", 7, 3), ("a", 7, 1), ("b", 0, 2), ("d", 0, 3), ("z", None, 0))
    assert answer(oracle, "SELECT first(x), last(x) FROM s") == [("z", "d")]
    assert answer(oracle, "SELECT max_by(x, y), min_by(x, y) FROM s") == [("a", "b")]
    more(oracle, "x STRING, y INT", ("e", 7, 0.5), ("f", 0, 2))
    assert answer(oracle, "SELECT max_by(x, y), min_by(x, y) FROM s") == [("e", "b")]
    assert answer(oracle, "SELECT max_by(x, y) FROM s WHERE y IS NULL") == [(None,)]


def test_every_type_has_a_least_and_a_greatest() -> None:
    columns = "b BOOLEAN, s STRING, d DATE, m DECIMAL(4,1), f FLOAT"
    oracle = stream(
        columns,
        (True, "é", date(2026, 1, 2), Decimal("-1.5"), 0.5, 1),
        (False, "z", date(1969, 1, 1), Decimal("1.5"), NAN, 2),
        (None, None, None, None, None, 3),
    )
    least = (False, "z", date(1969, 1, 1), Decimal("-1.5"), 0.5, 1.0)
    assert answer(oracle, "SELECT min(b), min(s), min(d), min(m), min(f), min(ts) FROM s") == [least]
    greatest = (True, "é", date(2026, 1, 2), Decimal("1.5"), NAN, 3.0)
    assert look(answer(oracle, "SELECT max(b), max(s), max(d), max(m), max(f), max(ts) FROM s")) == look([greatest])


# Steps of time


def test_steps_that_stand_side_by_side() -> None:
    oracle = numbers(*range(10))
    asked = "SELECT window_start, window_end, sum(x) FROM s"
    expected = [(0.0, 4.0, 6), (4.0, 8.0, 22), (8.0, 12.0, 17)]
    assert answer(oracle, f"{asked} [TUMBLE 4 SECONDS]") == expected
    assert answer(oracle, f"{asked} [RANGE 4 SECONDS SLIDE 4 SECONDS]") == expected
    assert answer(oracle, f"{asked} GROUP BY TUMBLE(ts, INTERVAL '4' SECOND)") == expected
    assert answer(oracle, f"{asked} GROUP BY window(ts, '4 seconds')") == expected


def test_a_step_is_given_when_it_is_over() -> None:
    oracle = numbers(*range(10))
    asked = "SELECT window_start, count(*) FROM s [TUMBLE 4 SECONDS]"
    assert answer(oracle, asked, now=7) == [(0.0, 4)]
    assert answer(oracle, asked, now=8) == [(0.0, 4), (4.0, 4)]
    # A tuple from the future belongs to a partial step, where no window ends before it.
    partial = "SELECT window_start, count(*) FROM s [TUMBLE 4 SECONDS EMIT PARTIAL]"
    assert answer(oracle, partial, now=7) == [(0.0, 4), (4.0, 4), (8.0, 2)]
    assert answer(oracle, f"{partial} END NOW", now=7) == [(0.0, 4), (4.0, 4)]


@pytest.mark.parametrize(
    ("window", "whole", "partial"),
    [
        ("BEGIN TIMESTAMP '1970-01-01 00:00:04'", [4, 8, 12], [4, 8, 12]),
        ("BEGIN TIMESTAMP '1970-01-01 00:00:04.000001'", [8, 12], [4, 8, 12]),
        ("END TIMESTAMP '1970-01-01 00:00:11.999999'", [0, 4, 8], [0, 4, 8]),
        ("END TIMESTAMP '1970-01-01 00:00:11.999998'", [0, 4], [0, 4, 8]),
        ("END TIMESTAMP '1970-01-01 00:00:12'", [0, 4, 8], [0, 4, 8, 12]),
        ("BEGIN NOW - 13 END NOW", [4, 8, 12], [0, 4, 8, 12]),
        ("BEGIN NOW - 12 END NOW - 1", [4, 8], [4, 8, 12]),
        ("BEGIN NOW - 2 END NOW - 1", [], [12]),
    ],
)
def test_whole_and_partial_steps_at_the_edges_of_a_window(window: str, whole: list[int], partial: list[int]) -> None:
    oracle = numbers(*range(16))
    asked = "SELECT window_start FROM s [TUMBLE 4 SECONDS] GROUP BY window_start"
    now = 16 if "NOW" in window else 20
    assert answer(oracle, f"{asked} {window}", now) == [(float(start),) for start in whole]
    assert answer(oracle, f"{asked} {window} EMIT PARTIAL", now) == [(float(start),) for start in partial]


def test_a_partial_step_has_what_the_window_holds() -> None:
    oracle = numbers(*range(8))
    asked = "SELECT window_start, sum(x) FROM s [TUMBLE 4 SECONDS EMIT PARTIAL]"
    assert answer(oracle, f"{asked} BEGIN NOW - 4 END NOW", now=6) == [(0.0, 5), (4.0, 15)]


def test_a_step_without_a_tuple_that_matches_gives_no_row() -> None:
    oracle = stream("x INT", (1, 0), (2, 5), (9, 6), (3, 13))
    assert answer(oracle, "SELECT window_start, count(*) FROM s [TUMBLE 4 SECONDS]") == [(0.0, 1), (4.0, 2), (12.0, 1)]
    assert answer(oracle, "SELECT window_start FROM s [TUMBLE 4 SECONDS] WHERE x > 2 GROUP BY x") == [(4.0,), (12.0,)]


def test_steps_start_where_they_are_told_to() -> None:
    oracle = numbers(*range(8))
    expected = [(-1.0, 3), (3.0, 4), (7.0, 1)]
    for start in ("1970-01-01 00:00:03", "1970-01-01 00:01:03", "1969-12-31 23:59:59"):
        bracket = f"[TUMBLE 4 SECONDS START AT TIMESTAMP '{start}']"
        assert answer(oracle, f"SELECT window_start, count(*) FROM s {bracket}") == expected
    asked = "SELECT window.start, count(*) FROM s GROUP BY window(ts, '4 seconds', '4 seconds', '3 seconds')"
    assert answer(oracle, asked) == expected


def test_steps_before_the_epoch() -> None:
    oracle = stream("x INT", (1, -0.000001), (2, -4), (3, 0))
    assert answer(oracle, "SELECT window_start, sum(x) FROM s [TUMBLE 4 SECONDS]") == [(-4.0, 3), (0.0, 3)]


def test_hops_whose_slide_does_not_divide_their_width() -> None:
    oracle = numbers(*range(6))
    expected = [(-3.0, 1), (0.0, 10), (3.0, 12)]
    for asked in (
        "SELECT window_start, sum(x) FROM s [HOP 5 SECONDS SLIDE 3 SECONDS]",
        "SELECT window_start, sum(x) FROM s GROUP BY HOP(ts, INTERVAL '3' SECOND, INTERVAL '5' SECOND)",
        "SELECT window.start, sum(x) FROM s GROUP BY window(ts, '5 seconds', '3 seconds')",
    ):
        assert answer(oracle, asked) == expected


def test_steps_that_are_further_apart_than_they_are_wide_leave_tuples_out() -> None:
    oracle = numbers(*range(9))
    asked = "SELECT window_start, window_end, count(*), sum(x) FROM s [RANGE 2 SECONDS SLIDE 5 SECONDS]"
    assert answer(oracle, asked) == [(0.0, 2.0, 2, 1), (5.0, 7.0, 2, 11)]


def test_steps_are_cut_by_what_is_retained() -> None:
    oracle = stream("x INT", *((x, x) for x in range(20)), retain="9 seconds")
    # All from 10 s on is there, so the step from 8 s is not whole.
    asked = "SELECT window_start, count(*) FROM s [TUMBLE 4 SECONDS"
    assert answer(oracle, f"{asked}]") == [(12.0, 4), (16.0, 4)]
    assert answer(oracle, f"{asked} EMIT PARTIAL]") == [(8.0, 2), (12.0, 4), (16.0, 4)]
    kept = stream("x INT", *((x, x) for x in range(20)), retain="11 seconds")
    assert answer(kept, f"{asked}]") == [(8.0, 4), (12.0, 4), (16.0, 4)]


def test_groups_of_a_step_come_after_its_start() -> None:
    oracle = stream("x INT", (2, 0), (1, 1), (2, 4), (1, 5), (2, 5))
    asked = "SELECT x, window_start, count(*) FROM s [TUMBLE 4 SECONDS] GROUP BY x"
    assert answer(oracle, asked) == [(1, 0.0, 1), (2, 0.0, 1), (1, 4.0, 1), (2, 4.0, 2)]
    assert answer(oracle, f"{asked} HAVING count(*) > 1") == [(2, 4.0, 2)]
    assert answer(oracle, f"{asked} ORDER BY x, window_start DESC LIMIT 2") == [(1, 4.0, 1), (1, 0.0, 1)]


def test_a_late_tuple_goes_to_its_step() -> None:
    oracle = numbers(1, 2, 3, 4, 5)
    more(oracle, "x INT", (10, 0.5))
    assert answer(oracle, "SELECT window_start, sum(x) FROM s [TUMBLE 2 SECONDS]") == [(0.0, 13), (2.0, 7), (4.0, 5)]


# Steps of rows


def test_steps_of_rows_are_whole_when_all_their_numbers_are_there() -> None:
    oracle = numbers(*range(7))
    asked = "SELECT window_start, window_end, sum(x) FROM s [ROWS 3 SLIDE 2"
    assert answer(oracle, f"{asked}]") == [(0.0, 2.0, 3), (2.0, 4.0, 9), (4.0, 6.0, 15)]
    # With EMIT PARTIAL there are the one that began before the first tuple, and the one that is not full yet.
    assert answer(oracle, f"{asked} EMIT PARTIAL]") == [
        (0.0, 0.0, 0),
        (0.0, 2.0, 3),
        (2.0, 4.0, 9),
        (4.0, 6.0, 15),
        (6.0, 6.0, 6),
    ]
    assert answer(oracle, f"{asked}]", now=5) == [(0.0, 2.0, 3), (2.0, 4.0, 9)]


def test_steps_of_rows_are_counted_before_the_condition() -> None:
    oracle = numbers(*range(6))
    asked = "SELECT window_start, window_end, sum(x) FROM s [ROWS 3 SLIDE 3] WHERE x % 2 = 1"
    assert answer(oracle, asked) == [(0.0, 2.0, 1), (3.0, 5.0, 8)]
    assert answer(oracle, asked.replace("x % 2 = 1", "x > 2")) == [(3.0, 5.0, 12)]


def test_a_late_tuple_moves_the_numbers_after_it() -> None:
    oracle = numbers(0, 1, 2, 3)
    asked = "SELECT window_start, sum(x) FROM s [ROWS 2 SLIDE 2]"
    assert answer(oracle, asked) == [(0.0, 1), (2.0, 5)]
    more(oracle, "x INT", (100, 0.5))
    assert answer(oracle, asked) == [(0.0, 100), (1.0, 3)]
    more(oracle, "x INT", (50, 0))
    assert answer(oracle, asked) == [(0.0, 50), (0.5, 101), (2.0, 5)]


def test_tuples_that_are_gone_still_count() -> None:
    oracle = stream("x INT", *((x, x) for x in range(9)), retain="4 seconds")
    # Of the numbers 0 to 8 those from 4 on are there: 3 to 5 is cut, 6 to 8 is whole.
    asked = "SELECT window_start, sum(x) FROM s [ROWS 3 SLIDE 3"
    assert answer(oracle, f"{asked}]") == [(6.0, 21)]
    assert answer(oracle, f"{asked} EMIT PARTIAL]") == [(4.0, 9), (6.0, 21)]
    more(oracle, "x INT", (99, 1))
    assert answer(oracle, f"{asked}]") == [(5.0, 18)]
    assert answer(oracle, f"{asked} EMIT PARTIAL]") == [(4.0, 4), (5.0, 18), (8.0, 8)]


def test_steps_of_rows_within_a_window() -> None:
    oracle = numbers(*range(10))
    asked = "SELECT window_start, count(*) FROM s [ROWS 2 SLIDE 2]"
    assert answer(oracle, f"{asked} BEGIN NOW - 5 END NOW", now=8) == [(4.0, 2), (6.0, 2)]
    assert answer(oracle, f"{asked} BEGIN NOW - 5 END NOW EMIT PARTIAL", now=8) == [
        (3.0, 1),
        (4.0, 2),
        (6.0, 2),
        (8.0, 1),
    ]
    assert answer(oracle, f"{asked} BEGIN NOW - 5 ROWS END NOW - 1 ROWS", now=9) == [(6.0, 2)]


def test_steps_of_rows_leave_rows_out_where_they_are_far_apart() -> None:
    oracle = numbers(*range(8))
    assert answer(oracle, "SELECT sum(x) FROM s [ROWS 1 SLIDE 3]") == [(0,), (3,), (6,)]


def test_steps_of_rows_with_one_time_come_by_number() -> None:
    oracle = stream("x INT", *((x, 1) for x in (5, 4, 3, 2)))
    asked = "SELECT window_start, window_end, first(x) FROM s [ROWS 2 SLIDE 1]"
    assert answer(oracle, asked) == [(1.0, 1.0, 5), (1.0, 1.0, 4), (1.0, 1.0, 3)]


def test_a_stream_without_a_time_column_has_steps_too() -> None:
    oracle = Oracle(clock=lambda: 100 * SECOND)
    oracle.create_stream("s", "x INT")
    for second in range(4):
        oracle.push("s", [{"x": second}], at=second * SECOND)
    assert answer(oracle, "SELECT window_end, sum(x) FROM s [TUMBLE 2 SECONDS]") == [(2.0, 1), (4.0, 5)]
    assert answer(oracle, "SELECT window_end, sum(x) FROM s [ROWS 2 SLIDE 2]") == [(1.0, 1), (3.0, 5)]
