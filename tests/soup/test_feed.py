"""Feeds: the changes of all queries and templates, also over joins, each once and from any position on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.pipeline import arrival, upkeep
from tureen.position import BEGINNING, Mark, Position, QueryKey
from tureen.soup.feed import ChangeReader
from tureen.soup.feed_parts import FeedChanges
from tureen.soup.tables import Dimensions
from tureen.soup.templates import Templates
from tureen.testing.manual_engine import ManualEngine

BASE = datetime(2026, 1, 1, tzinfo=UTC)
STREAMS = ("a", "b", "c")
Row = dict[str, Any]
Report = tuple[str, str]
"""The handle of a query and a row, as a text."""


class Tuple(NamedTuple):
    """A tuple of a stream: `v` is its number in the stream."""

    k: int
    v: int
    second: int


class Rule(NamedTuple):
    """A query, its relations, and its condition: on tuples, the time of the latest one, and the parameters."""

    sql: str
    relations: tuple[str, ...]
    condition: Callable[..., bool]
    params: tuple[Row, ...] = ()
    hidden: tuple[int, ...] = ()
    """The relations that only decide whether a row appears: EXISTS and IN."""


TABLE = [Tuple(0, 100, 0), Tuple(1, 101, 0), Tuple(1, 102, 0)]
RULES = (
    Rule("SELECT v AS v0 FROM a WHERE k = 1", ("a",), lambda _, a: a.k == 1),
    Rule("SELECT v AS v0 FROM b", ("b",), lambda _, b: b.k >= 0),
    Rule("SELECT a.v AS v0, b.v AS v1 FROM a, b WHERE a.k = b.k", ("a", "b"), lambda _, a, b: a.k == b.k),
    Rule(
        "SELECT b.v AS v0, a.v AS v1 FROM b JOIN a ON a.k = b.k BEGIN NOW - 3 END NOW",
        ("b", "a"),
        lambda latest, b, a: a.k == b.k and min(a.second, b.second) >= latest - 3,
    ),
    Rule("SELECT x.v AS v0, y.v AS v1 FROM a x, a y WHERE x.k = y.k", ("a", "a"), lambda _, x, y: x.k == y.k),
    Rule(
        "SELECT a.v AS v0, b.v AS v1, c.v AS v2 FROM a, b, c WHERE a.k = b.k AND b.k = c.k",
        STREAMS,
        lambda _, a, b, c: a.k == b.k == c.k,
    ),
    Rule(
        "SELECT b.v AS v0, d.v AS v1, c.v AS v2 FROM b, dim d, c WHERE b.k = d.k AND c.k = d.k",
        ("b", "dim", "c"),
        lambda _, b, d, c: b.k == c.k == d.k,
    ),
    Rule(
        "SELECT v AS v0 FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k) BEGIN NOW - 3 END NOW",
        ("a", "b"),
        lambda latest, a, b: a.k == b.k and min(a.second, b.second) >= latest - 3,
        hidden=(1,),
    ),
    Rule(
        "SELECT v AS v0 FROM b WHERE k IN (SELECT k FROM dim) AND EXISTS (SELECT 1 FROM c WHERE c.k = b.k)",
        ("b", "dim", "c"),
        lambda _, b, d, c: b.k == c.k == d.k,
        hidden=(1, 2),
    ),
    Rule(
        "SELECT x.v AS v0 FROM a x WHERE k IN (SELECT y.k FROM a y, c WHERE y.v <> x.v AND c.v >= y.v)",
        ("a", "a", "c"),
        lambda _, x, y, c: x.k == y.k and x.v != y.v and c.v >= y.v,
        hidden=(1, 2),
    ),
    Rule(
        "SELECT a.v AS v0, b.v AS v1 FROM a JOIN b ON a.k = b.k"
        " WHERE EXISTS (SELECT 1 FROM c [RANGE 5 SECONDS] WHERE c.v > a.v)",
        ("a", "b", "c"),
        lambda latest, a, b, c: a.k == b.k and c.v > a.v and c.second >= latest - 5,
        hidden=(2,),
    ),
    Rule(
        "SELECT x.v AS v0, z.v AS v1 FROM a x LEFT SEMI JOIN a y ON x.k = y.k AND x.v <> y.v JOIN a z ON x.k = z.k",
        ("a", "a", "a"),
        lambda _, x, y, z: x.k == y.k == z.k and x.v != y.v,
        hidden=(1,),
    ),
)
TEMPLATES = (
    Rule(
        "SELECT v AS v0 FROM b WHERE k = :k",
        ("b",),
        lambda _, b, k: b.k == k,
        ({"k": 0}, {"k": 1}, {"k": 1}),
    ),
    Rule(
        "SELECT a.v AS v0, c.v AS v1 FROM a, c WHERE a.k = c.k AND a.k >= :k",
        ("a", "c"),
        lambda _, a, c, k: a.k == c.k and a.k >= k,
        ({"k": 0}, {"k": 1}, {"k": 1}),
    ),
)
WITHOUT_CHANGES = ("SELECT DISTINCT k FROM a", "SELECT a.v FROM a LEFT JOIN b ON a.k = b.k", "SELECT * FROM dim")


@dataclass
class FeedRun:
    """A script that runs with all of these rules, and what a feed must report."""

    root: Path
    tuples: dict[str, list[Tuple]] = field(default_factory=lambda: {name: [] for name in STREAMS})
    rules: dict[str, tuple[Rule, Row, dict[str, int]]] = field(default_factory=dict)
    """By handle: a query, its parameters, and how many tuples each stream had when it was registered."""
    resumable: list[tuple[str, list[Report]]] = field(default_factory=list)
    """Positions, with all changes before them."""

    def open(self) -> None:
        """Open the pot, as a new process does."""
        self.engine = ManualEngine(self.root)
        self.templates = Templates(self.engine.catalog, self.engine.invoker)
        self.reader = ChangeReader(self.engine.catalog, self.engine.invoker, self.templates, None, lambda _: None)

    def create(self, order: tuple[str, ...]) -> None:
        """Create the streams in that order, and register all rules."""
        self.open()
        for name in order:
            self.engine.create_stream(name, "k INT, v INT, ts TIMESTAMP", time="ts")
        Dimensions(self.engine.catalog).create("dim", "k INT, v INT", [{"k": row.k, "v": row.v} for row in TABLE])
        for sql in WITHOUT_CHANGES:
            self.engine.register(sql)
        for name in STREAMS:
            self.push("push", name, [(0, 0)])
        self.counts = {name: len(tuples) for name, tuples in self.tuples.items()}
        for rule in RULES:
            self.rules[self.engine.register(rule.sql)] = rule, {}, self.counts
        for rule in TEMPLATES:
            handle = self.templates.register(rule.sql, list(rule.params), None)
            for number, row in enumerate(rule.params):
                self.rules[f"{handle}.{number}"] = rule, row, self.counts
        self.position, self.reported = self.read(None).position(), list[Report]()
        self.resumable = [(self.position, [])]

    def push(self, action: str, name: str, rows: list[tuple[int, int]]) -> None:
        """Push rows with these keys and seconds."""
        tuples = [Tuple(k, len(self.tuples[name]) + number, second) for number, (k, second) in enumerate(rows)]
        self.tuples[name] += tuples
        timed = [{"k": row.k, "v": row.v, "ts": BASE + timedelta(seconds=row.second)} for row in tuples]
        (self.engine.push if action == "push" else self.engine.append)(name, timed)

    def run(self, action: str, value: Any) -> None:
        """Run a step."""
        match action:
            case "push" | "append":
                self.push(action, *value)
            case "read":
                self.take(value)
            case "add":
                handle = next(reversed(self.rules)).partition(".")[0]
                rule = TEMPLATES[-1]
                (number,) = self.templates.add(handle, [{"k": value}])
                counts = {name: len(tuples) for name, tuples in self.tuples.items()}
                self.rules[f"{handle}.{number}"] = rule, {"k": value}, counts
            case "take":
                self.engine.take(value)
            case "restart":
                self.engine.close()
                self.open()
            case _:
                self.engine.seal(everything=action == "seal all")

    def read(self, since: str | None) -> FeedChanges:
        """The changes of all queries since a position."""
        return self.reader.all(since)

    def take(self, count: int | None) -> list[Report]:
        """Read changes and continue after the first `count` of them; note the position of each."""
        batch = self.read(self.position)
        changes = [((change.query, repr(change.row)), change.position) for change in batch]
        reported = [change for change, _ in changes]
        for index, (_, position) in enumerate(changes):
            self.resumable.append((position, self.reported + reported[: index + 1]))
        taken = len(changes) if count is None else min(count, len(changes))
        self.position = (
            batch.position() if taken == len(changes) else ([self.position] + [p for _, p in changes])[taken]
        )
        self.reported = self.reported + reported[:taken]
        return reported

    def expected(self) -> Iterator[Report]:
        """All combinations of tuples, filtered one by one: a row is new unless it has a combination of old tuples."""
        for handle, (rule, params, counts) in self.rules.items():
            inputs = [TABLE if name == "dim" else self.tuples[name] for name in rule.relations]
            is_new: dict[str, bool] = {}
            for combination in product(*inputs):
                if rule.condition(max(row.second for row in combination), *combination, **params):
                    named = zip(rule.relations, combination, strict=True)
                    visible = [row for number, row in enumerate(combination) if number not in rule.hidden]
                    row = repr({f"v{number}": row.v for number, row in enumerate(visible)})
                    has_new = any(name != "dim" and row.v >= counts[name] for name, row in named)
                    is_new[row] = is_new.get(row, True) and has_new
            yield from ((handle, row) for row in is_new if is_new[row])

    def finish(self) -> None:
        """From every position that the feed has had, the rest of all changes follows, each once."""
        before = len(self.resumable)
        rest = self.take(None)
        for index, (position, _) in _spread(list(enumerate(self.resumable[before:], 1)), 10):
            assert [(change.query, repr(change.row)) for change in self.read(position)] == rest[index:], position
        expected = sorted(self.expected())
        for position, reported in _spread(self.resumable, 30):
            later = [(change.query, repr(change.row)) for change in self.read(position)]
            assert sorted([*reported, *later]) == expected, position


def _spread(entries: list[Any], most: int) -> list[Any]:
    """At most that many of the entries, evenly spaced: reading from all of them would take too long."""
    return entries[:: -(-len(entries) // most) or 1]


@st.composite
def scripts(draw: st.DrawFn) -> list[tuple[str, Any]]:
    """Steps that push rows to streams, move them into runs, and read."""
    rows = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 8)), min_size=1, max_size=2)
    push = st.tuples(st.sampled_from(["push", "append"]), st.tuples(st.sampled_from(STREAMS), rows))
    read = st.tuples(st.just("read"), st.integers(0, 12))
    other = st.one_of(
        st.tuples(st.sampled_from(["seal", "seal all", "restart"]), st.none()),
        st.tuples(st.just("take"), st.sampled_from(STREAMS)),
        st.tuples(st.just("add"), st.integers(0, 1)),
    )
    return draw(st.lists(st.one_of(push, push, push, read, read, other), min_size=6, max_size=10))


@example_settings(6, explored=12)
@given(scripts(), st.permutations(STREAMS))
def test_every_change_once_from_every_position(script: list[tuple[str, Any]], order: tuple[str, ...]) -> None:
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(arrival, "TAIL_ROWS", 2)
        patch.setattr(upkeep, "LONG_TAIL", 4)
        patch.setattr(upkeep, "FAN", 2)
        run = FeedRun(Path(folder))
        run.create(order)
        try:
            for action, value in script:
                run.run(action, value)
            run.finish()
        finally:
            run.engine.close()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[FeedRun]:
    """A pot with streams and no queries."""
    run = FeedRun(tmp_path)
    run.open()
    for name in STREAMS:
        run.engine.create_stream(name, "k INT, v INT, ts TIMESTAMP", time="ts")
    yield run
    run.engine.close()


def _reports(batch: FeedChanges) -> list[tuple[str, Row]]:
    return [(change.query, change.row) for change in batch]


def test_the_rest_of_a_tuple_comes_before_new_tuples(run: FeedRun) -> None:
    every = run.engine.register("SELECT a.v AS v0 FROM a, b WHERE a.k = b.k")
    late = run.engine.register("SELECT a.v AS v0 FROM a, b WHERE a.k = b.k AND a.v > 2")
    start = run.read(None).position()
    run.push("append", "a", [(1, 0), (1, 0), (1, 0)])
    run.push("append", "b", [(1, 0)])
    first = list(run.read(start))
    assert [(change.query, change.row["v0"]) for change in first] == [(every, 0), (every, 1), (every, 2)]
    run.push("append", "a", [(1, 0)])
    # Rows are counted per query: that of `late` is its first one.
    rest = [(every, {"v0": 2}), *sorted([(every, {"v0": 3}), (late, {"v0": 3})])]
    assert _reports(run.read(first[1].position)) == rest
    assert _reports(run.read(first[2].position)) == rest[1:]


def test_a_position_within_a_tuple_without_joins(run: FeedRun) -> None:
    singles = sorted(run.engine.register(f"SELECT v AS v{number} FROM a") for number in range(3))
    joins = sorted(run.engine.register(f"SELECT a.v AS v{number} FROM a, b WHERE a.k = b.k") for number in range(3))
    run.push("append", "b", [(1, 0)])
    start = Position.parse(run.read(None).position())
    run.push("append", "a", [(1, 0), (2, 0)])
    reported = [query for query, _ in _reports(run.read(str(start)))]
    assert reported == [*singles, *joins, *singles]
    stream = min(start.marks)
    # Feeds had no joins before; their positions are before all joined rows of a tuple.
    old = replace(start, marks={**start.marks, stream: Mark(0, QueryKey(singles[1]))})
    assert [query for query, _ in _reports(run.read(str(old)))] == reported[2:]


def test_a_feed_from_the_beginning_has_joined_rows(run: FeedRun) -> None:
    handle = run.engine.register("SELECT a.v AS v0 FROM a, b WHERE a.k = b.k")
    run.push("push", "a", [(1, 0)])
    run.push("append", "b", [(1, 0), (0, 0)])
    assert _reports(run.read(BEGINNING)) == [(handle, {"v0": 0})]
    assert len(run.read(run.read(BEGINNING).position())) == 0


def test_queries_without_changes_are_omitted(run: FeedRun) -> None:
    for sql in WITHOUT_CHANGES[:2]:
        run.engine.register(sql)
    start = run.read(None).position()
    run.push("append", "a", [(1, 0)])
    assert _reports(run.read(start)) == []
