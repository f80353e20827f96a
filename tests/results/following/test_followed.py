"""Followed queries: whoever is told of no changes has none, and skipped tuples are none of its changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.errors import UnknownQuery
from tureen.pipeline import arrival, upkeep
from tureen.position import Position
from tureen.results.following import followed
from tureen.results.following.followed import FollowedQuery
from tureen.testing.manual_engine import ManualEngine

BASE = datetime(2026, 1, 1, tzinfo=UTC)

CONDITIONS = (
    "n = 3",
    "n > 5",
    "n BETWEEN 2 AND 4",
    "n IS NULL",
    "n > 2 AND n % 2 = 0",
    "n % 3 = 1",
    "name = 'a'",
    "name LIKE 'b%' AND n < 6",
    "n > m",
    "TRUE",
    "n IN (1, 7) OR name = 'c'",
    "FALSE",
)


def _row(number: int) -> dict[str, Any]:
    value = None if number % 9 == 8 else number % 9
    return {"n": value, "m": number % 4, "name": "abc"[number % 3], "ts": BASE - timedelta(seconds=number)}


class _Follower:
    """Reads its changes with the others, and compares them with those that it reads by itself."""

    def __init__(self, engine: ManualEngine, handle: str) -> None:
        self.engine, self.handle = engine, handle
        self.followed = engine.invoker.follow(handle)
        self.together = self.alone = Position.parse(engine.invoke(handle).position)

    def read(self) -> int:
        """Read and compare; the number of changes."""
        assert self.followed is not None
        new = self.engine.invoker.new_rows(self.handle, self.together, self.followed)
        alone = self.engine.invoker.new_rows(self.handle, self.alone)
        assert (new.rows.to_pylist() if len(new) else []) == alone.rows.to_pylist(), self.handle
        self.together, self.alone = Position.parse(new.position()), Position.parse(alone.position())
        assert self.together.marks == self.alone.marks
        return len(new)


@contextmanager
def small_engine() -> Iterator[ManualEngine]:
    """An engine with runs of few tuples, so that a short script has several of each kind."""
    with TemporaryDirectory() as root, pytest.MonkeyPatch.context() as patch:
        for module in (arrival, upkeep):
            patch.setattr(module, "TAIL_ROWS", 4)
        patch.setattr(upkeep, "FAN", 2)
        patch.setattr(followed, "KEPT_INTERVALS", 3)
        engine = ManualEngine(Path(root))
        engine.create_stream("s", "n INT, m INT, name STRING, ts TIMESTAMP", time="ts")
        yield engine
        engine.close()


STEPS = ("push", "push", "push", "take", "sink", "seal", "read", "read", "follow", "leave", "tell")


@example_settings(20)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 11)), max_size=40), st.sampled_from((1, 4)))
def test_followers_read_the_same_together_and_alone(steps: list[tuple[str, int]], least: int) -> None:
    with small_engine() as engine, pytest.MonkeyPatch.context() as patch:
        patch.setattr(followed, "LEAST_SHARED", least)
        handles = [engine.register(f"SELECT n, name FROM s WHERE {text}", materialize=False) for text in CONDITIONS]
        followers = [_Follower(engine, handle) for handle in handles[:6]]
        pushed = 0
        for step, number in steps:
            if step in ("push", "sink"):
                rows = [_row(pushed + offset) for offset in range(1 + number % 4)]
                (engine.append if step == "push" else engine.push)("s", rows)
                pushed += len(rows)
            elif step == "take":
                engine.take("s", 1 + number % 3)
            elif step == "seal":
                engine.seal(everything=number % 2 == 0)
            elif step == "follow":
                followers.append(_Follower(engine, handles[number]))
            elif step == "leave" and len(followers) > 1:
                leaving = followers.pop(number % len(followers)).followed
                assert leaving is not None
                engine.invoker.followers.remove(leaving)
            elif step == "tell":
                engine.invoker.followers.queries.advance()
            elif step == "read":
                followers[number % len(followers)].read()
        for follower in followers:
            follower.read()
            assert follower.read() == 0


def _follow_all(engine: ManualEngine, conditions: tuple[str, ...]) -> tuple[list[str], list[FollowedQuery]]:
    handles = [engine.register(f"SELECT n FROM s WHERE {text}", materialize=False) for text in conditions]
    added = [engine.invoker.follow(handle) for handle in handles]
    return handles, [follower for follower in added if isinstance(follower, FollowedQuery)]


def test_only_followers_with_changes_are_told(engine: ManualEngine) -> None:
    engine.create_stream("s", "n INT, ts TIMESTAMP", time="ts")
    conditions = tuple(f"n = {number}" for number in range(100))
    handles, followers = _follow_all(engine, conditions)
    since = [Position.parse(engine.invoke(handle).position) for handle in handles]
    for handle, position, follower in zip(handles, since, followers, strict=True):
        engine.invoker.new_rows(handle, position, follower)
    engine.append("s", [{"n": number, "ts": BASE} for number in (7, 42, 42, 500)])
    unread = [engine.invoker.followers.queries.unread(*pair) for pair in zip(followers, since, strict=True)]
    assert [number for number, entry in enumerate(unread) if entry.end is None] == [7, 42]


def test_advance_returns_the_clauses_of_new_tuples(engine: ManualEngine) -> None:
    engine.create_stream("s", "n INT, ts TIMESTAMP", time="ts")
    handles, followers = _follow_all(engine, tuple(f"n = {number}" for number in range(20)))
    since = engine.invoke(handles[0]).position
    followers_of_all = engine.invoker.followers
    consumer, others = followers_of_all.consumer(), followers_of_all.consumer()
    assert followers_of_all.advance(consumer) is None
    assert followers_of_all.advance(consumer) == set()
    engine.append("s", [{"n": 3, "ts": BASE}])
    # A follower that reads in between does not hide the changes of others.
    engine.invoker.followers.queries.unread(followers[1], Position.parse(since))
    engine.append("s", [{"n": 9, "ts": BASE}])
    assert followers_of_all.advance(consumer) == {followers[3].clause, followers[9].clause}
    assert followers_of_all.advance(consumer) == set()
    engine.append("s", [{"n": 4, "ts": BASE}])
    # Each consumer is told of all changes.
    assert followers_of_all.advance(others) is None
    assert followers_of_all.advance(consumer) == {followers[4].clause}
    assert followers_of_all.advance(others) == set()
    engine.unregister(handles[0])
    assert followers_of_all.advance(consumer) is None


@pytest.mark.parametrize("conditions", [("n >= 0",), tuple(f"n >= {number}" for number in range(5))])
def test_slow_follower_gets_all_changes(engine: ManualEngine, conditions: tuple[str, ...]) -> None:
    """Neither too many intervals nor a follower that starts at an old position hide changes."""
    engine.create_stream("s", "n INT, ts TIMESTAMP", time="ts")
    handles, followers = _follow_all(engine, conditions)
    since = Position.parse(engine.invoke(handles[0]).position)
    engine.invoker.new_rows(handles[0], since, followers[0])
    numbers = list(range(2 * followed.KEPT_INTERVALS))
    for number in numbers:
        engine.append("s", [{"n": number, "ts": BASE}])
        engine.invoker.followers.queries.advance()
    late = engine.invoker.follow(handles[0])
    for follower in (followers[0], late):
        new = engine.invoker.new_rows(handles[0], since, follower)
        assert new.rows.column(0).to_pylist() == numbers


def test_tuples_before_the_first_match_are_skipped(engine: ManualEngine) -> None:
    engine.create_stream("s", "n INT, ts TIMESTAMP", time="ts")
    handles, followers = _follow_all(engine, tuple(f"n = {number}" for number in range(5)))
    since = Position.parse(engine.invoke(handles[3]).position)
    for number in (1, 2, 3, 4, 3):
        engine.append("s", [{"n": number, "ts": BASE}])
        engine.invoker.followers.queries.advance()
    unread = engine.invoker.followers.queries.unread(followers[3], since)
    assert [mark.next_id - since.marks[stream].next_id for stream, mark in unread.since.marks.items()] == [2]
    assert len(engine.invoker.new_rows(handles[3], since, followers[3])) == 2


def test_equal_clauses_are_matched_once(engine: ManualEngine) -> None:
    engine.create_stream("s", "n INT, ts TIMESTAMP", time="ts")
    _, followers = _follow_all(engine, ("n > 5", "5 < n", "n > 6"))
    assert len(engine.invoker.followers.queries) == 2
    for follower in followers:
        engine.invoker.followers.remove(follower)
    assert len(engine.invoker.followers.queries) == 0


def test_follower_of_an_unregistered_query_gets_its_error(engine: ManualEngine) -> None:
    engine.create_stream("s", "n INT, ts TIMESTAMP", time="ts")
    handles, followers = _follow_all(engine, tuple(f"n = {number}" for number in range(5)))
    since = Position.parse(engine.invoke(handles[0]).position)
    for _ in range(2):
        assert not len(engine.invoker.new_rows(handles[0], since, followers[0]))
    engine.unregister(handles[0])
    with pytest.raises(UnknownQuery):
        engine.invoker.new_rows(handles[0], since, followers[0])
