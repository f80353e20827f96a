"""The engine against its plain twin: any arrival order, any batching, queries before, between and after data.

A script of steps is turned by hand, without Spark, and after every step every standing query must answer what
the oracle answers. Runs are made small, so that a handful of rows is sealed, indexed, matched and owed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import tureen
from tureen.errors import QueryFailed, Unsupported
from tureen.pipeline import arrival, upkeep
from tureen.predicate import AllOf, AnyOf, Predicate
from tureen.schema import Schema
from tureen.testing import Handle, Oracle, comparable, strategies
from tureen.testing.hand import Batch, HandTurned
from tureen.testing.truth import holds, type_of
from tureen.window import from_micros, to_micros

START = to_micros(strategies.BASE)
SECOND = 1_000_000

Step = tuple[str, Any]


@dataclass(frozen=True)
class Script:
    """A stream, and what happens to it."""

    schema: Schema
    clock: str
    retain: str | None
    tail_rows: int
    fan: int
    prompt: bool
    """Whether queries are compiled and debts are paid after every step, so that most cells are published."""
    steps: list[Step]
    moments: list[int]
    """Instants to ask for, beside each stream's own NOW."""


@st.composite
def scripts(draw: st.DrawFn, timed: bool | None = None) -> Script:
    """Streams of any schema with some pushes, queries and upkeep, in any order."""
    schema = draw(strategies.schemas(timed=timed))
    rows = strategies.rows(schema, min_size=2)
    register = st.tuples(st.just("register"), st.tuples(strategies.queries(schema, "s", depth=1), st.booleans()))
    push = st.tuples(st.just("push"), st.tuples(rows, st.integers(1, 3)))
    step = st.one_of(
        push,
        push,
        register,
        register,
        st.tuples(st.just("begin"), rows),
        st.tuples(st.just("commit"), st.none()),
        st.tuples(st.just("unregister"), st.integers(0, 9)),
        st.tuples(st.just("tick"), st.integers(1, 4000)),
        st.tuples(st.sampled_from(["compile", "pay", "pay", "seal", "seal all", "expire"]), st.none()),
    )
    first = draw(st.lists(register, max_size=3))
    steps = [*first, draw(push), *draw(st.lists(step, min_size=4, max_size=14))]
    return Script(
        schema,
        draw(st.sampled_from(["wall", "stream"])),
        draw(st.sampled_from([None, None, "2 seconds", "30 minutes"])),
        draw(st.integers(1, 6)),
        draw(st.integers(2, 4)),
        draw(st.booleans()),
        steps,
        draw(st.lists(st.integers(-7200, 7200).map(lambda seconds: START + seconds * SECOND), max_size=1)),
    )


@dataclass
class Run:
    """A script under way, in the engine and in the oracle."""

    script: Script
    root: Path
    now: int = START
    standing: list[tuple[str, Handle]] = field(default_factory=list)
    held: deque[tuple[Batch, list[dict[str, Any]], int]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.engine = HandTurned(self.root, clock=lambda: self.now)
        self.oracle = Oracle(clock=lambda: self.now)
        schema, script = self.script.schema, self.script
        self.engine.create_stream("s", schema.sql, schema.time, script.clock, script.retain)
        self.oracle.create_stream("s", schema, clock=script.clock, retain=script.retain)

    def play(self) -> None:
        """Take every step, and compare after each."""
        for name, detail in self.script.steps:
            self.take(name, detail)
            if self.script.prompt:
                self.engine.compile()
                self.engine.pay()
            self.compare()

    def take(self, name: str, detail: Any) -> None:
        """Take one step on both sides."""
        match name:
            case "push":
                rows, parts = detail
                self.engine.push("s", rows, parts)
                self.arrived(rows, self.now)
            case "begin":
                self.held.append((self.engine.begin("s", detail), detail, self.now))
            case "commit" if self.held:
                batch, rows, at = self.held.popleft()
                self.engine.commit(batch)
                self.arrived(rows, at)
            case "register":
                query, eager = detail
                with suppress(Unsupported):
                    handle = self.oracle.register(query.text)
                    self.standing.append((self.engine.register(query.text, materialize=eager), handle))
            case "unregister" if self.standing:
                self.drop(self.standing[detail % len(self.standing)])
            case "tick":
                self.now += detail * SECOND
            case "compile":
                self.engine.compile()
            case "pay":
                self.engine.pay()
            case "seal" | "seal all":
                self.engine.seal(everything=name == "seal all")
            case "expire":
                self.engine.expire()

    def arrived(self, rows: list[dict[str, Any]], at: int) -> None:
        """Let the oracle have what the engine has committed."""
        self.oracle.push("s", rows, at=at)

    def drop(self, one: tuple[str, Handle]) -> None:
        """Unregister a query on both sides."""
        self.engine.unregister(one[0])
        self.oracle.unregister(one[1])
        self.standing.remove(one)

    def compare(self) -> None:
        """Invoke everything that stands."""
        for one in list(self.standing):
            for now in (None, *self.script.moments):
                if not self.agree(*one, now):
                    self.drop(one)
                    break

    def agree(self, ours: str, twin: Handle, now: int | None) -> bool:
        """Compare one answer; False where the query has failed, and rightly so."""
        try:
            expected = twin.invoke(now)
            answer = self.engine.invoke(ours, now)
        except QueryFailed:
            assert self.may_fail(twin), f"nothing raises in {twin.query.sql}"
            return False
        assert comparable(answer) == comparable(expected), twin.query.sql
        outputs = [(out.name, type_of(self.script.schema, out.column).arrow) for out in twin.query.outputs]
        assert list(zip(answer.table.schema.names, answer.table.schema.types, strict=True)) == outputs
        return True

    def may_fail(self, twin: Handle) -> bool:
        """Whether some factor raises on some tuple, within the window or not, committed or only begun."""
        probe = Oracle()
        probe.create_stream("s", self.script.schema)
        for batch in (rows for _, rows, _ in self.held):
            probe.push("s", batch)
        every = [one.values for oracle in (self.oracle, probe) for one in oracle.tuples("s")]
        return any(_raises(leaf, row, self.script.schema) for leaf in _leaves(twin) for row in every)


def _leaves(twin: Handle) -> Iterator[Predicate]:
    todo = list(twin.query.clause)
    while todo:
        one = todo.pop()
        if isinstance(one, AllOf | AnyOf):
            todo += one.parts
        else:
            yield one


def _raises(leaf: Predicate, row: dict[str, Any], schema: Schema) -> bool:
    try:
        holds(leaf, row, schema)
    except QueryFailed:
        return True
    return False


@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(scripts())
def test_the_engine_answers_as_the_oracle_does(script: Script) -> None:
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as root:
        patch.setattr(arrival, "TAIL_ROWS", script.tail_rows)
        patch.setattr(upkeep, "LONG_TAIL", 2 * script.tail_rows)
        patch.setattr(upkeep, "FAN", script.fan)
        run = Run(script, Path(root))
        try:
            run.play()
        finally:
            run.engine.close()


def test_the_steps_reach_every_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the scripts rest on: with small runs, cells are published, owed, lazy and scanned."""
    monkeypatch.setattr(arrival, "TAIL_ROWS", 3)
    engine = HandTurned(tmp_path, clock=lambda: START)
    try:
        engine.create_stream("s", "x INT, ts TIMESTAMP", "ts")
        rows = [{"x": x, "ts": strategies.BASE - timedelta(seconds=x)} for x in range(4)]
        eager = engine.register("SELECT x FROM s WHERE x > 1")
        lazy = engine.register("SELECT x FROM s WHERE x > 2", materialize=False)
        engine.push("s", rows)
        assert _path(engine, eager) == "owed"
        assert _path(engine, lazy) == "lazy"
        engine.compile()
        engine.pay()
        assert _path(engine, eager) == "published"
        engine.create_stream("t", "x INT, ts TIMESTAMP", "ts")
        engine.push("t", rows[:2])
        assert _path(engine, engine.register("SELECT x FROM t")) == "tail"
    finally:
        engine.close()


def _path(engine: HandTurned, handle: str) -> str:
    paths = engine.invoker.explain(handle)["tuples_by_path"]
    return str(next(path for path, tuples in paths.items() if tuples))


@settings(max_examples=3, phases=(Phase.generate,), deadline=None, suppress_health_check=list(HealthCheck))
@given(scripts(timed=True))
def test_the_engine_on_spark_answers_as_the_oracle_does(soup: tureen.Soup, script: Script) -> None:
    """The same scripts through push, Spark and the threads; upkeep comes when it comes, or is asked for."""
    oracle = Oracle()
    oracle.create_stream("s", script.schema, retain=script.retain)
    soup.create_stream("s", script.schema, retain=script.retain)
    standing: list[tuple[tureen.StandingQuery, Handle]] = []
    try:
        for name, detail in script.steps:
            if name in ("push", "begin"):
                rows = detail[0] if name == "push" else detail
                oracle.push("s", rows)
                soup.wait(soup.push("s", rows))
            elif name == "register":
                with suppress(Unsupported):
                    twin = oracle.register(detail[0].text)
                    standing.append((soup.register(detail[0].text, materialize=detail[1]), twin))
            elif name == "unregister" and standing:
                query, twin = standing.pop(detail % len(standing))
                query.unregister()
                twin.unregister()
            elif name in ("pay", "expire"):
                soup.settle()
            for query, twin in standing:
                for now in (START, *script.moments):
                    with suppress(QueryFailed):
                        expected = comparable(twin.invoke(now))
                        assert comparable(query.invoke(now=from_micros(now))) == expected, query.sql
    finally:
        soup.drop_stream("s")
