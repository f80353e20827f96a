"""Changes: every row that joins an answer, once, in order of arrival, from any position on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tureen
from tureen.errors import SqlError, TureenError, Unsupported
from tureen.pipeline import arrival, upkeep
from tureen.position import BEGINNING, Mark, Position
from tureen.results.changes import NewRows
from tureen.soup.waiting import follow
from tureen.testing.hand_turned import HandTurned

BASE = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def hand(hand: HandTurned) -> HandTurned:
    """A stream of numbers, turned by hand."""
    hand.create_stream("s", "n INT, ts TIMESTAMP", time="ts")
    return hand


def _rows(*numbers: int) -> list[dict[str, Any]]:
    """Tuples whose times run against their order of arrival."""
    return [{"n": one, "ts": BASE - timedelta(seconds=one)} for one in numbers]


def _news(hand: HandTurned, handle: str, since: str) -> tuple[list[int], str]:
    found = hand.invoker.new_rows(handle, Position.parse(since))
    return found.rows.column(0).to_pylist(), found.position()


def test_rows_come_in_order_of_arrival_from_the_position_of_an_answer(hand: HandTurned) -> None:
    even = hand.register("SELECT n FROM s WHERE n % 2 = 0")
    hand.push("s", _rows(1, 2))
    since = hand.invoke(even).position
    assert _news(hand, even, since)[0] == []
    hand.push("s", _rows(3, 4))
    hand.push("s", _rows(5, 6))
    found, after = _news(hand, even, since)
    assert found == [4, 6]
    assert since < after
    assert _news(hand, even, after)[0] == []


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(
        st.tuples(st.sampled_from(["push", "push", "seal", "seal all", "pay", "read"]), st.integers(1, 5)), max_size=25
    ),
    st.booleans(),
)
def test_no_row_is_missed_or_repeated_whatever_is_merged(steps: list[tuple[str, int]], eager: bool) -> None:
    with TemporaryDirectory() as root, pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrival, "TAIL_ROWS", 4)
        patch.setattr(upkeep, "TAIL_ROWS", 4)
        patch.setattr(upkeep, "FAN", 2)
        hand = HandTurned(Path(root))
        hand.create_stream("s", "n INT, ts TIMESTAMP", time="ts")
        handle = hand.register("SELECT n FROM s WHERE n % 3 <> 0", materialize=eager)
        position = hand.invoke(handle).position
        pushed: list[int] = []
        seen: list[int] = []
        for step, size in steps:
            if step == "push":
                numbers = list(range(len(pushed), len(pushed) + size))
                # Later tuples have earlier times, so that merging turns them round.
                hand.push("s", [{"n": one, "ts": BASE - timedelta(seconds=one)} for one in numbers])
                pushed += numbers
            elif step == "read":
                found, position = _news(hand, handle, position)
                seen += found
            elif step == "pay":
                hand.compile()
                hand.pay()
            else:
                hand.seal(everything=step == "seal all")
        found, position = _news(hand, handle, position)
        # Within one push, ids follow time: what came last in it has the earliest time.
        assert sorted([*seen, *found]) == [one for one in pushed if one % 3]
        assert len({*seen, *found}) == len(seen) + len(found)
        hand.close()


def test_going_on_from_a_change_gives_the_rows_after_it(hand: HandTurned) -> None:
    every = hand.register("SELECT n * 10 AS ten FROM s")
    since = hand.invoke(every).position
    hand.push("s", _rows(3, 2, 1))
    news = hand.invoker.new_rows(every, Position.parse(since))
    assert news.rows.column(0).to_pylist() == [30, 20, 10]
    assert _news(hand, every, news.position(0))[0] == [20, 10]
    hand.seal(everything=True)
    assert _news(hand, every, news.position(1))[0] == [10]


def test_constant_bounds_count_and_relative_ones_do_not(hand: HandTurned) -> None:
    fixed = hand.register("SELECT n FROM s BEGIN TIMESTAMP '2025-12-31 23:59:58' END NOW")
    sliding = hand.register("SELECT n FROM s BEGIN NOW - 1 SECOND END NOW")
    since = hand.invoke(fixed).position
    hand.push("s", _rows(1, 2, 3))
    assert _news(hand, fixed, since)[0] == [2, 1]
    assert _news(hand, sliding, since)[0] == [3, 2, 1]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM s",
        "SELECT DISTINCT n FROM s",
        "SELECT n FROM s ORDER BY n",
        "SELECT n FROM s LIMIT 1",
        "SELECT n, lag(n) OVER (ORDER BY n) AS p FROM s",
        "SELECT n FROM s QUALIFY row_number() OVER (ORDER BY n) = 1",
        "SELECT n, NOW AS asked FROM s",
        "SELECT n FROM s WHERE NOW > TIMESTAMP '2026-01-01 00:00:00'",
    ],
)
def test_an_answer_that_does_not_grow_row_by_row_has_none(hand: HandTurned, sql: str) -> None:
    handle = hand.register(sql)
    with pytest.raises(Unsupported, match="has no changes"):
        hand.invoker.new_rows(handle, None)


def test_from_the_beginning(hand: HandTurned) -> None:
    handle = hand.register("SELECT n FROM s WHERE n > 1")
    hand.push("s", _rows(1, 2, 3))
    assert sorted(_news(hand, handle, BEGINNING)[0]) == [2, 3]
    assert sorted(_news(hand, handle, "0")[0]) == [2, 3]


def test_a_position_of_something_else_is_refused(hand: HandTurned) -> None:
    every = hand.register("SELECT n FROM s")
    for other in (Position(3), Position(3, {99: Mark(5)})):
        with pytest.raises(TureenError, match="not one of this stream"):
            hand.invoker.new_rows(every, other)


def test_followed_through_spark(soup: tureen.Soup) -> None:
    soup.create_stream("followed", "n INT, ts TIMESTAMP", time="ts")
    big = soup.register("SELECT n FROM followed WHERE n > 10")
    since = big.invoke().position
    with pytest.raises(SqlError):
        soup.register("SELECT count(*) FROM followed").changes()
    soup.push("followed", [{"n": 5, "ts": BASE}, {"n": 50, "ts": BASE}])
    changes = big.changes(since=since)
    first = next(changes)
    assert (first.query, first.row) == (big.id, {"n": 50})
    at = soup.push("followed", [{"n": 60, "ts": BASE}, {"n": 70, "ts": BASE}])
    assert next(changes).row == {"n": 60}
    soup.wait(at)
    assert [change.row["n"] for change in big.changes(since=first.position, timeout=0)] == [60, 70]
    assert list(big.changes(timeout=0)) == []


def test_what_others_commit_gives_a_follower_no_more_time(hand: HandTurned) -> None:
    """It ends a while after the last row, although something is committed all the time."""
    query = hand.register("SELECT n FROM s")
    looks: list[str] = []

    def look(position: str) -> NewRows:
        hand.unregister(hand.register(f"SELECT n FROM s WHERE n > {len(looks)}"))
        looks.append(position)
        return hand.invoker.new_rows(query, Position.parse(position))

    first = hand.invoker.new_rows(query, None)
    assert list(follow(hand.catalog, first, look, 0.3, lambda: None)) == []
    assert len(looks) > 1
