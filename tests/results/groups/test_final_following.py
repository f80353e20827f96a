"""EMIT FINAL against its twin: which groups are in answers, and in changes once, from any position."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import example, given, note
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.closed.rules import Rules
from tureen.position import BEGINNING, Position
from tureen.punctuation import Punctuation, Range
from tureen.testing.final_twin import FinalQuery, FinalTwin, Group
from tureen.testing.manual_engine import ManualEngine
from tureen.testing.punctuations import PunctuatedStream

BASE = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = "k INT, r STRING, v INT, ts TIMESTAMP"
LAST_SECOND = 12


def second(number: int) -> datetime:
    return BASE + timedelta(seconds=number)


QUERIES = [
    FinalQuery("SELECT k, count(*) n, sum(v) t FROM s GROUP BY k EMIT FINAL", lambda row: (row["k"],)),
    FinalQuery(
        "SELECT r, k, count(*) n, sum(v) t FROM s WHERE v > 0 GROUP BY k, r EMIT FINAL",
        lambda row: (row["r"], row["k"]),
        lambda row: row["v"] > 0,
    ),
    FinalQuery(
        "SELECT v, count(*) n, sum(v) t FROM s WHERE k = 1 GROUP BY v EMIT FINAL",
        lambda row: (row["v"],),
        lambda row: row["k"] == 1,
    ),
    FinalQuery(
        "SELECT k, count(*) n, sum(v) t FROM s GROUP BY k EMIT FINAL BEGIN TIMESTAMP '2026-01-01 00:00:03' "
        "END TIMESTAMP '2026-01-01 00:00:06'",
        lambda row: (row["k"],),
        begin=second(3),
        end=second(6),
    ),
    FinalQuery(
        "SELECT k, count(*) n, sum(v) t FROM s GROUP BY k BEGIN NOW - 4 SECONDS END NOW EMIT FINAL",
        lambda row: (row["k"],),
        sliding=timedelta(seconds=4),
    ),
    FinalQuery(
        "SELECT k, window_start, count(*) n, sum(v) t FROM s [TUMBLE 4 SECONDS] GROUP BY k EMIT FINAL",
        lambda row: (row["k"],),
        steps=timedelta(seconds=4),
    ),
    FinalQuery(
        "SELECT a.k, count(*) n, sum(b.v) t FROM s a [RANGE 4 SECONDS] JOIN b ON a.k = b.k GROUP BY a.k EMIT FINAL",
        lambda left, _: (left["k"],),
        lambda left, right: left["k"] is not None and left["k"] == right["k"],
        sliding=timedelta(seconds=4),
        streams=2,
    ),
    FinalQuery(
        "SELECT b.k, a.r, count(*) n, sum(b.v) t FROM s a, b WHERE a.k = b.k AND a.v < b.v "
        "GROUP BY b.k, a.r EMIT FINAL",
        lambda left, right: (right["k"], left["r"]),
        lambda left, right: left["k"] is not None and left["k"] == right["k"] and left["v"] < right["v"],
        streams=2,
    ),
]

ROW = st.fixed_dictionaries(
    {
        "k": st.sampled_from([None, 0, 1, 2]),
        "r": st.sampled_from([None, "a", "b"]),
        "v": st.integers(0, 2),
        "ts": st.integers(0, LAST_SECOND).map(second),
    }
)
PUNCTUATION = st.one_of(
    st.sampled_from([0, 1, 2]).map(lambda k: Punctuation(k=k)),
    st.sampled_from([[0, 1], [1, 2]]).map(lambda k: Punctuation(k=k)),
    st.sampled_from(["a", "b"]).map(lambda r: Punctuation(r=r)),
    st.integers(0, 2).map(lambda v: Punctuation(v=v)),
    st.tuples(st.sampled_from([0, 1]), st.sampled_from(["a", "b"])).map(lambda each: Punctuation(k=each[0], r=each[1])),
    st.integers(0, LAST_SECOND).map(lambda n: Punctuation(ts=Range(high=second(n)))),
    st.integers(0, LAST_SECOND).map(lambda n: Punctuation(ts=Range(low=second(n)))),
    st.tuples(st.sampled_from([0, 1]), st.integers(3, LAST_SECOND)).map(
        lambda each: Punctuation(k=Range(high=each[0]), ts=Range(high=second(each[1])))
    ),
)
TIMES = [BASE + timedelta(seconds=half / 2) for half in [-99, *range(2 * LAST_SECOND + 3), 999]]


def candidates(texts: list[str | None], numbers: list[int]) -> list[dict[str, Any]]:
    """Tuples that stand for all others: with values that no row and no punctuation has, beside those that some have."""
    values = product([None, 0, 1, 2, 9], texts, numbers, TIMES)
    return [{"k": k, "r": r, "v": v, "ts": ts} for k, r, v, ts in values]


TEXTS: list[str | None] = [None, "a", "b", "z"]
OF_ONE_STREAM = [candidates(TEXTS, [0, 1, 2, 9])]
OF_TWO_STREAMS = [candidates(TEXTS, [-9]), candidates(["z"], [9])]
"""Keys of groups are `k`, and `r` of the first; other values that are not punctuated are accepted most often."""

STEP: st.SearchStrategy[tuple[str, list[Any]]] = st.one_of(
    st.tuples(st.sampled_from(["s", "b"]), st.lists(ROW | ROW | PUNCTUATION, min_size=1, max_size=4)),
    st.tuples(st.sampled_from(["s", "b"]), st.lists(ROW | PUNCTUATION, min_size=1, max_size=4)),
    st.tuples(st.sampled_from(["take s", "take b", "seal", "restart"]), st.just([])),
)
RULES = st.sampled_from([Rules(), Rules(), Rules(("k",)), Rules((), 3_000_000), Rules(("k",), 0)])


def twin_stream(rules: Rules) -> PunctuatedStream:
    lateness = None if rules.lateness is None else timedelta(microseconds=rules.lateness)
    return PunctuatedStream(rules.unique, None if lateness is None else "ts", lateness)


def groups_of(rows: list[dict[str, Any]]) -> dict[Group, tuple[int, int]]:
    groups = {
        tuple(value for name, value in row.items() if name not in ("n", "t")): (row["n"], row["t"]) for row in rows
    }
    assert len(groups) == len(rows), "a group is there once"
    return groups


class Pot:
    """The engine and the twin, and a position for each query."""

    def __init__(self, root: Path, query: FinalQuery, rules: tuple[Rules, Rules]) -> None:
        """With empty streams."""
        self.root, self.query = root, query
        self.engine = ManualEngine(root)
        self.streams = {"s": twin_stream(rules[0]), "b": twin_stream(rules[1])}
        for name, each in zip("sb", rules, strict=True):
            self.engine.create_stream(name, SCHEMA, "ts", "stream", rules=each)
        self.handle = self.engine.register(query.sql, materialize=False)
        of_streams = OF_ONE_STREAM if query.streams == 1 else OF_TWO_STREAMS
        self.twin = FinalTwin(query, list(self.streams.values()), of_streams)
        self.position = BEGINNING
        self.reported: dict[Group, tuple[int, int]] = {}
        self.past: list[tuple[str, set[Group]]] = [(BEGINNING, set())]

    def run(self, word: str, items: list[Any]) -> None:
        """Do a step in both."""
        match word.split():
            case ["take", name]:
                self.engine.take(name)
                self.engine.inbox.trim()
            case ["seal"]:
                self.engine.seal(everything=True)
            case ["restart"]:
                self.engine.close()
                self.engine = ManualEngine(self.root)
            case _:
                self.engine.append(word, items)
                self.streams[word].push(items)

    def now(self) -> datetime | None:
        """The highest time of the query's streams."""
        streams = list(self.streams.values())[: self.query.streams]
        return max((row["ts"] for stream in streams for row in stream.accepted), default=None)

    def check(self, stop: int) -> None:
        """Compare the answer and the changes, also from a position of the past on."""
        now = self.now()
        assert groups_of(self.engine.invoke(self.handle).table.to_pylist()) == self.twin.answer(now)
        changes = self.engine.invoker.group_changes(self.handle, Position.parse(self.position))
        assert {change.kind for change in changes.changed} <= {"insert"}
        groups = groups_of([change.row for change in changes.changed])
        assert groups == self.twin.changes(now)
        assert not groups.keys() & self.reported.keys()
        if changes.changed:
            index = stop % len(changes.changed)
            read = {next(iter(groups_of([change.row]))) for change in changes.changed[: index + 1]}
            self.past.append((str(changes.position(index)), self.reported.keys() | read))
        self.reported |= groups
        self.position = str(changes.position())
        self.past.append((self.position, set(self.reported)))
        since, known = self.past[stop % len(self.past)]
        if self.query.steps is None:
            self.check_past(since, known)

    def check_past(self, since: str, known: set[Group]) -> None:
        """From a position of the past on, exactly the other groups follow."""
        later: dict[Group, tuple[int, int]] = {}
        while True:
            changes = self.engine.invoker.group_changes(self.handle, Position.parse(since))
            groups = groups_of([change.row for change in changes.changed])
            assert not groups.keys() & (later.keys() | known)
            later |= groups
            if str(changes.position()) == since or not groups:
                break
            since = str(changes.position())
        assert later == {group: values for group, values in self.reported.items() if group not in known}


def row(k: int | None, ts: int, v: int = 1, r: str | None = "a") -> dict[str, Any]:
    return {"k": k, "r": r, "v": v, "ts": second(ts)}


@example(
    QUERIES[6],
    (Rules(("k",)), Rules((), 0)),
    [("s", [row(1, 0), row(2, 1)]), ("b", [row(1, 1), row(1, 2)]), ("b", [Punctuation(k=1), row(2, 4), row(0, 9)])],
    3,
)
@example(QUERIES[5], (Rules(), Rules()), [("s", [row(1, 0), row(2, 1), Punctuation(k=1)]), ("s", [row(0, 9)])], 0)
@given(st.sampled_from(QUERIES), st.tuples(RULES, RULES), st.lists(STEP, min_size=3, max_size=7), st.integers(0, 9))
@example_settings(40)
def test_final_groups_equal_those_of_the_twin(
    query: FinalQuery, rules: tuple[Rules, Rules], steps: list[tuple[str, list[Any]]], stop: int
) -> None:
    note(f"{query.sql}, {rules}, {steps}, {stop}")
    with TemporaryDirectory() as directory:
        pot = Pot(Path(directory), query, rules)
        for number, (word, items) in enumerate(steps):
            pot.run(word, items)
            pot.check(stop + number)
        pot.engine.close()


def test_steps_wait_for_the_declared_lateness(tmp_path: Path) -> None:
    """A step is final when no tuple of it can come any more, which is by its lateness after its end."""
    engine = ManualEngine(tmp_path)
    engine.create_stream("s", SCHEMA, "ts", "stream", rules=Rules((), 3_000_000))
    handle = engine.register("SELECT k, count(*) AS n FROM s [TUMBLE 10 SECONDS] GROUP BY k EMIT FINAL")
    engine.append("s", [row(1, 5), row(2, 12)])
    position = BEGINNING

    def new_groups() -> list[tuple[int, int]]:
        nonlocal position
        changes = engine.invoker.group_changes(handle, Position.parse(position))
        position = str(changes.position())
        answer = [(each["k"], each["n"]) for each in engine.invoke(handle)]
        assert all((change.row["k"], change.row["n"]) in answer for change in changes.changed)
        return [(change.row["k"], change.row["n"]) for change in changes.changed]

    assert new_groups() == []
    assert engine.append("s", [row(1, 9)]).added == 1
    assert new_groups() == []
    engine.append("s", [row(2, 13)])
    assert new_groups() == [(1, 2)]
    assert engine.append("s", [row(1, 9)]).rejected == 1
    assert new_groups() == []
    engine.close()
