"""Followed groups: applying the changes since any position to the answer of then gives the answer of now."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tests.results.grouped_rows import BASE, ROW, SCHEMA, timed_rows
from tureen.aggregates.selected_kernels import combine_selected
from tureen.errors import TureenError, Unsupported
from tureen.pipeline import arrival, upkeep
from tureen.position import BEGINNING, Mark, Position
from tureen.results.groups import followed_groups, incremental_groups
from tureen.results.groups.group_changes import GroupChanges
from tureen.soup.group_batches import GroupReader
from tureen.soup.tables import Dimensions
from tureen.soup.turns import change_choice
from tureen.testing.group_followers import AppliedAnswer, AppliedChange
from tureen.testing.manual_engine import ManualClock, ManualEngine
from tureen.testing.oracle import Handle, Oracle

QUERIES: list[tuple[str, list[str]]] = [
    ("SELECT k, avg(v) a, count(*) c FROM s [RANGE 10 SECONDS] GROUP BY k HAVING avg(v) < 5", ["k"]),
    (
        "SELECT f, k % 2 AS odd, sum(v) t, min(n) low, stddev(v) d FROM s [RANGE 7 SECONDS] GROUP BY f, k % 2",
        ["f", "odd"],
    ),
    ("SELECT count(*) c, sum(n) t FROM s [RANGE 5 SECONDS]", []),
    ("SELECT count(*) c FROM s [RANGE 5 SECONDS] HAVING count(*) > 2", []),
    ("SELECT k, max(n) m FROM s WHERE n > 1 GROUP BY k ORDER BY m DESC", ["k"]),
    ("SELECT k, count(*) c FROM s GROUP BY k BEGIN NOW - INTERVAL 8 SECONDS END NOW - INTERVAL 2 SECONDS", ["k"]),
    ("SELECT k, count(DISTINCT n) c FROM s [RANGE 9 SECONDS] GROUP BY k", ["k"]),
    ("SELECT k, median(v) m FROM s [RANGE 9 SECONDS] GROUP BY k", ["k"]),
    ("SELECT k, sum(n) t FROM s [ROWS 4] GROUP BY k", ["k"]),
    ("SELECT window_start, k, sum(n) t FROM s [TUMBLE 4 SECONDS] GROUP BY k", ["window_start", "k"]),
    ("SELECT window_start, k, sum(n) t FROM s [TUMBLE 4 SECONDS EMIT PARTIAL] GROUP BY k", ["window_start", "k"]),
    ("SELECT k, grouping_id() g, count(*) c FROM s [RANGE 6 SECONDS] GROUP BY ROLLUP (k)", ["k", "g"]),
    (
        "SELECT a.k, count(*) c FROM s AS a [RANGE 6 SECONDS] JOIN s AS b [RANGE 6 SECONDS] ON a.k = b.n GROUP BY a.k",
        ["k"],
    ),
    ("SELECT k, 10 / sum(n) q FROM s [RANGE 6 SECONDS] WHERE n > 0 GROUP BY k", ["k"]),
]

STEP = st.one_of(
    st.tuples(st.just("append"), st.lists(ROW, min_size=1, max_size=4)),
    st.tuples(st.just("append"), st.lists(ROW, min_size=1, max_size=4)),
    st.tuples(st.just("push"), st.lists(ROW, min_size=1, max_size=4)),
    st.tuples(st.sampled_from(["take", "seal", "seal all", "pay", "expire", "restart"]), st.none()),
    st.tuples(st.just("wait"), st.sampled_from([1, 1_000_000, 2_500_000, 4_000_001, 30_000_000])),
    st.tuples(st.just("read"), st.integers(0, 7)),
)


class Followers:
    """Two followers of each query: one that always reads, and one that resumes at positions of the past."""

    def __init__(self, engine: ManualEngine, oracle: Oracle, queries: list[tuple[str, list[str]]]) -> None:
        """Register the queries."""
        self.engine = engine
        self._oracles: list[Handle] = [oracle.register(sql) for sql, _ in queries]
        self.keys = [keys for _, keys in queries]
        self._handles = [engine.register(sql, materialize=index % 2 == 0) for index, (sql, _) in enumerate(queries)]
        self._steady = [AppliedAnswer(keys, self.answer(number)) for number, keys in enumerate(self.keys)]
        self._positions = [engine.invoke(handle).position for handle in self._handles]
        self._past: list[tuple[int, str, AppliedAnswer]] = []

    def answer(self, number: int) -> list[dict[str, Any]]:
        """The rows of a query's answer."""
        return self._oracles[number].invoke()

    def read(self, choice: int) -> None:
        """Read the changes of every query, apply them, and compare with the oracle."""
        for number, handle in enumerate(self._handles):
            changes = read_changes(self.engine, handle, self._positions[number])
            stop = choice % (len(changes) + 1)
            for index, change in enumerate(applied(changes)):
                if index == stop:
                    self._remember(number, str(changes.position(index - 1)) if index else self._positions[number])
                self._steady[number].apply(change)
            self._positions[number] = str(changes.position())
            assert list(changes.positions()) == [str(changes.position(index)) for index in range(len(changes))]
            assert not self._steady[number].differences(self.answer(number)), handle
            assert not len(read_changes(self.engine, handle, self._positions[number]))
            self._remember(number, self._positions[number])

    def _remember(self, number: int, position: str) -> None:
        rows = AppliedAnswer(self.keys[number], self._steady[number].rows.values())
        self._past.append((number, position, rows))

    def resume(self, choice: int) -> None:
        """Resume from some positions of the past."""
        for number, position, rows in self._past[choice % 3 :: 3][-12:]:
            answer = AppliedAnswer(self.keys[number], rows.rows.values())
            for _ in range(2):
                changes = read_changes(self.engine, self._handles[number], position)
                for change in applied(changes):
                    answer.apply(_loosely(change, answer))
                position = str(changes.position())
            assert not answer.differences(self.answer(number)), (self._handles[number], position)

    def restart(self) -> None:
        """Continue in another process: nothing is in memory."""
        self.engine = self.engine_again()

    def engine_again(self) -> ManualEngine:
        """The pot, opened again."""
        root, clock = self.engine.catalog.root, self.engine._clock
        self.engine.close()
        return ManualEngine(root, clock)


def _loosely(change: AppliedChange, answer: AppliedAnswer) -> AppliedChange:
    """A change whose row before is that of the answer, if it differs by rounding only."""
    if change.before is None:
        return change
    own = answer.rows[answer.key(change.before)]
    assert not AppliedAnswer(["_"], [{**own, "_": 0}]).differences([{**change.before, "_": 0}])
    return change._replace(before=own)


def read_changes(engine: ManualEngine, handle: str, since: str) -> GroupChanges:
    """The changes since a position."""
    return engine.invoker.group_changes(handle, Position.parse(since))


def applied(changes: GroupChanges) -> Iterator[AppliedChange]:
    """Changes, to be applied to an answer."""
    for change in changes.changed:
        yield AppliedChange(change.kind, change.row, change.before)


@pytest.mark.parametrize("clock", ["wall", "stream"])
@example_settings(12, shrink=False)
@given(
    st.lists(STEP, max_size=25),
    st.lists(st.sampled_from(range(len(QUERIES))), min_size=3, max_size=5, unique=True),
    st.sampled_from([1, 64]),
    st.sampled_from([None, "8 seconds"]),
)
def test_changes_lead_to_the_current_answer(
    clock: str, steps: list[tuple[str, Any]], chosen: list[int], kept: int, retain: str | None
) -> None:
    with TemporaryDirectory() as root, pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrival, "TAIL_ROWS", 4)
        patch.setattr(upkeep, "TAIL_ROWS", 4)
        patch.setattr(upkeep, "FAN", 2)
        patch.setattr(followed_groups, "KEPT_DELTAS", kept)
        now = ManualClock(BASE)
        # Tuples of the future expire as the wall clock moves, which a stream with a clock of its own does not see.
        ago = timedelta(hours=1 if clock == "stream" else 0)
        engine, oracle = ManualEngine(Path(root), now), Oracle(now)
        for pot in (engine, oracle):
            pot.create_stream("s", SCHEMA, time="ts", clock=clock, retain=retain)
        followers = Followers(engine, oracle, [QUERIES[number] for number in chosen])
        for step, argument in [*steps, ("read", 1), ("read", 0)]:
            take_step(followers, oracle, now, step, argument, ago)
        followers.resume(0)


def take_step(followers: Followers, oracle: Oracle, now: ManualClock, step: str, argument: Any, ago: timedelta) -> None:
    """Take a random step."""
    engine = followers.engine
    match step:
        case "append" | "push":
            rows = timed_rows(argument, now, ago)
            (engine.append if step == "append" else engine.push)("s", rows)
            oracle.push("s", rows)
        case "wait":
            now.moment += timedelta(microseconds=argument)
        case "read":
            followers.read(argument)
            followers.resume(argument)
        case "restart":
            followers.restart()
        case "take":
            engine.take("s", 1)
        case "expire":
            engine.expire()
        case "pay":
            engine.compile()
            engine.pay()
        case _:
            engine.seal(everything=step == "seal all")


@pytest.fixture
def engine(tmp_path: Path) -> ManualEngine:
    """A pot whose clock a test sets."""
    return ManualEngine(tmp_path / "pot", ManualClock(BASE))


def _moments(engine: ManualEngine, *rows: tuple[int, int, float]) -> None:
    """Append rows: a second, a key and a value."""
    engine.append(
        "s", [{"k": k, "f": 0.0, "v": v, "n": 1, "ts": BASE + timedelta(seconds=second)} for second, k, v in rows]
    )


def test_a_turn_is_reported_once_it_has_lasted(engine: ManualEngine) -> None:
    """In the clock of the query, here the stream's."""
    engine.create_stream("s", SCHEMA, time="ts", clock="stream")
    query = engine.register("SELECT k, avg(v) a FROM s [RANGE 1 SECOND] GROUP BY k HAVING avg(v) < 5")
    reader = GroupReader(change_choice("turn", "30 seconds"))
    _moments(engine, (0, 1, 9.0), (0, 2, 9.0))
    position: Position | None = Position.parse(engine.invoke(query).position)
    seen, positions = [], []
    for second, first, second_value in [(10, 1.0, 9.0), (20, 1.0, 1.0), (25, 1.5, 9.0), (40, 2.0, 1.0), (41, 2.0, 1.0)]:
        _moments(engine, (second, 1, first), (second, 2, second_value))
        changes = reader.read(position, lambda since, turns: engine.invoker.group_changes(query, since, turns))
        seen.append([(change.kind, change.row["k"]) for change in changes.changed])
        position = changes.position()
        positions.append(str(position))
    assert seen == [[], [], [], [("insert", 1)], []]
    # While turns are pending, the position is before them, so that a follower that resumes does not miss them.
    again = GroupReader(change_choice("turn", "1 second"))
    for _ in range(2):
        changes = again.read(position, lambda since, turns: engine.invoker.group_changes(query, since, turns))
        position = changes.position()
        _moments(engine, (45, 1, 2.0), (45, 2, 1.0))
    assert [(change.kind, change.row["k"]) for change in changes.changed] == [("insert", 2)]
    assert positions == sorted(positions)


def test_a_position_whose_tuples_expired_resets_the_answer(tmp_path: Path) -> None:
    engine = ManualEngine(tmp_path, ManualClock(BASE + timedelta(hours=1)))
    engine.create_stream("s", SCHEMA, time="ts", clock="stream", retain="10 seconds")
    query = engine.register("SELECT k, count(*) c FROM s GROUP BY k")
    _moments(engine, (0, 1, 1.0), (0, 2, 1.0))
    since = engine.invoke(query).position
    assert not len(read_changes(engine, query, since))
    _moments(engine, (60, 2, 1.0), (60, 3, 1.0))
    # The followed groups are in memory, so nothing is lost.
    assert sorted((change.kind, change.row["k"]) for change in read_changes(engine, query, since).changed) == [
        ("delete", 1),
        ("insert", 3),
    ]
    again = ManualEngine(tmp_path, ManualClock(BASE + timedelta(hours=1)))
    changes = read_changes(again, query, since)
    assert [change.kind for change in changes.changed] == ["reset", "insert", "insert"]
    answer = AppliedAnswer(["k"], [{"k": 1, "c": 1}, {"k": 2, "c": 1}])
    first, *others = applied(changes)
    answer.apply(first)
    # Interrupted after the reset.
    rest = read_changes(again, query, str(changes.position(0)))
    for change in applied(rest):
        answer.apply(change)
    assert not answer.differences([{"k": 2, "c": 1}, {"k": 3, "c": 1}])
    assert len(others) == 2


@pytest.mark.parametrize("clock", ["wall", "stream"])
def test_a_table_that_is_replaced_changes_the_groups(engine: ManualEngine, clock: str) -> None:
    """Also if the time of the streams' clock has not moved."""
    engine.create_stream("s", SCHEMA, time="ts", clock=clock)
    tables = Dimensions(engine.catalog)
    tables.create("names", "k INT, name STRING", [{"k": 1, "name": "x"}])
    query = engine.register("SELECT n.name, count(*) c FROM s JOIN names n ON s.k = n.k GROUP BY n.name")
    _moments(engine, (0, 1, 1.0), (0, 2, 1.0))
    since = str(read_changes(engine, query, BEGINNING).position())
    tables.replace("names", [{"k": 1, "name": "y"}, {"k": 2, "name": "y"}])
    # A second follower, and one that reads the same again.
    for _ in range(2):
        changes = read_changes(engine, query, since)
        assert sorted(f"{change.kind} {change.row['name']}" for change in changes.changed) == ["delete x", "insert y"]
    assert not len(read_changes(engine, query, str(changes.position())))
    again = ManualEngine(engine.catalog.root, engine._clock)
    assert [change.kind for change in read_changes(again, query, since).changed] == ["reset", "insert"]


def _count_selected(monkeypatch: pytest.MonkeyPatch, selected: list[int]) -> None:
    """Note how many groups are computed each time."""

    def counted(*arguments: Any) -> int:
        selected.append(int(arguments[4].sum()))
        return int(combine_selected(*arguments))

    monkeypatch.setattr(incremental_groups, "combine_selected", counted)


def test_groups_that_nothing_joins_or_leaves_are_not_computed(
    engine: ManualEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.create_stream("s", SCHEMA, time="ts")
    query = engine.register("SELECT k, sum(v) t FROM s [RANGE 10 SECONDS] GROUP BY k")
    _moments(engine, *((second, key, 0.1) for second in range(-9, 1) for key in range(100)))
    position = str(read_changes(engine, query, BEGINNING).position())
    selected: list[int] = []
    _count_selected(monkeypatch, selected)
    _moments(engine, (0, 3, 0.1), (0, 3, 0.2), (-20, 4, 0.3))
    assert [change.row["k"] for change in read_changes(engine, query, position).changed] == [3]
    engine.take("s")
    engine.seal(everything=True)
    position = str(read_changes(engine, query, position).position())
    assert not len(read_changes(engine, query, position))
    assert sum(selected) == 1


def test_two_queries_share_the_groups(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.create_stream("s", SCHEMA, time="ts")
    sql = "SELECT k, avg(v) a FROM s [RANGE 10 SECONDS] GROUP BY k HAVING avg(v) < "
    queries = [engine.register(f"{sql} {limit}") for limit in range(10)]
    positions = [engine.invoke(query).position for query in queries]
    computed: list[int] = []
    _count_selected(monkeypatch, computed)
    _moments(engine, (0, 1, 4.5))
    seen = [len(read_changes(engine, *pair)) for pair in zip(queries, positions, strict=True)]
    assert seen == [0] * 5 + [1] * 5
    assert computed == [1]


def test_positions_of_other_queries_are_refused(engine: ManualEngine) -> None:
    engine.create_stream("s", SCHEMA, time="ts")
    query = engine.register("SELECT k, count(*) c FROM s GROUP BY k")
    with pytest.raises(TureenError, match="not one of this stream"):
        read_changes(engine, query, str(Position(7, {99: Mark(1)}, now=5)))
    with pytest.raises(TureenError, match="NOW"):
        read_changes(engine, query, engine.invoke(engine.register("SELECT k FROM s")).position)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k, count(*) c FROM s GROUP BY k LIMIT 3",
        "SELECT DISTINCT count(*) c FROM s GROUP BY k",
        "SELECT k, rank() OVER (ORDER BY k) r FROM s GROUP BY k",
        "SELECT k, max(ts) m FROM s GROUP BY k HAVING max(ts) > NOW - INTERVAL 5 SECONDS",
        "SELECT window_start, count(*) c FROM s [ROWS 10 SLIDE 5]",
    ],
)
def test_groups_without_changes(engine: ManualEngine, sql: str) -> None:
    engine.create_stream("s", SCHEMA, time="ts")
    with pytest.raises(Unsupported, match="have no changes"):
        read_changes(engine, engine.register(sql), BEGINNING)
