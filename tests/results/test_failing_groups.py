"""Followed groups of which an expression raises an error: their queries fail while it does, and then go on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tureen.errors import QueryFailed
from tureen.results.group_changes import GroupChanges
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
