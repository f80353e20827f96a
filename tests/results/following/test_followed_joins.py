"""Followed joins: each follower reads from the shared operator what it would compute alone."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.results.join_follower import BASE, COLUMNS, ComparedFollower, joined_tuple
from tureen.eddy import join_routing
from tureen.errors import QueryFailed
from tureen.joining import continuous_join
from tureen.joining.join_limits import JoinLimits
from tureen.position import Position
from tureen.results.following import join_operator
from tureen.results.following.followed_joins import JoinFollower
from tureen.results.following.operator_rows import OperatorQuery
from tureen.testing.manual_engine import ManualEngine


def _join_pot(engine: ManualEngine) -> ManualEngine:
    for name in ("a", "b"):
        engine.create_stream(name, COLUMNS, time="ts", clock="stream")
    return engine


def _follow(engine: ManualEngine, conditions: list[str]) -> list[ComparedFollower]:
    handles = [
        engine.register(f"SELECT a.x, b.x AS y FROM a JOIN b ON a.k = b.k WHERE {text}", materialize=False)
        for text in conditions
    ]
    return [ComparedFollower(engine, handle) for handle in handles]


def test_new_tuples_are_joined_once_for_all_queries(engine: ManualEngine) -> None:
    followers = _follow(_join_pot(engine), [f"a.x = {number}" for number in range(5)])
    followers += _follow(engine, ["b.x > 100 AND a.s = '0'"])
    reversed_join = engine.register("SELECT 1 AS one FROM b JOIN a ON b.k = a.k", materialize=False)
    followers.append(ComparedFollower(engine, reversed_join))
    (operator,) = engine.invoker.followers.joins.operators()
    engine.append("a", [joined_tuple(number) for number in range(6)])
    engine.append("b", [joined_tuple(0)])
    assert [follower.read() for follower in followers] == [1, 0, 0, 1, 0, 0, 2]
    # Tuples of "a" have found no partner, the tuple of "b" two.
    totals = operator.join.router.totals()
    assert (totals["tuples"], totals["visits"], totals["matches"]) == (7, 7, 2)
    assert operator.produced == 2


def test_times_are_read_while_a_query_has_windows(engine: ManualEngine) -> None:
    (without,) = _follow(_join_pot(engine), ["a.x >= 0"])
    (operator,) = engine.invoker.followers.joins.operators()
    sql = "SELECT a.x, b.x AS y FROM a [RANGE 3 SECONDS] JOIN b [RANGE 5 SECONDS] ON a.k = b.k"
    within = engine.register(sql, materialize=False)

    def push(first: int) -> set[bool]:
        """Whether the joined tuples of new tuples have times."""
        for name in ("a", "b"):
            engine.append(name, [joined_tuple(number) for number in range(first, first + 9)])
        assert without.read()
        return {tuples.times is not None for piece in operator.blocks[-1].pieces for tuples in piece.tuples}

    assert push(0) == {False}
    follower = ComparedFollower(engine, within)
    assert engine.invoker.followers.joins.operators() == [operator]
    assert push(9) == {True}
    assert follower.read()
    follower.leave()
    assert push(18) == {False}
    follower = ComparedFollower(engine, within)
    assert push(27) == {True}
    assert follower.read()


def test_only_followers_with_rows_are_told(engine: ManualEngine) -> None:
    followers = _follow(_join_pot(engine), [f"a.x = {number}" for number in range(5)])
    every = engine.invoker.followers
    consumer = every.consumer()
    every.advance(consumer)
    engine.append("b", [joined_tuple(0)])
    assert every.advance(consumer) == set()
    engine.append("a", [joined_tuple(3)])
    # A derived stream or another follower may have read before.
    followers[1].read()
    joined = followers[3].followed
    assert isinstance(joined, JoinFollower)
    assert every.advance(consumer) == {joined.clause}
    assert every.advance(consumer) == set()


def test_query_that_comes_later_misses_nothing(engine: ManualEngine) -> None:
    (first,) = _follow(_join_pot(engine), ["a.x = 0"])
    handle = engine.register("SELECT b.s FROM b JOIN a ON a.k = b.k WHERE a.x >= 0", materialize=False)
    since = engine.invoker.new_rows(handle, None).position()
    engine.append("a", [joined_tuple(number) for number in range(6)])
    engine.append("b", [joined_tuple(0)])
    assert first.read() == 1
    # The operator has joined these tuples, but not for this query.
    late = ComparedFollower(engine, handle, since)
    assert late.read() == 2
    engine.append("b", [joined_tuple(3)])
    assert (late.read(), first.read()) == (2, 1)


def test_follower_that_was_removed_misses_nothing(engine: ManualEngine) -> None:
    """One thread may close it while another is about to read."""
    removed, other = _follow(_join_pot(engine), ["a.x = 0", "a.x = 3"])
    removed.leave()
    engine.append("a", [joined_tuple(number) for number in range(6)])
    engine.append("b", [joined_tuple(0)])
    assert (other.read(), removed.read()) == (1, 1)


def test_rows_beyond_the_limit_are_computed_by_each_follower(
    engine: ManualEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    followers = _follow(_join_pot(engine), ["a.x = 0", "a.x > 0"])
    monkeypatch.setattr(continuous_join, "OPERATOR_LIMITS", JoinLimits(rows=3))
    engine.append("a", [joined_tuple(number) for number in range(10)])
    engine.append("b", [joined_tuple(number) for number in range(10)])
    assert sum(follower.read() for follower in followers) > 3
    engine.append("b", [joined_tuple(10)])
    assert [follower.read() for follower in followers] == [0, 0]


def test_conditions_of_several_queries_are_evaluated_once(engine: ManualEngine) -> None:
    condition = "(a.x + b.x) % 2 = 0"
    followers = _follow(_join_pot(engine), [f"a.x >= {number} AND {condition}" for number in range(3)])
    (operator,) = engine.invoker.followers.joins.operators()
    engine.append("a", [joined_tuple(number) for number in range(8)])
    engine.append("b", [joined_tuple(number) for number in range(8)])
    assert sum(follower.read() for follower in followers) > 0
    (block,) = operator.blocks
    assert all(len(piece.applied) == 1 for piece in block.pieces)
    assert len(operator.join.consumers) == 3


def test_condition_that_is_written_twice_counts_once(engine: ManualEngine) -> None:
    condition = "(a.x + b.x) % 2 = 0"
    (follower,) = _follow(_join_pot(engine), [f"{condition} AND {condition}"])
    engine.append("a", [joined_tuple(0)])
    engine.append("b", [joined_tuple(0)])
    assert follower.read() == 1
    follower.leave()
    assert len(engine.invoker.followers.joins) == 0


def test_rows_of_many_queries_are_taken_at_once(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the query whose rows have another shape takes its own, and one that is within a block."""
    followers = _follow(_join_pot(engine), [f"a.x = {number}" for number in range(5)])
    other = engine.register("SELECT a.s FROM a JOIN b ON a.k = b.k", materialize=False)
    followers.append(ComparedFollower(engine, other))
    reads = []
    read = OperatorQuery.read

    def counted(self: OperatorQuery, *arguments: Any) -> Any:
        reads.append(self)
        return read(self, *arguments)

    monkeypatch.setattr(OperatorQuery, "read", counted)
    engine.append("a", [joined_tuple(number) for number in range(6)])
    engine.append("b", [joined_tuple(0), joined_tuple(1)])
    assert [follower.read() for follower in followers] == [1, 1, 0, 1, 1, 4]
    assert len(reads) == 2, "a query without rows, and the one with another shape"
    engine.append("b", [joined_tuple(0), joined_tuple(1)])
    followers[0].read_partly(0)
    assert [follower.read() for follower in followers[:2]] == [0, 1]


def test_output_that_fails_concerns_its_query_alone(engine: ManualEngine) -> None:
    _join_pot(engine)
    join = "FROM a JOIN b ON a.k = b.k WHERE a.x ="
    sql = "SELECT CAST(concat(a.s, b.s) AS INT) AS n"
    handles = [engine.register(f"{sql} {join} {number}", materialize=False) for number in (0, 1)]
    followers = [ComparedFollower(engine, handle) for handle in handles]
    engine.append("a", [{**joined_tuple(0), "s": "1"}, {**joined_tuple(0), "x": 1, "s": "z"}])
    engine.append("b", [joined_tuple(0)])
    assert followers[0].read() == 1
    with pytest.raises(QueryFailed, match="Could not convert"):
        engine.invoker.new_rows(followers[1].handle, followers[1].position, followers[1].followed)


def test_rows_of_exists_are_computed_only_where_there_may_be_some(
    engine: ManualEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    _join_pot(engine)
    sql = "SELECT a.x FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.x = {})"
    handles = [engine.register(sql.format(number), materialize=False) for number in range(3)]
    followers = [engine.invoker.follow(handle) for handle in handles]
    positions = [Position.parse(engine.invoker.new_rows(handle, None).position()) for handle in handles]
    (operator,) = engine.invoker.followers.joins.operators()
    alone: list[str] = []
    changes_of_join = engine.invoker.answers.changes_of_join

    def counted(inputs: Any, snapshot: Any, ready: Any, since: Position, until: Any) -> Any:
        alone.append(str(since))
        return changes_of_join(inputs, snapshot, ready, since, until)

    monkeypatch.setattr(engine.invoker.answers, "changes_of_join", counted)
    engine.append("a", [joined_tuple(0)])
    for number in range(3):
        engine.append("b", [{**joined_tuple(0), "x": 1}])
        read = [
            engine.invoker.new_rows(handle, position, follower)
            for handle, position, follower in zip(handles, positions, followers, strict=True)
        ]
        assert [len(new) for new in read] == [0, 1, 0]
        assert len(alone) == number + 1, "only the query that has a partner"
    assert operator.produced == 3


def test_failing_condition_concerns_its_query_alone(engine: ManualEngine) -> None:
    followers = _follow(_join_pot(engine), ["a.x = 0", "CAST(concat(a.s, b.s, 'x') AS INT) > 0"])
    engine.append("a", [joined_tuple(0)])
    engine.append("b", [joined_tuple(0)])
    assert followers[0].read() == 1
    with pytest.raises(QueryFailed, match="Could not convert"):
        engine.invoker.new_rows(followers[1].handle, followers[1].position, followers[1].followed)


def test_order_of_visits_follows_the_data(
    engine: ManualEngine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(join_routing, "STATISTICS_WINDOW", 200)
    # Costs are equal, so that only the fan-out counts.
    monkeypatch.setattr(continuous_join, "perf_counter", lambda: 0.0)
    engine.create_stream("a", "k INT, j INT, ts TIMESTAMP", time="ts", clock="stream")
    for name, column in (("b", "k"), ("c", "j")):
        engine.create_stream(name, f"{column} INT, ts TIMESTAMP", time="ts", clock="stream")
        engine.push(name, [{column: number, "ts": BASE} for number in range(20)])
    sql = "SELECT a.k, a.j FROM a JOIN b ON a.k = b.k JOIN c ON a.j = c.j"
    follower = ComparedFollower(engine, engine.register(sql, materialize=False))

    def push(selective: str, other: str) -> list[str]:
        """Push tuples of which few have a partner by one column; the order of visits that they lead to."""
        for number in range(40):
            rows = [{selective: 20 * row, other: row % 20, "ts": BASE} for row in range(number, number + 20)]
            engine.append("a", rows)
            follower.read()
        (about,) = engine.invoker.explain(follower.handle)["operator"]["inputs"]
        order: list[str] = about["order"]
        return order

    with caplog.at_level("INFO", "tureen"):
        assert push("k", "j") == ["b", "c"]
        caplog.clear()
        assert push("j", "k") == ["c", "b"]
    messages = [record.message for record in caplog.records if "are now joined" in record.message]
    assert messages[-1] == "new tuples of 'a' are now joined in the order c, b; before: b, c"
    assert engine.invoker.followers.joins.counts()["order_changes"] >= len(messages) > 0


def test_explain_of_a_join_that_nobody_follows_has_no_operator(engine: ManualEngine) -> None:
    (follower,) = _follow(_join_pot(engine), ["a.x = 0"])
    assert engine.invoker.explain(follower.handle)["operator"]["queries"] == 1
    follower.leave()
    assert engine.invoker.explain(follower.handle)["operator"] is None
    assert engine.invoker.followers.joins.counts()["operators"] == 0


def test_operator_that_is_far_behind_starts_at_the_end(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    (follower,) = _follow(_join_pot(engine), ["a.x >= 0"])
    (operator,) = engine.invoker.followers.joins.operators()
    monkeypatch.setattr(join_operator, "MOST_BEHIND", 3)
    engine.append("a", [joined_tuple(number) for number in range(3)])
    engine.append("b", [joined_tuple(number) for number in range(4)])
    assert follower.read() == 4
    assert operator.produced == 0
    engine.append("b", [joined_tuple(4)])
    assert follower.read() == operator.produced == 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.x FROM a JOIN b ON a.k < b.k",
        "SELECT a.x FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k > a.k)",
        "SELECT a.x FROM a LEFT JOIN b ON a.k = b.k",
        "SELECT count(*) AS n FROM a JOIN b ON a.k = b.k",
    ],
)
def test_joins_that_share_no_operator(engine: ManualEngine, sql: str) -> None:
    handle = _join_pot(engine).register(sql, materialize=False)
    assert engine.invoker.follow(handle) is None


def test_derived_streams_over_one_join_share_its_operator(engine: ManualEngine) -> None:
    _join_pot(engine)
    for number in range(3):
        sql = f"SELECT a.x, b.x AS y FROM a JOIN b ON a.k = b.k WHERE a.x = {number}"
        engine.derive_stream(f"derived{number}", sql)
    engine.derive()
    for number in range(12):
        engine.append("ab"[number % 2], [joined_tuple(number)])
        engine.derive()
    (operator,) = engine.invoker.followers.joins.operators()
    assert operator.join.router.totals()["tuples"] == 12
    for number in range(3):
        rows = Counter(map(str, engine.invoker.answer_once(f"SELECT x, y FROM derived{number}")))
        sql = f"SELECT a.x, b.x AS y FROM a JOIN b ON a.k = b.k WHERE a.x = {number}"
        assert rows == Counter(map(str, engine.invoker.answer_once(sql)))
        assert rows
