"""Streams that keep what is needed: runs are freed when nothing needs them, and never before."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.pipeline.needed_streams import (
    START,
    at,
    derive_all,
    freed_before,
    keys,
    needed_streams,
    push,
    push_ten_runs,
    row,
)
from tureen.pipeline.upkeep import EXPIRED_GRACE
from tureen.punctuation import Punctuation
from tureen.testing.manual_engine import ManualClock, ManualEngine


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START + timedelta(days=1))


@pytest.fixture
def soup(tmp_path: Path, clock: ManualClock) -> Iterator[ManualEngine]:
    engine = ManualEngine(tmp_path / "pot", clock)
    yield engine
    engine.close()


def test_runs_before_all_windows_are_freed(soup: ManualEngine) -> None:
    needed_streams(soup, "s")
    narrow = soup.register("SELECT k FROM s BEGIN NOW - 10 END NOW")
    wide = soup.register("SELECT k FROM s BEGIN NOW - 20 END NOW")
    push_ten_runs(soup)
    assert soup.free() == 5
    assert freed_before(soup) == at(20) + timedelta(microseconds=1)
    assert keys(soup, narrow) == [35, 40, 45]
    assert keys(soup, wide) == [25, 30, 35, 40, 45]
    assert soup.invoke(wide).complete
    soup.unregister(wide)
    assert soup.free() == 2
    assert keys(soup, narrow) == [35, 40, 45]


def test_later_queries_are_clipped_and_incomplete(soup: ManualEngine) -> None:
    needed_streams(soup, "s")
    narrow = soup.register("SELECT k FROM s BEGIN NOW - 10 END NOW")
    push_ten_runs(soup)
    # The run from 30 to 46 is needed, but the tuple at 30 is before others that were freed.
    push(soup, "s", row(30, 30), row(46, 46))
    assert soup.free() == 8
    wide = soup.register("SELECT k FROM s BEGIN NOW - 20 END NOW")
    everything = soup.register("SELECT k FROM s")
    counted = soup.register("SELECT k FROM s BEGIN NOW - 3 ROWS END NOW")
    many = soup.register("SELECT k FROM s BEGIN NOW - 9 ROWS END NOW")
    for handle in (wide, everything, many):
        answer = soup.invoke(handle)
        assert ([each["k"] for each in answer], answer.complete) == ([40, 45, 46], False)
    for handle, expected in ((narrow, [40, 45, 46]), (counted, [40, 45, 46])):
        answer = soup.invoke(handle)
        assert ([each["k"] for each in answer], answer.complete) == (expected, True)
    # They are needed from now on.
    push(soup, "s", row(60, 60))
    assert soup.free() == 0


def test_a_query_registered_before_the_commit_counts(soup: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    needed_streams(soup, "s")
    push(soup, "s", row(1, 1))
    handles: list[str] = []

    def register(point: str) -> None:
        if point == "free.before_commit" and not handles:
            handles.append(soup.register("SELECT k FROM s"))

    monkeypatch.setattr("tureen.pipeline.freeing.crash_point", register)
    assert soup.free() == 0
    answer = soup.invoke(handles[0])
    assert ([each["k"] for each in answer], answer.complete) == ([1], True)


def test_a_stream_derived_before_the_commit_counts(soup: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    needed_streams(soup, "s")
    push(soup, "s", row(1, 1))

    def derive(point: str) -> None:
        if point == "free.before_commit":
            soup.derive_stream("d", "SELECT k, ts FROM s")

    monkeypatch.setattr("tureen.pipeline.freeing.crash_point", derive)
    assert soup.free() == 0


def test_runs_stay_for_the_reach_of_windows_or_an_hour(soup: ManualEngine, clock: ManualClock) -> None:
    needed_streams(soup, "s")
    window = soup.register("SELECT k FROM s BEGIN NOW - 10 MINUTES END NOW")
    push(soup, "s", row(1, 1))
    push(soup, "s", row(2, 2_000))
    for minutes, freed in ((0, 0), (9, 0), (1, 1)):
        clock.moment += timedelta(minutes=minutes)
        assert soup.free(EXPIRED_GRACE) == freed
    soup.unregister(window)
    for minutes, freed in ((0, 0), (59, 0), (1, 1)):
        clock.moment += timedelta(minutes=minutes)
        assert soup.free(EXPIRED_GRACE) == freed


def test_derived_selections_need_what_they_have_not_read(soup: ManualEngine) -> None:
    needed_streams(soup, "s")
    soup.derive_stream("d", "SELECT k, ts FROM s WHERE k > 1")
    push(soup, "s", row(1, 1))
    push(soup, "s", row(2, 2))
    assert soup.free() == 0
    assert soup.freeing.held == {1: {"stream d": 2}}
    soup.derive()
    # Up to the tuple that was pushed to the derived stream, which is stored; the rest when it is noted.
    push(soup, "s", row(0, 3))
    soup.derive()
    assert soup.free() == 2
    soup.deriver.note_progress()
    assert soup.free() == 1
    assert [each["k"] for each in soup.invoker.answer_once("SELECT k FROM d")] == [2]


def test_derived_joins_need_tuples_until_they_are_purged(soup: ManualEngine) -> None:
    needed_streams(soup, "a", "b")
    soup.derive_stream("d", "SELECT a.k, a.ts FROM a JOIN b ON a.k = b.k")
    push(soup, "a", row(1, 1))
    push(soup, "a", row(2, 2))
    push(soup, "b", row(1, 1))
    derive_all(soup)
    assert soup.free() == 0
    push(soup, "b", row(1, 3), Punctuation(k=1))
    # Closed, but the tuple before the punctuation is not joined yet.
    assert soup.free() == 0
    derive_all(soup)
    assert soup.free() == 1
    push(soup, "a", Punctuation(k=1))
    derive_all(soup)
    assert soup.free() == 2
    assert [each["k"] for each in soup.invoker.answer_once("SELECT k FROM d")] == [1, 1]


def test_derived_joins_with_windows_need_what_later_tuples_reach(soup: ManualEngine) -> None:
    needed_streams(soup, "a", "b", lateness=2)
    soup.derive_stream("d", "SELECT a.k, a.ts FROM a JOIN b ON a.k = b.k BEGIN NOW - 5 END NOW")
    push(soup, "a", row(1, 1))
    push(soup, "a", row(1, 4))
    push(soup, "b", row(1, 8))
    derive_all(soup)
    # A tuple of b at 6 can still come, and reaches back to 1.
    assert soup.free() == 0
    push(soup, "b", row(1, 9))
    derive_all(soup)
    assert soup.free() == 1


def test_derived_semijoins_need_what_rows_were_reported_for(tmp_path: Path, clock: ManualClock) -> None:
    soup = ManualEngine(tmp_path / "exists", clock)
    needed_streams(soup, "a", "b", lateness=0)
    condition = "EXISTS (SELECT 1 FROM b [RANGE 2 SECONDS] WHERE b.k = a.k)"
    soup.derive_stream("d", f"SELECT a.k, a.ts FROM a [RANGE 10 SECONDS] WHERE {condition}")
    push(soup, "b", row(1, 1))
    push(soup, "a", row(1, 2))
    push(soup, "b", row(9, 5))
    push(soup, "a", row(9, 6))
    derive_all(soup)
    # No later tuple is joined with that of b at 1, but one may be with that of a at 2, which it was joined with.
    assert soup.free() == 0
    soup.close()
    soup = ManualEngine(tmp_path / "exists", clock)
    push(soup, "b", row(1, 7))
    soup.derive()
    assert [each["k"] for each in soup.invoker.answer_once("SELECT k FROM d")] == [1, 9]
    push(soup, "a", row(9, 30))
    push(soup, "b", row(9, 30))
    derive_all(soup)
    assert soup.free() == 5
    soup.close()


def test_derived_semijoins_need_partners_until_all_streams_close_them(tmp_path: Path, clock: ManualClock) -> None:
    soup = ManualEngine(tmp_path / "exists", clock)
    needed_streams(soup, "a", "b")
    soup.derive_stream("d", "SELECT a.k, a.ts FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)")
    push(soup, "a", row(1, 1), Punctuation(k=1))
    push(soup, "b", row(1, 1))
    soup.derive()
    push(soup, "b", row(1, 2))
    push(soup, "b", row(2, 2), Punctuation(k=2))
    derive_all(soup)
    # A tuple of b can still be joined with that of a, and its partners tell that the row was reported.
    assert soup.free() == 0
    soup.close()
    soup = ManualEngine(tmp_path / "exists", clock)
    push(soup, "b", row(1, 3), Punctuation(k=1))
    derive_all(soup)
    assert [each["k"] for each in soup.invoker.answer_once("SELECT k FROM d")] == [1]
    # All but the run of b with 2, which a has not closed.
    assert soup.free() == 4
    push(soup, "a", row(2, 4), Punctuation(k=2))
    derive_all(soup)
    assert [each["k"] for each in soup.invoker.answer_once("SELECT k FROM d")] == [1, 2]
    assert soup.free() == 2
    soup.close()


def test_freed_tuples_that_were_purged_do_not_hide_others(soup: ManualEngine) -> None:
    needed_streams(soup, "a", "b")
    soup.derive_stream("d", "SELECT a.k, a.ts FROM a JOIN b ON a.k = b.k")
    push(soup, "a", row(1, 1), Punctuation(k=1))
    push(soup, "b", row(2, 2))
    push(soup, "b", row(1, 3))
    derive_all(soup)
    assert soup.free() == 1
    push(soup, "a", row(2, 4))
    derive_all(soup)
    assert [each["k"] for each in soup.invoker.answer_once("SELECT k FROM d")] == [1, 2]


def test_derived_joins_without_equalities_need_what_windows_reach(soup: ManualEngine) -> None:
    needed_streams(soup, "a", "b", lateness=0)
    soup.derive_stream("d", "SELECT a.k, a.ts FROM a [RANGE 5 SECONDS] JOIN b [RANGE 2 SECONDS] ON a.k < b.k")
    for second in (1, 2, 8):
        push(soup, "a", row(second, second))
        push(soup, "b", row(second, second))
    derive_all(soup)
    # Later tuples are at 8 or after: those of a at 1 and 2 and of b at 1 and 2 are out of reach.
    assert soup.free() == 4
    push(soup, "b", row(9, 8))
    derive_all(soup)
    assert [each["k"] for each in soup.invoker.answer_once("SELECT k FROM d")] == [1, 8]


def test_tuples_with_null_keys_are_not_needed_by_joins(soup: ManualEngine) -> None:
    needed_streams(soup, "a", "b")
    soup.derive_stream("d", "SELECT a.k, a.ts FROM a JOIN b ON a.k = b.k")
    push(soup, "a", {"k": None, "ts": at(1)})
    push(soup, "a", row(1, 1))
    derive_all(soup)
    assert soup.free() == 1


def test_the_latest_tuple_that_was_read_stays(tmp_path: Path, clock: ManualClock) -> None:
    """It tells which times were over, so that a group that left its window by then is not reported again."""
    soup = ManualEngine(tmp_path / "latest", clock)
    needed_streams(soup, "a", "b", lateness=0)
    sql = "SELECT a.k, count(*) AS n FROM a JOIN b ON a.k = b.k GROUP BY a.k BEGIN NOW - 5 END NOW EMIT FINAL"
    soup.derive_stream("d", sql)
    push(soup, "b", row(1, 10), row(4, 10), Punctuation(k=1))
    push(soup, "a", row(1, 10), row(3, 12))
    push(soup, "a", row(2, 30))
    push(soup, "b", Punctuation(k=2))
    derive_all(soup)
    reported = soup.invoker.answer_once("SELECT k, n FROM d").table.to_pylist()
    assert reported == [{"k": 1, "n": 1}]
    # Of the tuple at 30 nothing else is needed, and the other runs are needed for keys that are open.
    assert soup.free() == 0
    soup.close()
    soup = ManualEngine(tmp_path / "latest", clock)
    push(soup, "a", row(5, 60))
    soup.derive()
    assert soup.invoker.answer_once("SELECT k, n FROM d").table.to_pylist() == reported
    soup.close()


def test_followed_joins_need_their_state(soup: ManualEngine) -> None:
    needed_streams(soup, "a", "b")
    handle = soup.register("SELECT a.k, a.ts FROM a JOIN b ON a.k = b.k BEGIN NOW - 5 END NOW")
    follower = soup.invoker.follow(handle)
    assert follower is not None
    push(soup, "a", row(1, 1))
    push(soup, "b", row(2, 100))
    push(soup, "a", row(2, 100))
    soup.invoker.followers.joins.advance()
    # Without a lateness, a late tuple of b may still be joined with the first one of a.
    assert soup.free() == 0
    assert soup.freeing.held[1] == {"followed joins": 1}
    soup.invoker.followers.remove(follower)
    assert soup.free() == 1


def test_merges_do_not_mix_runs_that_are_about_to_be_freed(soup: ManualEngine) -> None:
    needed_streams(soup, "s")
    soup.register("SELECT k FROM s BEGIN NOW - 10 END NOW")
    push_ten_runs(soup)
    assert soup.free(EXPIRED_GRACE) == 0
    soup.seal(everything=True)
    assert soup.free() == 7
