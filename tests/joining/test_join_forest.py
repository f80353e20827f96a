"""Joins with sub-joins in common: each follower reads what it computes alone, and the sub-joins are made once."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.joining import join_forest
from tureen.plan_hint import PlanHint
from tureen.position import Position
from tureen.punctuation import Punctuation
from tureen.results.following import join_operator
from tureen.soup.tables import Dimensions
from tureen.testing.manual_engine import ManualEngine

BASE = datetime(2026, 1, 1, tzinfo=UTC)
STREAMS = "abcd"
COMMON = "a.k = b.k"
JOINS = (
    ("abc", f"{COMMON} AND b.x = c.x"),
    ("abd", f"{COMMON} AND b.x = d.x"),
    ("abd", f"{COMMON} AND a.x = d.k"),
    ("ab", COMMON),
    ("abcd", f"{COMMON} AND c.k = d.k AND b.x = c.x"),
    ("acd", "a.k = c.k AND c.k = d.k"),
    ("abt", f"{COMMON} AND b.x = t.x"),
    ("aab", "a.k = a2.k AND a2.x = b.x"),
)
STEPS = ["push"] * 8 + ["read"] * 4 + ["all", "all", "take", "seal", "follow", "close", "restart"]
HINTS = [PlanHint("left-deep", True), PlanHint("bushy", True), PlanHint("bushy", False), PlanHint("left-deep", None)]


def sql_of(names: str, condition: str, seconds: int | None, where: str = "") -> str:
    window = "" if seconds is None else f" [RANGE {seconds} SECONDS]"
    sources = [f"a{window} AS a2" if names[:number].count(name) else name for number, name in enumerate(names)]
    sources = [each if each == "t" or "AS" in each else f"{each}{window}" for each in sources]
    aliases = ["a2" if names[:number].count(name) else name for number, name in enumerate(names)]
    outputs = ", ".join(f"{alias}.n AS n{number}" for number, alias in enumerate(aliases))
    return f"SELECT {outputs} FROM {', '.join(sources)} WHERE {condition}{where}"


class _Reader:
    """A follower that compares its rows with those that it computes alone."""

    def __init__(self, engine: ManualEngine, sql: str, hint: PlanHint) -> None:
        self.engine, self.handle = engine, engine.register(sql, materialize=False, hint=hint)
        self.follower = engine.invoker.follow(self.handle)
        self.position = Position.parse(engine.invoker.new_rows(self.handle, None).position())

    def read(self) -> int:
        new = self.engine.invoker.new_rows(self.handle, self.position, self.follower)
        alone = self.engine.invoker.new_rows(self.handle, self.position)
        assert new.rows.to_pylist() == alone.rows.to_pylist()
        assert new.position() == alone.position()
        self.position = Position.parse(new.position())
        return len(new)

    def close(self) -> None:
        assert self.follower is not None
        self.engine.invoker.followers.remove(self.follower)

    @property
    def operator(self) -> dict[str, Any]:
        operator: dict[str, Any] = self.engine.invoker.explain(self.handle)["operator"]
        return operator


def _engine(folder: Path) -> ManualEngine:
    engine = ManualEngine(folder)
    for name in STREAMS:
        engine.create_stream(name, "n INT, k INT, x INT, ts TIMESTAMP", time="ts", clock="stream")
    Dimensions(engine.catalog).create("t", "n INT, x INT", [{"n": n, "x": n} for n in range(2)])
    return engine


class _Script:
    """Random pushes, reads, and followers that come and go."""

    def __init__(self, engine: ManualEngine, draw: random.Random) -> None:
        self.engine, self.draw, self.pushed = engine, draw, 0
        self.readers: list[_Reader] = []
        self.seconds = draw.choice([8, 8, 20])

    def follow(self) -> None:
        draw = self.draw
        names, condition = draw.choice(JOINS)
        seconds = draw.choice([self.seconds] * 6 + [5, None])
        where = draw.choice(["", "", " AND a.x > 0", f" AND a.n < {names[1]}.n" if names[1] != "a" else ""])
        self.readers.append(_Reader(self.engine, sql_of(names, condition, seconds, where), draw.choice(HINTS)))

    def push(self) -> None:
        draw = self.draw
        rows: list[Any] = []
        for _ in range(draw.choice([1, 2, 4])):
            self.pushed += 1
            late = draw.choice([0, 0, 0, 1, 6, 12])
            keys = {"k": draw.choice([0, 1, 2, None]), "x": draw.randrange(3)}
            rows.append({"n": self.pushed, **keys, "ts": BASE + timedelta(seconds=self.pushed - late)})
        if draw.random() < 0.1:
            rows.append(Punctuation.of({"x": 7 + draw.randrange(3)}))
        self.engine.append(draw.choice(STREAMS), rows)

    def step(self) -> None:
        kind = self.draw.choice(STEPS)
        if kind == "push":
            self.push()
        elif kind == "read":
            self.draw.choice(self.readers).read()
        elif kind == "all":
            self.engine.invoker.followers.joins.advance()
        elif kind == "take":
            self.engine.take(self.draw.choice(STREAMS))
        elif kind == "seal":
            self.engine.seal()
        elif kind == "follow" and len(self.readers) < 5:
            self.follow()
        elif kind == "close" and len(self.readers) > 2:
            self.readers.pop(self.draw.randrange(len(self.readers))).close()
        elif kind == "restart":
            self.draw.choice(self.engine.invoker.followers.joins.operators()).restart()


@example_settings(6)
@given(st.integers(0, 1 << 32))
def test_followers_of_joins_with_common_sub_joins_read_their_own_rows(seed: int) -> None:
    draw = random.Random(seed)
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(join_operator, "BLOCK_TUPLES", 5)
        patch.setattr(join_forest, "INSERTED_TUPLES", 3)
        patch.setattr(join_forest, "STATE_TUPLES", draw.choice([40, 1 << 22, 1 << 22]))
        engine = _engine(Path(folder))
        script = _Script(engine, draw)
        for _ in range(3):
            script.follow()
        for _ in range(30):
            script.step()
        for reader in script.readers:
            reader.read()
        engine.close()


@pytest.fixture
def streams(tmp_path: Path) -> ManualEngine:
    return _engine(tmp_path)


def _push(engine: ManualEngine, stream: str, *rows: tuple[int, int], at: int = 0) -> None:
    engine.append(stream, [{"n": n, "k": k, "x": k, "ts": BASE + timedelta(seconds=at)} for n, k in rows])


def _readers(engine: ManualEngine, windows: tuple[int, int] = (60, 60)) -> list[_Reader]:
    return [
        _Reader(engine, sql_of(*join, seconds), PlanHint("left-deep", True))
        for join, seconds in zip(JOINS[:2], windows, strict=True)
    ]


def test_explain_shows_how_many_joins_share_a_node(streams: ManualEngine) -> None:
    first, second = _readers(streams)
    _push(streams, "a", (1, 1))
    # The second join enters the plan when it has read as far as the first.
    assert (first.read(), second.read()) == (0, 0)
    assert (first.operator["joins"], second.operator["joins"]) == (2, 2)
    _push(streams, "a", (2, 2), (3, 3))
    _push(streams, "b", (1, 1), (2, 2), (3, 3))
    assert (first.read(), second.read()) == (0, 0)
    assert [reader.operator["jit"]["blacklists"] for reader in (first, second)] == [
        {"a": 3, "b": 3, "c": 0},
        {"a": 3, "b": 3, "d": 0},
    ]
    _push(streams, "c", (1, 1), (2, 2))
    assert (first.read(), second.read()) == (2, 0)
    _push(streams, "d", (2, 2), (3, 3))
    assert (first.read(), second.read()) == (0, 2)
    shown = [{node["node"]: node for node in reader.operator["nodes"]}["(a ⋈ b)"] for reader in (first, second)]
    # Three pairs: what the first join has made for its keys 1 and 2 the second one has not made again.
    assert [(node["made"], node["consumers"]) for node in shown] == [(3, 2), (3, 2)]
    counts = streams.invoker.followers.joins.counts()
    assert (counts["trees"], counts["shared_nodes"], counts["intermediate_results"]) == (2, 1, 3)


def test_queries_of_a_join_keep_their_tuples_when_another_one_enters(streams: ManualEngine) -> None:
    names, condition = JOINS[0]
    queries = [f"{sql_of(names, condition, 60)} AND c.n = {number}" for number in range(20)]
    readers = [_Reader(streams, sql, PlanHint("left-deep", True)) for sql in queries]
    readers.append(_Reader(streams, sql_of(*JOINS[1], 60), PlanHint("left-deep", True)))
    _push(streams, "c", *[(number, number) for number in range(20)])
    _push(streams, "a", (0, 100))
    for reader in readers:
        assert reader.read() == 0
    assert readers[0].operator["joins"] == 2
    _push(streams, "a", *[(number, number) for number in range(20)])
    _push(streams, "b", *[(number, number) for number in range(20)])
    assert [reader.read() for reader in readers] == [1] * 20 + [0]


def test_joins_with_other_windows_have_plans_of_their_own(streams: ManualEngine) -> None:
    first, second = _readers(streams, (60, 30))
    for number in range(3):
        _push(streams, "a", (number, number))
        _push(streams, "b", (number, number))
        assert (first.read(), second.read()) == (0, 0)
    assert (first.operator["joins"], second.operator["joins"]) == (1, 1)


def test_join_that_does_not_read_is_left_out(streams: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = _readers(streams)
    _push(streams, "a", (1, 1))
    _push(streams, "d", *[(number, 1) for number in range(10)])
    assert (first.read(), second.read()) == (0, 0)
    monkeypatch.setattr(join_forest, "UNTAKEN_TUPLES", 15)
    for number in range(3):
        _push(streams, "b", (number, 1))
        assert first.read() == 0
    assert first.operator["joins"] == 1
    assert second.read() == 30
    _push(streams, "b", (3, 1))
    assert (first.read(), second.read()) == (0, 10)
    assert first.operator["joins"] == 2


def test_join_continues_when_another_one_of_its_plan_ends(streams: ManualEngine) -> None:
    first, second = _readers(streams)
    _push(streams, "a", (1, 1))
    _push(streams, "b", (1, 1))
    assert (first.read(), second.read()) == (0, 0)
    first.close()
    _push(streams, "c", (1, 1))
    _push(streams, "d", (1, 1))
    assert second.read() == 1
    assert second.operator["joins"] == 1


def test_plan_of_several_joins_that_grows_too_large_is_divided(
    streams: ManualEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = _readers(streams)
    _push(streams, "a", (1, 1))
    assert (first.read(), second.read()) == (0, 0)
    monkeypatch.setattr(join_forest, "STATE_TUPLES", 13)
    _push(streams, "c", *[(number, number) for number in range(6)])
    _push(streams, "d", *[(number, number) for number in range(6)])
    _push(streams, "b", (1, 1))
    assert (first.read(), second.read()) == (1, 1)
    _push(streams, "b", (2, 1))
    assert (first.read(), second.read()) == (1, 1)
    assert (first.operator["joins"], first.operator["plan"], second.operator["plan"]) == (1, "left-deep", "left-deep")
