"""Groups in feeds: applied to the answers of queries with groups, the changes of a feed lead to their later answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.pipeline import arrival, upkeep
from tureen.position import BEGINNING, Position, UnreadChanges
from tureen.results.answer import Change
from tureen.soup.feed import ChangeReader
from tureen.soup.tables import Dimensions
from tureen.soup.templates import Templates
from tureen.testing.group_followers import AppliedAnswer, AppliedChange
from tureen.testing.manual_engine import ManualClock, ManualEngine

BASE = datetime(2026, 1, 1, tzinfo=UTC)
GROUPED: tuple[tuple[str, list[str]], ...] = (
    ("SELECT k, count(*) AS n, sum(v) AS s FROM w GROUP BY k", ["k"]),
    ("SELECT k, avg(v) AS a FROM w GROUP BY k HAVING avg(v) > 1 BEGIN NOW - 5 SECONDS END NOW", ["k"]),
    ("SELECT k, max(v) AS m FROM d GROUP BY k BEGIN NOW - 4 SECONDS END NOW", ["k"]),
    ("SELECT count(*) AS n FROM d", []),
    ("SELECT w.k, count(*) AS n FROM w JOIN d ON w.k = d.k GROUP BY w.k", ["k"]),
    ("SELECT w.k, count(DISTINCT t.v) AS n FROM w JOIN dim t ON w.k = t.k GROUP BY w.k", ["k"]),
)
"""Queries with groups and their keys, over a stream with the wall clock, one with a clock of its own, and a table."""
LIMITS = "SELECT k, sum(v) AS s FROM w GROUP BY k HAVING sum(v) < :most BEGIN NOW - 6 SECONDS END NOW"
ROWS = "SELECT v AS x FROM w WHERE k = 1"

Step = tuple[str, Any]


@st.composite
def scripts(draw: st.DrawFn) -> list[Step]:
    """Steps that push rows, let time pass, and read."""
    rows = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=3)
    push = st.tuples(st.sampled_from(["push", "append"]), st.tuples(st.sampled_from(["w", "d"]), rows))
    read = st.tuples(st.just("read"), st.sampled_from([0, 1, 2, 3, 5, 100]))
    other = st.one_of(
        st.tuples(st.just("pass"), st.sampled_from([1, 3, 9])),
        st.tuples(st.sampled_from(["seal", "seal all", "restart"]), st.none()),
        st.tuples(st.just("take"), st.sampled_from(["w", "d"])),
        st.tuples(st.just("table"), st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=2)),
    )
    return draw(st.lists(st.one_of(push, push, read, read, other), min_size=8, max_size=16))


@dataclass
class GroupFeedRun:
    """A feed whose changes are applied to the answers of the queries."""

    root: Path
    clock: ManualClock = field(default_factory=lambda: ManualClock(BASE))
    answers: dict[str, AppliedAnswer] = field(default_factory=dict)
    rows: Counter[int] = field(default_factory=Counter)
    pushed: Counter[int] = field(default_factory=Counter)
    count: int = 0

    def open(self) -> None:
        """Open the pot, as a new process does."""
        self.engine = ManualEngine(self.root, self.clock)
        self.templates = Templates(self.engine.catalog, self.engine.invoker)
        self.reader = ChangeReader(self.engine.catalog, self.engine.invoker, self.templates, None, lambda _: None)

    def create(self, since: str | None) -> None:
        """Create streams and queries, and follow all of them."""
        self.open()
        self.engine.create_stream("w", "k INT, v INT, ts TIMESTAMP", time="ts")
        self.engine.create_stream("d", "k INT, v INT, ts TIMESTAMP", time="ts", clock="stream")
        Dimensions(self.engine.catalog).create("dim", "k INT, v INT", [{"k": 0, "v": 0}, {"k": 1, "v": 1}])
        for sql, keys in GROUPED:
            self.answers[self.engine.register(sql)] = AppliedAnswer(keys)
        template = self.templates.register(LIMITS, [{"most": 2}, {"most": 5}], None)
        self.answers |= {f"{template}.{number}": AppliedAnswer(["k"]) for number in range(2)}
        self.row_query = self.engine.register(ROWS)
        self.position = self.reader.all(since).position() if since is None else since
        if since is None:
            for handle, applied in self.answers.items():
                answer = AppliedAnswer(GROUPED[0][1], ()) if "." in handle else applied
                answer.rows = {applied.key(row): row for row in self.engine.invoke(handle)}
                self.answers[handle] = answer

    def run(self, action: str, value: Any) -> None:
        """Run a step."""
        match action:
            case "push" | "append":
                name, rows = value
                timed = [self._tuple(name, k, v) for k, v in rows]
                (self.engine.push if action == "push" else self.engine.append)(name, timed)
            case "read":
                self.read(value)
            case "pass":
                self.clock.moment += timedelta(seconds=value)
            case "take":
                self.engine.take(value)
            case "table":
                rows = [{"k": k, "v": v} for k, v in value]
                Dimensions(self.engine.catalog).replace("dim", rows)
            case "restart":
                self.engine.close()
                self.open()
            case _:
                self.engine.seal(everything=action == "seal all")

    def _tuple(self, name: str, k: int, v: int) -> dict[str, Any]:
        self.count += 1
        if name == "w" and k == 1:
            self.pushed[v] += 1
        return {"k": k, "v": v, "ts": self.clock.moment - timedelta(seconds=self.count % 3)}

    def read(self, count: int) -> None:
        """Apply the first changes since the last position, and continue from the position of the last of them."""
        batch = self.reader.all(self.position)
        changes = list(batch)
        assert len(batch) == len(changes)
        for change in changes[:count]:
            self.apply(change)
        taken = min(count, len(changes))
        if taken == len(changes):
            self.position = batch.position()
        elif taken:
            self.position = changes[taken - 1].position

    def apply(self, change: Change) -> None:
        """Apply a change."""
        if change.query == self.row_query:
            assert change.kind == "insert"
            self.rows[change.row["x"]] += 1
        elif change.query not in self.answers:
            # A reset of all queries of the template.
            assert change.kind == "reset"
            for number in range(2):
                self.answers[f"{change.query}.{number}"].rows.clear()
        else:
            self.answers[change.query].apply(AppliedChange(change.kind, change.row, change.before))

    def finish(self) -> None:
        """Read everything: the applied answers are those of invocations now."""
        for _ in range(3):
            self.read(1_000_000)
        assert len(self.reader.all(self.position)) == 0
        for handle, applied in self.answers.items():
            rows = list(self.engine.invoke(handle))
            assert not applied.differences(rows), (handle, applied.rows, rows)
        assert self.rows == self.pushed


@example_settings(8, explored=15)
@given(scripts(), st.sampled_from([None, None, BEGINNING]))
def test_changes_of_a_feed_lead_to_the_answers(script: list[Step], since: str | None) -> None:
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(arrival, "TAIL_ROWS", 2)
        patch.setattr(upkeep, "LONG_TAIL", 4)
        patch.setattr(upkeep, "FAN", 2)
        run = GroupFeedRun(Path(folder))
        run.create(since)
        for action, value in script:
            run.run(action, value)
        run.finish()
        run.engine.close()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[GroupFeedRun]:
    """A followed pot."""
    run = GroupFeedRun(tmp_path)
    run.create(None)
    yield run
    run.engine.close()


def test_groups_come_after_rows_and_each_once(run: GroupFeedRun) -> None:
    run.run("append", ("w", [(1, 2)]))
    run.read(1000)
    run.run("append", ("w", [(1, 1), (2, 3), (1, 0)]))
    changes = list(run.reader.all(run.position))
    assert [change.query for change in changes][:2] == [run.row_query] * 2
    assert {change.kind for change in changes} == {"insert", "update", "delete"}
    for index, change in enumerate(changes):
        assert list(run.reader.all(change.position)) == changes[index + 1 :], index


def test_a_change_that_is_not_at_the_end_of_the_feed(run: GroupFeedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are pushed while a feed is read are in the next read: all of its changes end at one position."""
    invoker = run.engine.invoker
    run.run("append", ("w", [(1, 2)]))
    group_changes = invoker.group_changes

    def push_before(*arguments: Any, **options: Any) -> Any:
        monkeypatch.undo()
        run.run("append", ("w", [(1, 3), (2, 2)]))
        return group_changes(*arguments, **options)

    monkeypatch.setattr(invoker, "group_changes", push_before)
    run.read(1000)
    count = next(iter(run.answers))
    assert [row["n"] for row in run.answers[count].rows.values()] == [1]
    run.finish()


def test_another_follower_that_has_read_on_changes_nothing(run: GroupFeedRun) -> None:
    handle = next(iter(run.answers))
    run.run("append", ("w", [(1, 2)]))
    batch = run.reader.all(run.position)
    run.run("pass", 1)
    run.run("append", ("w", [(1, 3)]))
    run.engine.invoker.group_changes(handle, None)
    for change in batch:
        run.apply(change)
    # The feed is read again from a position that the other follower has left behind.
    run.position = batch.position()
    run.finish()


def test_a_position_without_now_resets_groups(run: GroupFeedRun) -> None:
    """Feeds had no groups before, and their positions no NOW."""
    run.run("append", ("w", [(0, 2)]))
    run.read(1000)
    run.run("append", ("w", [(0, 3)]))
    position = Position.parse(run.position)
    changes = list(run.reader.all(str(Position(position.seq, position.marks, position.pushes))))
    kinds = Counter(change.kind for change in changes)
    assert kinds == {"reset": len(GROUPED) + 1, "insert": len(changes) - len(GROUPED) - 1}
    for change in changes:
        run.apply(change)
    run.position = changes[-1].position
    run.finish()


def test_a_query_that_fails_does_not_stop_the_feed(run: GroupFeedRun) -> None:
    failing = run.engine.register("SELECT k, CAST(max(concat('x', v)) AS INT) AS n FROM w GROUP BY k")
    run.run("append", ("w", [(1, 2)]))
    assert failing not in {change.query for change in run.reader.all(run.position)}
    run.finish()


def test_positions_within_groups_name_the_query(run: GroupFeedRun) -> None:
    run.run("append", ("w", [(1, 2), (2, 3)]))
    *changes, last = run.reader.all(run.position)
    unread = [Position.parse(change.position).unread for change in changes]
    assert [each and each.query for each in unread[1:]] == [change.query.partition(".")[0] for change in changes[1:]]
    assert isinstance(unread[0], UnreadChanges)
    assert (unread[0].query, unread[0].after) == ("", 0)
    assert Position.parse(last.position).unread is None
