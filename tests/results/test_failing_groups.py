"""Followed groups of which an expression raises an error: their queries fail while it does, and then go on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tureen.errors import QueryFailed
from tureen.results.groups.group_changes import GroupChanges
from tureen.testing.manual_engine import ManualEngine

BASE = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_follower_that_began_while_its_query_failed_goes_on(engine: ManualEngine) -> None:
    engine.create_stream("s", "k INT, v INT, ts TIMESTAMP", time="ts", clock="stream")
    query = engine.register("SELECT k, sum(v) t FROM s [RANGE 5 SECONDS] GROUP BY k HAVING 9 / (sum(v) - 2) > 0")
    other = engine.register("SELECT k, sum(v) t FROM s [RANGE 5 SECONDS] GROUP BY k HAVING sum(v) > 0")

    def push(second: int, *values: int) -> None:
        at = BASE + timedelta(seconds=second)
        engine.append("s", [{"k": k, "v": value, "ts": at} for k, value in enumerate(values)])

    def kinds(changes: GroupChanges) -> list[str]:
        return [change.kind for change in changes.changed]

    push(0, 2, 3)
    since, since_of_other = (engine.invoker.group_changes(handle, None).position() for handle in (query, other))
    push(1, 1, -1)
    with pytest.raises(QueryFailed, match="division by zero"):
        engine.invoker.group_changes(query, since)
    assert kinds(engine.invoker.group_changes(other, since_of_other)) == ["update", "update"]
    push(2, 5, 5)
    # The answer at the position is not known: it is an error.
    changes = engine.invoker.group_changes(query, since)
    assert kinds(changes) == ["reset", "insert", "insert"]
    assert sorted(change.row["t"] for change in changes.changed[1:]) == sorted(row["t"] for row in engine.invoke(query))
    push(3, 0, 1)
    assert kinds(engine.invoker.group_changes(query, changes.position())) == ["update"]


def test_a_group_that_fails_and_does_not_change_fails_its_query(engine: ManualEngine) -> None:
    engine.create_stream("s", "k INT, v INT, ts TIMESTAMP", time="ts", clock="stream")
    having = "SELECT k, sum(v) t FROM s GROUP BY k HAVING 9 / (sum(v) - 2) > 0"
    query, other = engine.register(having), engine.register(f"{having} AND k >= 0")

    def push(k: int, value: int) -> None:
        engine.append("s", [{"k": k, "v": value, "ts": BASE}])

    push(0, 2)
    push(1, 3)
    since = engine.invoker.group_changes(query, None).position()
    for value in (4, 5):
        # Only another group changes than the one whose HAVING fails.
        push(1, value)
        with pytest.raises(QueryFailed, match="division by zero"):
            engine.invoke(query)
        for handle in (query, other):
            with pytest.raises(QueryFailed, match="division by zero"):
                engine.invoker.group_changes(handle, since)
        # A follower that begins now.
        since = engine.invoker.group_changes(query, None).position()
    push(0, 5)
    for handle in (query, other):
        changes = engine.invoker.group_changes(handle, since)
        assert sorted(change.row["t"] for change in changes.changed if change.kind != "reset") == [7, 12]
    since = changes.position()
    push(1, 1)
    (change,) = engine.invoker.group_changes(query, since).changed
    assert (change.kind, change.row, change.before) == ("update", {"k": 1, "t": 13}, {"k": 1, "t": 12})
    # A follower skips a moment at which another one has seen an error.
    push(0, -5)
    with pytest.raises(QueryFailed, match="division by zero"):
        engine.invoker.group_changes(query, since)
    since = engine.invoker.group_changes(query, None).position()
    push(1, 1)
    with pytest.raises(QueryFailed, match="division by zero"):
        engine.invoker.group_changes(query, since)
