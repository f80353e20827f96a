"""Turns of groups that must last: a follower that stops anywhere misses none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tureen.position import Position
from tureen.results.groups.group_changes import GroupChanges
from tureen.soup.group_batches import GroupReader
from tureen.soup.turns import change_choice
from tureen.testing.manual_engine import ManualEngine

BASE = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_follower_that_stops_between_two_lasting_turns_misses_none(engine: ManualEngine) -> None:
    engine.create_stream("s", "k INT, v DOUBLE, ts TIMESTAMP", time="ts", clock="stream")
    query = engine.register("SELECT k, avg(v) a FROM s [RANGE 1 SECOND] GROUP BY k HAVING avg(v) < 5")

    def read(reader: GroupReader, since: Position, second: int, value: float) -> GroupChanges:
        engine.append("s", [{"k": k, "v": value, "ts": BASE + timedelta(seconds=second)} for k in (1, 2)])
        return reader.read(since, lambda since, turns: engine.invoker.group_changes(query, since, turns))

    reader = GroupReader(change_choice("turn", "10 seconds"))
    changes = read(reader, Position.parse(engine.invoke(query).position), 0, 9.0)
    for second in (10, 21):
        changes = read(reader, changes.position(), second, 1.0)
    first, last = (change.row["k"] for change in changes.changed)
    positions = list(changes.positions())
    assert positions == [str(changes.position(0)), str(changes.position())]
    resumed = []
    for position in positions:
        reader = GroupReader(change_choice("turn", "10 seconds"))
        changes = read(reader, Position.parse(position), 22, 1.0)
        changes = read(reader, changes.position(), 33, 1.0)
        resumed.append({change.row["k"] for change in changes.changed})
    # What was reported may come again with what was not.
    assert resumed == [{first, last}, set()]
