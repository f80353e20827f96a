"""Followed joins: each follower reads from the shared operator what it would compute alone."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tureen.eddy import join_routing
from tureen.errors import QueryFailed
from tureen.joining import continuous_join
from tureen.joining.join_limits import JoinLimits
from tureen.pipeline import arrival, upkeep
from tureen.plan_hint import NO_HINT, PlanHint
from tureen.position import BEGINNING, Position
from tureen.results import join_operator
from tureen.results.followed_joins import JoinFollower
from tureen.results.invoke import Invoker
from tureen.results.operator_rows import OperatorQuery
from tureen.routing_policies import ROUTING_POLICIES
from tureen.soup.tables import Dimensions
from tureen.testing.manual_engine import ManualEngine

BASE = datetime(2026, 1, 1, tzinfo=UTC)
STREAMS = ("a", "b", "c")
COLUMNS = "k INT, x INT, s STRING, ts TIMESTAMP"
CONDITIONS = ("{0}.x > 1", "{0}.x < 3", "{0}.x % 2 = 0", "{0}.s IN ('0', '1')", "{0}.k IS NOT NULL AND {0}.x <> 2")


def _row(number: int, keys: int = 3) -> dict[str, Any]:
    """Tuples whose times are not in the order of arrival."""
    key = None if number % 11 == 10 else number % keys
    at = BASE + timedelta(seconds=number - 4 * (number % 2))
    return {"k": key, "x": number % 5, "s": str(number % 2), "ts": at}


def _random_query(draw: random.Random) -> str:
    """A join of two to four streams and tables by equalities, with conditions and windows."""
    relations = draw.choice(["ab", "ab", "ba", "abd", "bda", "aab", "aa", "abc", "cab", "abcd", "abab"])
    names = [f"t{number}" for number in range(len(relations))]
    sources, conditions = [], []
    for number, relation in enumerate(relations):
        window = draw.choice(["", "", " [RANGE 3 SECONDS]", " [RANGE 12 SECONDS]"])
        sources.append(f"dim {names[number]}" if relation == "d" else f"{relation} {names[number]}{window}")
        if number:
            other = names[draw.randrange(number)]
            for column in draw.choice([("k",), ("k",), ("s", "k")]):
                conditions.append(f"{other}.{column} = {names[number]}.{column}")
        if draw.random() < 0.3:
            conditions.append(draw.choice(CONDITIONS).format(names[number]))
    if draw.random() < 0.2:
        conditions.append(f"{names[0]}.x <= {names[1]}.x")
    if draw.random() < 0.2:
        conditions.append(f"({names[0]}.x + {names[-1]}.x) % 3 < 2")
    outputs = ", ".join(f"{name}.x AS x{name}" for name in names)
    return f"SELECT {outputs} FROM {', '.join(sources)} WHERE {' AND '.join(conditions)}"


class _Follower:
    """Reads from the operator, and compares with what it computes alone."""

    def __init__(self, engine: ManualEngine, handle: str, since: str | None = None) -> None:
        self.engine, self.handle = engine, handle
        self.followed = engine.invoker.follow(handle)
        self.start = since or engine.invoker.new_rows(handle, None).position()
        self.position = Position.parse(self.start)
        self.rows: Counter[str] = Counter()

    def read(self) -> int:
        new = self.engine.invoker.new_rows(self.handle, self.position, self.followed)
        alone = self.engine.invoker.new_rows(self.handle, self.position)
        assert new.rows.to_pylist() == alone.rows.to_pylist(), self.handle
        assert [new.position(index) for index in range(len(new))] == [
            alone.position(index) for index in range(len(alone))
        ]
        assert new.position() == alone.position()
        self.position = Position.parse(new.position())
        self.rows.update(map(str, new.rows.to_pylist()))
        return len(new)

    def read_partly(self, rows: int) -> None:
        """Read again from the position of one of the new rows."""
        new = self.engine.invoker.new_rows(self.handle, self.position, self.followed)
        if rows < len(new):
            self.rows.update(map(str, new.rows.slice(0, rows + 1).to_pylist()))
            self.position = Position.parse(new.position(rows))

    def leave(self) -> None:
        if self.followed is not None:
            self.engine.invoker.followers.remove(self.followed)

    def check_all(self) -> None:
        """Compare all rows that were read with those of a process that reads them at once."""
        self.read()
        rows = Invoker(self.engine.catalog).new_rows(self.handle, Position.parse(self.start)).rows
        assert self.rows == Counter(map(str, rows.to_pylist()))


@contextmanager
def small_engine() -> Iterator[ManualEngine]:
    """An engine with short runs and blocks, so that a short script has several of each kind."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        for module in (arrival, upkeep):
            patch.setattr(module, "TAIL_ROWS", 4)
        patch.setattr(upkeep, "FAN", 2)
        patch.setattr(join_operator, "KEPT_BLOCKS", 3)
        patch.setattr(join_operator, "BLOCK_TUPLES", 5)
        patch.setattr(continuous_join, "ROUTED_TUPLES", 2)
        engine = ManualEngine(Path(folder))
        for name in STREAMS:
            engine.create_stream(name, COLUMNS, time="ts", clock="stream")
        Dimensions(engine.catalog).create("dim", "k INT, x INT, s STRING", _TABLE[0])
        yield engine
        engine.close()


_TABLE = [
    [{"k": 0, "x": 1, "s": "0"}, {"k": 1, "x": 2, "s": "1"}, {"k": 1, "x": 3, "s": None}],
    [{"k": 2, "x": 4, "s": "1"}, {"k": 1, "x": 0, "s": "0"}],
]

STEPS = {"push": 8, "sink": 1, "take": 2, "seal": 1, "read": 8, "part": 2, "follow": 2, "leave": 1, "table": 1}


class _Script:
    """Random pushes, commits, merges and followers."""

    def __init__(self, engine: ManualEngine, draw: random.Random, routing: str, hints: Sequence[PlanHint]) -> None:
        self.engine, self.draw, self.routing = engine, draw, routing
        engine.invoker.followers.joins.routing = routing
        texts = [_random_query(draw) for _ in range(5)]
        # Queries that differ in a condition on their first input share the join.
        texts += [f"{text} AND t0.x > {number % 3}" for number, text in enumerate(texts)]
        self.handles = [
            engine.register(text, materialize=False, hint=hints[number % 5 % len(hints)])
            for number, text in enumerate(texts)
        ]
        self.followers = [_Follower(engine, handle) for handle in self.handles[:8]]
        self.pushed = Counter[str]()

    def step(self) -> None:
        """One random step."""
        engine, draw = self.engine, self.draw
        match draw.choices(list(STEPS), list(STEPS.values()))[0]:
            case ("push" | "sink") as kind:
                name = draw.choice(STREAMS)
                rows = [_row(self.pushed[name] + offset, 7) for offset in range(draw.randint(1, 3))]
                (engine.append if kind == "push" else engine.push)(name, rows)
                self.pushed[name] += len(rows)
            case "take":
                engine.take(draw.choice(STREAMS), draw.randint(1, 3))
            case "seal":
                engine.seal(everything=draw.random() < 0.5)
            case "follow":
                since = draw.choice([None, None, BEGINNING])
                self.followers.append(_Follower(engine, draw.choice(self.handles), since))
            case "leave":
                self.followers.pop(draw.randrange(len(self.followers))).leave()
            case "part":
                draw.choice(self.followers).read_partly(draw.randrange(3))
            case "table":
                self.replace_table()
            case _:
                for follower in draw.sample(self.followers, 3):
                    follower.read()

    def replace_table(self) -> None:
        """Rows are joined with the content at the time of reading."""
        for follower in self.followers[::2]:
            follower.read()
        Dimensions(self.engine.catalog).replace("dim", self.draw.choice(_TABLE))
        for follower in self.followers:
            follower.read()
            follower.start, follower.rows = str(follower.position), Counter()

    def restart(self) -> None:
        """As another process would continue."""
        self.engine.invoker = Invoker(self.engine.catalog, routing=self.routing)
        for follower in self.followers:
            follower.followed = self.engine.invoker.follow(follower.handle)


HINTS = [PlanHint("left-deep", True), PlanHint("bushy", True), PlanHint("bushy", False), PlanHint("left-deep")]


@pytest.mark.parametrize(
    ("seed", "routing", "hints"),
    [*((seed, routing, [NO_HINT]) for seed, routing in enumerate(ROUTING_POLICIES)), (3, "tickets", HINTS)],
)
def test_followers_read_the_same_together_and_alone(seed: int, routing: str, hints: list[PlanHint]) -> None:
    with small_engine() as engine:
        script = _Script(engine, random.Random(seed), routing, hints)
        for number in range(140):
            script.step()
            if number == 80:
                script.restart()
        assert any(operator.produced for operator in engine.invoker.followers.joins.operators())
        for follower in script.followers:
            follower.check_all()
            assert follower.read() == 0
            follower.leave()
        assert len(engine.invoker.followers.joins) == 0


def _join_pot(engine: ManualEngine) -> ManualEngine:
    for name in ("a", "b"):
        engine.create_stream(name, COLUMNS, time="ts", clock="stream")
    return engine


def _follow(engine: ManualEngine, conditions: list[str]) -> list[_Follower]:
    handles = [
        engine.register(f"SELECT a.x, b.x AS y FROM a JOIN b ON a.k = b.k WHERE {text}", materialize=False)
        for text in conditions
    ]
    return [_Follower(engine, handle) for handle in handles]


def test_new_tuples_are_joined_once_for_all_queries(engine: ManualEngine) -> None:
    followers = _follow(_join_pot(engine), [f"a.x = {number}" for number in range(5)])
    followers += _follow(engine, ["b.x > 100 AND a.s = '0'"])
    reversed_join = engine.register("SELECT 1 AS one FROM b JOIN a ON b.k = a.k", materialize=False)
    followers.append(_Follower(engine, reversed_join))
    (operator,) = engine.invoker.followers.joins.operators()
    engine.append("a", [_row(number) for number in range(6)])
    engine.append("b", [_row(0)])
    assert [follower.read() for follower in followers] == [1, 0, 0, 1, 0, 0, 2]
    # Tuples of "a" have found no partner, the tuple of "b" two.
    totals = operator.join.router.totals()
    assert (totals["tuples"], totals["visits"], totals["matches"]) == (7, 7, 2)
    assert operator.produced == 2


def test_only_followers_with_rows_are_told(engine: ManualEngine) -> None:
    followers = _follow(_join_pot(engine), [f"a.x = {number}" for number in range(5)])
    every = engine.invoker.followers
    news = every.news()
    every.advance(news)
    engine.append("b", [_row(0)])
    assert every.advance(news) == set()
    engine.append("a", [_row(3)])
    # A derived stream or another follower may have read before.
    followers[1].read()
    joined = followers[3].followed
    assert isinstance(joined, JoinFollower)
    assert every.advance(news) == {joined.clause}
    assert every.advance(news) == set()


def test_query_that_comes_later_misses_nothing(engine: ManualEngine) -> None:
    (first,) = _follow(_join_pot(engine), ["a.x = 0"])
    handle = engine.register("SELECT b.s FROM b JOIN a ON a.k = b.k WHERE a.x >= 0", materialize=False)
    since = engine.invoker.new_rows(handle, None).position()
    engine.append("a", [_row(number) for number in range(6)])
    engine.append("b", [_row(0)])
    assert first.read() == 1
    # The operator has joined these tuples, but not for this query.
    late = _Follower(engine, handle, since)
    assert late.read() == 2
    engine.append("b", [_row(3)])
    assert (late.read(), first.read()) == (2, 1)


def test_follower_that_was_removed_misses_nothing(engine: ManualEngine) -> None:
    """One thread may close it while another is about to read."""
    removed, other = _follow(_join_pot(engine), ["a.x = 0", "a.x = 3"])
    removed.leave()
    engine.append("a", [_row(number) for number in range(6)])
    engine.append("b", [_row(0)])
    assert (other.read(), removed.read()) == (1, 1)


def test_rows_beyond_the_limit_are_computed_by_each_follower(
    engine: ManualEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    followers = _follow(_join_pot(engine), ["a.x = 0", "a.x > 0"])
    monkeypatch.setattr(continuous_join, "OPERATOR_LIMITS", JoinLimits(rows=3))
    engine.append("a", [_row(number) for number in range(10)])
    engine.append("b", [_row(number) for number in range(10)])
    assert sum(follower.read() for follower in followers) > 3
    engine.append("b", [_row(10)])
    assert [follower.read() for follower in followers] == [0, 0]


def test_conditions_of_several_queries_are_evaluated_once(engine: ManualEngine) -> None:
    condition = "(a.x + b.x) % 2 = 0"
    followers = _follow(_join_pot(engine), [f"a.x >= {number} AND {condition}" for number in range(3)])
    (operator,) = engine.invoker.followers.joins.operators()
    engine.append("a", [_row(number) for number in range(8)])
    engine.append("b", [_row(number) for number in range(8)])
    assert sum(follower.read() for follower in followers) > 0
    (block,) = operator.blocks
    assert all(len(piece.applied) == 1 for piece in block.pieces)
    assert len(operator.join.consumers) == 3


def test_condition_that_is_written_twice_counts_once(engine: ManualEngine) -> None:
    condition = "(a.x + b.x) % 2 = 0"
    (follower,) = _follow(_join_pot(engine), [f"{condition} AND {condition}"])
    engine.append("a", [_row(0)])
    engine.append("b", [_row(0)])
    assert follower.read() == 1
    follower.leave()
    assert len(engine.invoker.followers.joins) == 0


def test_rows_of_many_queries_are_taken_at_once(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the query whose rows have another shape takes its own, and one that is within a block."""
    followers = _follow(_join_pot(engine), [f"a.x = {number}" for number in range(5)])
    other = engine.register("SELECT a.s FROM a JOIN b ON a.k = b.k", materialize=False)
    followers.append(_Follower(engine, other))
    reads = []
    read = OperatorQuery.read

    def counted(self: OperatorQuery, *arguments: Any) -> Any:
        reads.append(self)
        return read(self, *arguments)

    monkeypatch.setattr(OperatorQuery, "read", counted)
    engine.append("a", [_row(number) for number in range(6)])
    engine.append("b", [_row(0), _row(1)])
    assert [follower.read() for follower in followers] == [1, 1, 0, 1, 1, 4]
    assert len(reads) == 2, "a query without rows, and the one with another shape"
    engine.append("b", [_row(0), _row(1)])
    followers[0].read_partly(0)
    assert [follower.read() for follower in followers[:2]] == [0, 1]


def test_output_that_fails_concerns_its_query_alone(engine: ManualEngine) -> None:
    _join_pot(engine)
    join = "FROM a JOIN b ON a.k = b.k WHERE a.x ="
    sql = "SELECT CAST(concat(a.s, b.s) AS INT) AS n"
    handles = [engine.register(f"{sql} {join} {number}", materialize=False) for number in (0, 1)]
    followers = [_Follower(engine, handle) for handle in handles]
    engine.append("a", [{**_row(0), "s": "1"}, {**_row(0), "x": 1, "s": "z"}])
    engine.append("b", [_row(0)])
    assert followers[0].read() == 1
    with pytest.raises(QueryFailed, match="Conversion Error"):
        engine.invoker.new_rows(followers[1].handle, followers[1].position, followers[1].followed)


def test_rows_of_exists_are_computed_only_where_there_may_be_some(
    engine: ManualEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    _join_pot(engine)
    sql = "SELECT a.x FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.x = {})"
    handles = [engine.register(sql.format(number), materialize=False) for number in range(3)]
    followers = [engine.invoker.follow(handle) for handle in handles]
    positions = [Position.parse(engine.invoker.new_rows(handle, None).position()) for handle in handles]
    (operator,) = engine.invoker.followers.joins.operators()
    alone: list[str] = []
    changes_of_join = engine.invoker.answers.changes_of_join

    def counted(inputs: Any, snapshot: Any, ready: Any, since: Position, until: Any) -> Any:
        alone.append(str(since))
        return changes_of_join(inputs, snapshot, ready, since, until)

    monkeypatch.setattr(engine.invoker.answers, "changes_of_join", counted)
    engine.append("a", [_row(0)])
    for number in range(3):
        engine.append("b", [{**_row(0), "x": 1}])
        read = [
            engine.invoker.new_rows(handle, position, follower)
            for handle, position, follower in zip(handles, positions, followers, strict=True)
        ]
        assert [len(new) for new in read] == [0, 1, 0]
        assert len(alone) == number + 1, "only the query that has a partner"
    assert operator.produced == 3


def test_failing_condition_concerns_its_query_alone(engine: ManualEngine) -> None:
    followers = _follow(_join_pot(engine), ["a.x = 0", "CAST(concat(a.s, b.s, 'x') AS INT) > 0"])
    engine.append("a", [_row(0)])
    engine.append("b", [_row(0)])
    assert followers[0].read() == 1
    with pytest.raises(QueryFailed, match="Conversion Error"):
        engine.invoker.new_rows(followers[1].handle, followers[1].position, followers[1].followed)


def test_order_of_visits_follows_the_data(
    engine: ManualEngine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(join_routing, "STATISTICS_WINDOW", 200)
    # Costs are equal, so that only the fan-out counts.
    monkeypatch.setattr(continuous_join, "perf_counter", lambda: 0.0)
    engine.create_stream("a", "k INT, j INT, ts TIMESTAMP", time="ts", clock="stream")
    for name, column in (("b", "k"), ("c", "j")):
        engine.create_stream(name, f"{column} INT, ts TIMESTAMP", time="ts", clock="stream")
        engine.push(name, [{column: number, "ts": BASE} for number in range(20)])
    sql = "SELECT a.k, a.j FROM a JOIN b ON a.k = b.k JOIN c ON a.j = c.j"
    follower = _Follower(engine, engine.register(sql, materialize=False))

    def push(selective: str, other: str) -> list[str]:
        """Push tuples of which few have a partner by one column; the order of visits that they lead to."""
        for number in range(40):
            rows = [{selective: 20 * row, other: row % 20, "ts": BASE} for row in range(number, number + 20)]
            engine.append("a", rows)
            follower.read()
        (about,) = engine.invoker.explain(follower.handle)["operator"]["inputs"]
        order: list[str] = about["order"]
        return order

    with caplog.at_level("INFO", "tureen"):
        assert push("k", "j") == ["b", "c"]
        caplog.clear()
        assert push("j", "k") == ["c", "b"]
    messages = [record.message for record in caplog.records if "are now joined" in record.message]
    assert messages[-1] == "new tuples of 'a' are now joined in the order c, b; before: b, c"
    assert engine.invoker.followers.joins.counts()["order_changes"] >= len(messages) > 0


def test_explain_of_a_join_that_nobody_follows_has_no_operator(engine: ManualEngine) -> None:
    (follower,) = _follow(_join_pot(engine), ["a.x = 0"])
    assert engine.invoker.explain(follower.handle)["operator"]["queries"] == 1
    follower.leave()
    assert engine.invoker.explain(follower.handle)["operator"] is None
    assert engine.invoker.followers.joins.counts()["operators"] == 0


def test_operator_that_is_far_behind_starts_at_the_end(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    (follower,) = _follow(_join_pot(engine), ["a.x >= 0"])
    (operator,) = engine.invoker.followers.joins.operators()
    monkeypatch.setattr(join_operator, "MOST_BEHIND", 3)
    engine.append("a", [_row(number) for number in range(3)])
    engine.append("b", [_row(number) for number in range(4)])
    assert follower.read() == 4
    assert operator.produced == 0
    engine.append("b", [_row(4)])
    assert follower.read() == operator.produced == 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.x FROM a JOIN b ON a.k < b.k",
        "SELECT a.x FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k > a.k)",
        "SELECT a.x FROM a LEFT JOIN b ON a.k = b.k",
        "SELECT count(*) AS n FROM a JOIN b ON a.k = b.k",
    ],
)
def test_joins_that_share_no_operator(engine: ManualEngine, sql: str) -> None:
    handle = _join_pot(engine).register(sql, materialize=False)
    assert engine.invoker.follow(handle) is None


def test_derived_streams_over_one_join_share_its_operator(engine: ManualEngine) -> None:
    _join_pot(engine)
    for number in range(3):
        sql = f"SELECT a.x, b.x AS y FROM a JOIN b ON a.k = b.k WHERE a.x = {number}"
        engine.derive_stream(f"derived{number}", sql)
    engine.derive()
    for number in range(12):
        engine.append("ab"[number % 2], [_row(number)])
        engine.derive()
    (operator,) = engine.invoker.followers.joins.operators()
    assert operator.join.router.totals()["tuples"] == 12
    for number in range(3):
        rows = Counter(map(str, engine.invoker.answer_once(f"SELECT x, y FROM derived{number}")))
        sql = f"SELECT a.x, b.x AS y FROM a JOIN b ON a.k = b.k WHERE a.x = {number}"
        assert rows == Counter(map(str, engine.invoker.answer_once(sql)))
        assert rows
