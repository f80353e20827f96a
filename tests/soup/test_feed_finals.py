"""Final groups in feeds: each is there once, wherever reads are interrupted, as for a follower of its query."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.closed.rules import Rules
from tureen.position import BEGINNING, Position
from tureen.punctuation import Punctuation
from tureen.soup.feed import ChangeReader
from tureen.soup.templates import Templates
from tureen.testing.manual_engine import ManualClock, ManualEngine

BASE = datetime(2026, 1, 1, tzinfo=UTC)
FINALS = (
    "SELECT k, count(*) AS n FROM s GROUP BY k EMIT FINAL",
    "SELECT s.k, count(*) AS n FROM s JOIN d ON s.k = d.k GROUP BY s.k EMIT FINAL",
    "SELECT k, count(*) AS n, window_start FROM s [TUMBLE 4 SECONDS] GROUP BY k EMIT FINAL",
    "SELECT k, count(*) AS n, window_start FROM d [TUMBLE 4 SECONDS] GROUP BY k EMIT FINAL",
)
OTHERS = ("SELECT k FROM s WHERE k > 1", "SELECT k, count(*) AS n FROM d GROUP BY k")

Step = tuple[str, Any]


class FinalFeed:
    """A feed, and what it has reported of queries with EMIT FINAL."""

    def __init__(self, root: Path) -> None:
        """Create streams and queries: one stream has the wall clock, the other its own, and a lateness."""
        self.root, self.clock, self.position = root, ManualClock(BASE), BEGINNING
        self.open()
        self.engine.create_stream("s", "k INT, ts TIMESTAMP", time="ts")
        rules = Rules((), 2_000_000)
        self.engine.create_stream("d", "k INT, ts TIMESTAMP", time="ts", clock="stream", rules=rules)
        self.handles = [self.engine.register(sql) for sql in FINALS]
        for sql in OTHERS:
            self.engine.register(sql)
        self.reported: dict[str, list[Any]] = {handle: [] for handle in self.handles}

    def open(self) -> None:
        """Open the pot, as a new process does."""
        self.engine = ManualEngine(self.root, self.clock)
        templates = Templates(self.engine.catalog, self.engine.invoker)
        self.reader = ChangeReader(self.engine.catalog, self.engine.invoker, templates, None, lambda _: None)

    def run(self, action: str, value: Any) -> None:
        """Run a step."""
        match action:
            case "push":
                name, keys = value
                self.clock.moment += timedelta(seconds=1)
                self.engine.append(name, [{"k": k, "ts": self.clock.moment} for k in keys])
            case "close":
                name, k = value
                self.engine.append(name, [Punctuation(k=k)])
            case "take":
                self.engine.take(value)
            case "pass":
                self.clock.moment += timedelta(seconds=value)
            case "restart":
                self.engine.close()
                self.open()
            case _:
                self.read(value)

    def read(self, count: int) -> bool:
        """Read some changes, and continue from the position of the last of them; whether there were more."""
        batch = self.reader.all(self.position)
        changes = list(batch)
        for change in changes[:count]:
            if change.query in self.reported:
                assert change.kind == "insert"
                self.reported[change.query].append(change.row)
        if count >= len(changes):
            self.position = batch.position()
        elif count:
            self.position = changes[count - 1].position
        return bool(changes)

    def check(self) -> None:
        """Read the rest, and compare with followers of the queries."""
        while self.read(100):
            pass
        for handle, rows in self.reported.items():
            changes = self.engine.invoker.group_changes(handle, Position.parse(BEGINNING)).changed
            assert sorted(map(str, rows)) == sorted(str(change.row) for change in changes)


STEPS: st.SearchStrategy[list[Step]] = st.lists(
    st.one_of(
        st.tuples(
            st.just("push"), st.tuples(st.sampled_from("sd"), st.lists(st.integers(0, 4), min_size=1, max_size=4))
        ),
        st.tuples(st.just("close"), st.tuples(st.sampled_from("sd"), st.integers(0, 4))),
        st.tuples(st.just("read"), st.sampled_from([0, 1, 2, 3, 100])),
        st.tuples(st.just("take"), st.sampled_from("sd")),
        st.tuples(st.just("pass"), st.sampled_from([1, 3, 9])),
        st.just(("restart", None)),
    ),
    min_size=8,
    max_size=20,
)


@given(STEPS)
@example_settings(10)
def test_feeds_report_final_groups_once(steps: list[Step]) -> None:
    with TemporaryDirectory() as directory:
        feed = FinalFeed(Path(directory))
        for action, value in steps:
            feed.run(action, value)
        feed.check()
        feed.engine.close()


def test_a_feed_reports_a_group_when_it_is_closed(tmp_path: Path) -> None:
    feed = FinalFeed(tmp_path)
    feed.run("push", ("s", [1, 2, 1]))
    feed.position = feed.reader.all(None).position()
    feed.run("close", ("s", 1))
    assert feed.read(100)
    assert feed.reported[feed.handles[0]] == [{"k": 1, "n": 2}]
    assert not feed.read(100)
    feed.engine.close()
