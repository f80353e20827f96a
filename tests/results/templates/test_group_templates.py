"""The changes of groups of a template: those of all its queries."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tests.results.grouped_rows import BASE, ROW, SCHEMA, timed_rows
from tureen.handle import member_handle
from tureen.position import Position
from tureen.results.invoke import Invoker
from tureen.soup.templates import Templates
from tureen.testing.manual_engine import ManualClock, ManualEngine


@pytest.fixture
def engine(tmp_path: Path) -> ManualEngine:
    """A pot whose clock a test sets."""
    return ManualEngine(tmp_path / "pot", ManualClock(BASE))


@example_settings(8)
@given(
    st.lists(st.lists(ROW, min_size=1, max_size=5), min_size=1, max_size=6),
    st.booleans(),
    st.sampled_from(["", " AND 'a' < 'b'"]),
)
def test_a_template_changes_as_its_queries_do(
    pushes: list[list[dict[str, Any]]], only_turns: bool, condition: str
) -> None:
    having = f"avg(v) < :least{condition}"
    sql = f"SELECT k, :name AS who, avg(v) a FROM s [RANGE 5 SECONDS] WHERE k <> :x GROUP BY k HAVING {having}"
    values = [{"least": least, "x": x, "name": f"{x}-{least}"} for x in (1, 2) for least in (0.15, 3.0, 9.5)]
    with TemporaryDirectory() as root:
        now = ManualClock(BASE)
        engine = ManualEngine(Path(root), now)
        engine.create_stream("s", SCHEMA, time="ts")
        templates = Templates(engine.catalog, engine.invoker)
        handle = templates.register(sql, values, None, label="name")
        templates.remove(handle, [1], None)
        position = templates.group_changes(handle, None, only_turns).position()
        for rows in pushes:
            now.moment += timedelta(seconds=2)
            engine.append("s", timed_rows(rows, now))
            changes = templates.group_changes(handle, position, only_turns)
            expected = [
                (query.kind, number, query.row, query.before)
                for number in (0, 2, 3, 4, 5)
                for query in engine.invoker.group_changes(member_handle(handle, number), position, only_turns).changed
            ]
            seen = [(change.kind, change.member, change.row, change.before) for change in changes.changed]
            assert sorted(map(repr, seen)) == sorted(map(repr, expected))
            assert [change.label for change in changes.changed] == [change.row["who"] for change in changes.changed]
            position = changes.position()


@pytest.mark.parametrize("only_turns", [False, True])
def test_queries_added_to_a_template_have_all_their_groups_inserted(engine: ManualEngine, only_turns: bool) -> None:
    engine.create_stream("s", "k INT, n INT, ts TIMESTAMP", time="ts", clock="stream")
    templates = Templates(engine.catalog, engine.invoker)
    sql = "SELECT k, sum(n) t FROM s GROUP BY k HAVING sum(n) > :least"
    handle = templates.register(sql, [{"least": 5}], None)
    answers: dict[int, dict[int, int]] = {}

    def push(**sums: int) -> None:
        engine.append("s", [{"k": int(key[1:]), "n": n, "ts": BASE} for key, n in sums.items()])

    def read(since: Position) -> list[tuple[str, int, int, int]]:
        changes = templates.group_changes(handle, since, only_turns)
        for change in changes.changed:
            answer = answers.setdefault(change.member, {})
            if change.kind == "delete":
                del answer[change.row["k"]]
            else:
                answer[change.row["k"]] = change.row["t"]
        positions.append(changes.position())
        return sorted((change.kind, change.member, change.row["k"], change.row["t"]) for change in changes.changed)

    push(k1=10, k2=3)
    positions = [templates.group_changes(handle, None, only_turns).position()]
    templates.add(handle, [{"least": 1}, {"least": 100}])
    assert read(positions[-1]) == [("insert", 1, 1, 10), ("insert", 1, 2, 3)]
    assert read(positions[-1]) == []
    push(k1=1)
    updates = [("update", 1, 1, 11), ("update", 0, 1, 11)]
    assert read(positions[-1]) == ([] if only_turns else sorted(updates))
    # A query is added, and a group changes, before the next read.
    templates.add(handle, [{"least": 0}])
    push(k2=100)
    inserts = [("insert", 0, 2, 103), ("insert", 2, 2, 103), ("insert", 3, 1, 11), ("insert", 3, 2, 103)]
    assert read(positions[-1]) == sorted([*inserts, *([] if only_turns else [("update", 1, 2, 103)])])
    templates.remove(handle, [3], None)
    # In another process, from every position, the answers are the same in the end.
    for start, since in enumerate(positions[:2]):
        again = Templates(engine.catalog, Invoker(engine.catalog)).group_changes(handle, since, only_turns)
        inserted = {change.member for change in again.changed if change.kind == "insert"}
        assert inserted == ({0, 1, 2} if not start else {0, 2}), since
    if not only_turns:
        for member in (0, 1, 2):
            rows = engine.invoke(member_handle(handle, member))
            assert answers[member] == {row["k"]: row["t"] for row in rows}


def test_a_read_of_added_queries_continues_where_it_stopped(engine: ManualEngine) -> None:
    engine.create_stream("s", "k INT, n INT, ts TIMESTAMP", time="ts", clock="stream")
    templates = Templates(engine.catalog, engine.invoker)
    sql = "SELECT k, sum(n) t FROM s GROUP BY k HAVING sum(n) > :least"
    handle = templates.register(sql, [{"least": 5}], None)
    engine.append("s", [{"k": k, "n": 7, "ts": BASE} for k in range(6)])
    since = templates.group_changes(handle, None, False).position()
    templates.add(handle, [{"least": 1}])
    engine.append("s", [{"k": 0, "n": 1, "ts": BASE}])
    changes = templates.group_changes(handle, since, False)
    positions = [Position.parse(text) for text in changes.positions()]
    templates.add(handle, [{"least": 0}])
    assert len(changes) == 7
    for index, position in enumerate(positions[:-1]):
        for reader in (templates, Templates(engine.catalog, Invoker(engine.catalog))):
            rest = reader.group_changes(handle, position, False)
            assert rest.changed == changes.changed[index + 1 :]
            following = reader.group_changes(handle, rest.position(), False)
            assert {(change.kind, change.member) for change in following.changed} == {("insert", 2)}
            assert len(following) == 6
