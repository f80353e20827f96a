"""The oracle's steps of time and of rows, worked out by hand."""

from __future__ import annotations

import pytest

from tests.oracle.asking import SECOND, answer, more, numbers, stream
from tureen.testing import Oracle

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
