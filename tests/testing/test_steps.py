"""The oracle's steps of time and of rows, against expected answers by hand."""

from __future__ import annotations

import pytest

from tests.testing.streams import SECOND, answer, numbers, push, stream
from tureen.testing import Oracle

# Steps of time


def test_tumbling_steps() -> None:
    oracle = numbers(*range(10))
    select = "SELECT window_start, window_end, sum(x) FROM s"
    expected = [(0.0, 4.0, 6), (4.0, 8.0, 22), (8.0, 12.0, 17)]
    assert answer(oracle, f"{select} [TUMBLE 4 SECONDS]") == expected
    assert answer(oracle, f"{select} [RANGE 4 SECONDS SLIDE 4 SECONDS]") == expected
    assert answer(oracle, f"{select} GROUP BY TUMBLE(ts, INTERVAL '4' SECOND)") == expected
    assert answer(oracle, f"{select} GROUP BY window(ts, '4 seconds')") == expected


def test_a_step_is_returned_when_it_is_over() -> None:
    oracle = numbers(*range(10))
    select = "SELECT window_start, count(*) FROM s [TUMBLE 4 SECONDS]"
    assert answer(oracle, select, now=7) == [(0.0, 4)]
    assert answer(oracle, select, now=8) == [(0.0, 4), (4.0, 4)]
    # A tuple later than NOW belongs to a partial step, unless the window ends before it.
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
    select = "SELECT window_start FROM s [TUMBLE 4 SECONDS] GROUP BY window_start"
    now = 16 if "NOW" in window else 20
    assert answer(oracle, f"{select} {window}", now) == [(float(start),) for start in whole]
    assert answer(oracle, f"{select} {window} EMIT PARTIAL", now) == [(float(start),) for start in partial]


def test_a_partial_step_has_the_tuples_of_the_window() -> None:
    oracle = numbers(*range(8))
    select = "SELECT window_start, sum(x) FROM s [TUMBLE 4 SECONDS EMIT PARTIAL]"
    assert answer(oracle, f"{select} BEGIN NOW - 4 END NOW", now=6) == [(0.0, 5), (4.0, 15)]


def test_a_step_without_matches_has_no_row() -> None:
    oracle = stream("x INT", (1, 0), (2, 5), (9, 6), (3, 13))
    assert answer(oracle, "SELECT window_start, count(*) FROM s [TUMBLE 4 SECONDS]") == [(0.0, 1), (4.0, 2), (12.0, 1)]
    assert answer(oracle, "SELECT window_start FROM s [TUMBLE 4 SECONDS] WHERE x > 2 GROUP BY x") == [(4.0,), (12.0,)]


def test_start_at() -> None:
    oracle = numbers(*range(8))
    expected = [(-1.0, 3), (3.0, 4), (7.0, 1)]
    for start in ("1970-01-01 00:00:03", "1970-01-01 00:01:03", "1969-12-31 23:59:59"):
        bracket = f"[TUMBLE 4 SECONDS START AT TIMESTAMP '{start}']"
        assert answer(oracle, f"SELECT window_start, count(*) FROM s {bracket}") == expected
    select = "SELECT window.start, count(*) FROM s GROUP BY window(ts, '4 seconds', '4 seconds', '3 seconds')"
    assert answer(oracle, select) == expected


def test_steps_before_the_epoch() -> None:
    oracle = stream("x INT", (1, -0.000001), (2, -4), (3, 0))
    assert answer(oracle, "SELECT window_start, sum(x) FROM s [TUMBLE 4 SECONDS]") == [(-4.0, 3), (0.0, 3)]


def test_hops_with_a_slide_that_does_not_divide_the_width() -> None:
    oracle = numbers(*range(6))
    expected = [(-3.0, 1), (0.0, 10), (3.0, 12)]
    for select in (
        "SELECT window_start, sum(x) FROM s [HOP 5 SECONDS SLIDE 3 SECONDS]",
        "SELECT window_start, sum(x) FROM s GROUP BY HOP(ts, INTERVAL '3' SECOND, INTERVAL '5' SECOND)",
        "SELECT window.start, sum(x) FROM s GROUP BY window(ts, '5 seconds', '3 seconds')",
    ):
        assert answer(oracle, select) == expected


def test_a_slide_larger_than_the_width_skips_tuples() -> None:
    oracle = numbers(*range(9))
    select = "SELECT window_start, window_end, count(*), sum(x) FROM s [RANGE 2 SECONDS SLIDE 5 SECONDS]"
    assert answer(oracle, select) == [(0.0, 2.0, 2, 1), (5.0, 7.0, 2, 11)]


def test_steps_before_the_horizon_are_partial() -> None:
    oracle = stream("x INT", *((x, x) for x in range(20)), retain="9 seconds")
    # Tuples from 10 s on are retained, so the step from 8 s is not whole.
    select = "SELECT window_start, count(*) FROM s [TUMBLE 4 SECONDS"
    assert answer(oracle, f"{select}]") == [(12.0, 4), (16.0, 4)]
    assert answer(oracle, f"{select} EMIT PARTIAL]") == [(8.0, 2), (12.0, 4), (16.0, 4)]
    longer = stream("x INT", *((x, x) for x in range(20)), retain="11 seconds")
    assert answer(longer, f"{select}]") == [(8.0, 4), (12.0, 4), (16.0, 4)]


def test_groups_are_ordered_by_step_first() -> None:
    oracle = stream("x INT", (2, 0), (1, 1), (2, 4), (1, 5), (2, 5))
    select = "SELECT x, window_start, count(*) FROM s [TUMBLE 4 SECONDS] GROUP BY x"
    assert answer(oracle, select) == [(1, 0.0, 1), (2, 0.0, 1), (1, 4.0, 1), (2, 4.0, 2)]
    assert answer(oracle, f"{select} HAVING count(*) > 1") == [(2, 4.0, 2)]
    assert answer(oracle, f"{select} ORDER BY x, window_start DESC LIMIT 2") == [(1, 4.0, 1), (1, 0.0, 1)]


def test_a_late_tuple_belongs_to_its_step() -> None:
    oracle = numbers(1, 2, 3, 4, 5)
    push(oracle, "x INT", (10, 0.5))
    assert answer(oracle, "SELECT window_start, sum(x) FROM s [TUMBLE 2 SECONDS]") == [(0.0, 13), (2.0, 7), (4.0, 5)]


# Steps of rows


def test_steps_of_rows_are_whole_when_full() -> None:
    oracle = numbers(*range(7))
    select = "SELECT window_start, window_end, sum(x) FROM s [ROWS 3 SLIDE 2"
    assert answer(oracle, f"{select}]") == [(0.0, 2.0, 3), (2.0, 4.0, 9), (4.0, 6.0, 15)]
    # EMIT PARTIAL adds the step that begins before the first tuple, and the step that is not full yet.
    assert answer(oracle, f"{select} EMIT PARTIAL]") == [
        (0.0, 0.0, 0),
        (0.0, 2.0, 3),
        (2.0, 4.0, 9),
        (4.0, 6.0, 15),
        (6.0, 6.0, 6),
    ]
    assert answer(oracle, f"{select}]", now=5) == [(0.0, 2.0, 3), (2.0, 4.0, 9)]


def test_steps_of_rows_are_counted_before_the_condition() -> None:
    oracle = numbers(*range(6))
    select = "SELECT window_start, window_end, sum(x) FROM s [ROWS 3 SLIDE 3] WHERE x % 2 = 1"
    assert answer(oracle, select) == [(0.0, 2.0, 1), (3.0, 5.0, 8)]
    assert answer(oracle, select.replace("x % 2 = 1", "x > 2")) == [(3.0, 5.0, 12)]


def test_a_late_tuple_renumbers_later_tuples() -> None:
    oracle = numbers(0, 1, 2, 3)
    select = "SELECT window_start, sum(x) FROM s [ROWS 2 SLIDE 2]"
    assert answer(oracle, select) == [(0.0, 1), (2.0, 5)]
    push(oracle, "x INT", (100, 0.5))
    assert answer(oracle, select) == [(0.0, 100), (1.0, 3)]
    push(oracle, "x INT", (50, 0))
    assert answer(oracle, select) == [(0.0, 50), (0.5, 101), (2.0, 5)]


def test_dropped_tuples_still_count() -> None:
    oracle = stream("x INT", *((x, x) for x in range(9)), retain="4 seconds")
    # Of the tuples 0 to 8 those from 4 on are retained: 3 to 5 is partial, 6 to 8 is whole.
    select = "SELECT window_start, sum(x) FROM s [ROWS 3 SLIDE 3"
    assert answer(oracle, f"{select}]") == [(6.0, 21)]
    assert answer(oracle, f"{select} EMIT PARTIAL]") == [(4.0, 9), (6.0, 21)]
    push(oracle, "x INT", (99, 1))
    assert answer(oracle, f"{select}]") == [(5.0, 18)]
    assert answer(oracle, f"{select} EMIT PARTIAL]") == [(4.0, 4), (5.0, 18), (8.0, 8)]


def test_steps_of_rows_within_a_window() -> None:
    oracle = numbers(*range(10))
    select = "SELECT window_start, count(*) FROM s [ROWS 2 SLIDE 2]"
    assert answer(oracle, f"{select} BEGIN NOW - 5 END NOW", now=8) == [(4.0, 2), (6.0, 2)]
    assert answer(oracle, f"{select} BEGIN NOW - 5 END NOW EMIT PARTIAL", now=8) == [
        (3.0, 1),
        (4.0, 2),
        (6.0, 2),
        (8.0, 1),
    ]
    assert answer(oracle, f"{select} BEGIN NOW - 5 ROWS END NOW - 1 ROWS", now=9) == [(6.0, 2)]


def test_steps_of_rows_with_a_large_slide_skip_rows() -> None:
    oracle = numbers(*range(8))
    assert answer(oracle, "SELECT sum(x) FROM s [ROWS 1 SLIDE 3]") == [(0,), (3,), (6,)]


def test_steps_of_rows_with_equal_times_are_ordered_by_number() -> None:
    oracle = stream("x INT", *((x, 1) for x in (5, 4, 3, 2)))
    select = "SELECT window_start, window_end, first(x) FROM s [ROWS 2 SLIDE 1]"
    assert answer(oracle, select) == [(1.0, 1.0, 5), (1.0, 1.0, 4), (1.0, 1.0, 3)]


def test_steps_of_a_stream_without_a_time_column() -> None:
    oracle = Oracle(clock=lambda: 100 * SECOND)
    oracle.create_stream("s", "x INT")
    for second in range(4):
        oracle.push("s", [{"x": second}], at=second * SECOND)
    assert answer(oracle, "SELECT window_end, sum(x) FROM s [TUMBLE 2 SECONDS]") == [(2.0, 1), (4.0, 5)]
    assert answer(oracle, "SELECT window_end, sum(x) FROM s [ROWS 2 SLIDE 2]") == [(1.0, 1), (3.0, 5)]
