"""Intervals of kept joined rows: those that are in windows of time for certain, and those beside them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.results.joins.kept_join_groups import HitTimes, interval_of

TIME = st.integers(0, 20)


@example_settings(200)
@given(
    st.lists(st.tuples(TIME, TIME), max_size=12),
    st.tuples(st.none() | TIME, st.none() | TIME),
    st.tuples(st.none() | TIME, st.none() | TIME),
)
def test_intervals_equal_a_comparison_of_each_row(
    rows: list[tuple[int, int]], begins: tuple[int | None, int | None], ends: tuple[int | None, int | None]
) -> None:
    rows.sort(key=min)
    earliest = np.array([min(row) for row in rows], np.int64)
    latest = np.maximum.accumulate(np.array([max(row) for row in rows], np.int64))
    interval = interval_of(HitTimes(np.arange(len(rows), dtype=np.int32), earliest, latest), begins, ends)
    inside = {
        number
        for number, row in enumerate(rows)
        if all(begin is None or time >= begin for time, begin in zip(row, begins, strict=True))
        and all(end is None or time <= end for time, end in zip(row, ends, strict=True))
    }
    certain, beside = set(range(interval.first, interval.last)), set(interval.beside.tolist())
    assert certain <= inside <= certain | beside
    assert not certain & beside
