"""What windows need of a stream, now and later."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.pot.runs import Run
from tureen.pot.window_needs import dump_need, load_need, needed_from
from tureen.window import At, Bound, Now, RowsBack, Window, to_micros


def run(first: int, last: int, rows: int) -> Run:
    return Run(1, 1, 1, "", rows, 0, first, last, indexed=False, matched_seq=0, bytes=0, written_at=0)


BOUNDS = st.one_of(
    st.none(),
    st.builds(At, st.integers(-(10**15), 10**15)),
    st.builds(Now, st.integers(-(10**12), 0), st.integers(-30, 0)),
    st.builds(RowsBack, st.integers(1, 10**6)),
)


@given(BOUNDS)
@example_settings(50)
def test_stored_needs_are_read_again(begin: Bound | None) -> None:
    assert load_need(dump_need(Window(begin, Now()))) == begin


@given(
    st.builds(Now, st.integers(-(10**11), 0), st.integers(-30, 0)),
    st.datetimes(datetime(2019, 1, 1), datetime(2026, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001 - zones are given
    st.timedeltas(timedelta(0), timedelta(days=5)),
)
@example_settings(200)
def test_windows_never_reach_further_back_later(begin: Now, now: datetime, passed: timedelta) -> None:
    needed = needed_from(begin, to_micros(now), [])
    assert needed is not None
    assert needed <= begin.at(to_micros(now + passed))


def test_months_lead_back_to_shorter_months() -> None:
    moments = [datetime(2026, 3, 28, 23, tzinfo=UTC), datetime(2026, 3, 31, tzinfo=UTC)]
    earlier, later = (Now(0, -1).at(to_micros(moment)) for moment in moments)
    assert later < earlier
    needed = needed_from(Now(0, -1), to_micros(moments[0]), [])
    assert needed is not None
    assert needed <= later


def test_windows_of_rows_count_runs_up_to_now() -> None:
    runs = [run(0, 10, 5), run(10, 20, 5), run(20, 99, 5)]
    assert needed_from(RowsBack(5), 30, runs) == 10
    assert needed_from(RowsBack(6), 30, runs) == 0
    assert needed_from(RowsBack(5), 99, runs) == 20
    assert needed_from(RowsBack(11), 30, runs) is None
