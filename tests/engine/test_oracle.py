"""The engine against its plain twin: any arrival order, any batching, queries before, between and after data.

A script of steps is turned by hand, without Spark, and after every step every standing query must answer what
the oracle answers. Runs are made small, so that a handful of rows is sealed, indexed, matched and owed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

import tureen
from tests.testing.judges import same_value
from tureen.errors import QueryFailed, Unsupported
from tureen.pipeline import arrival, compiling, upkeep
from tureen.pot.catalog import take_seq
from tureen.pot.catalog_tables import clauses
from tureen.pot.clauses import choose_clauses
from tureen.predicate import AllOf, AnyOf, Predicate
from tureen.query import Expression, Query, aggregate_name, over_name
from tureen.schema import FRACTIONAL, Kind, Schema
from tureen.testing import Handle, Oracle, comparable, strategies
from tureen.testing.hand_turned import Batch, HandTurned
from tureen.testing.truth import holds
from tureen.testing.values import normalized
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
def scripts(draw: st.DrawFn, timed: bool | None = None, asking: bool = False) -> Script:
    """Streams of any schema with some pushes, queries and upkeep, in any order.

    The queries select columns or, with `asking`, ask for everything else: few conditions then, so that they share.
    """
    schema = draw(strategies.schemas(timed=timed))
    tame = asking and draw(st.integers(0, 3)) > 0
    rows = strategies.rows(schema, min_size=2, tame=tame)
    asked: st.SearchStrategy[strategies.QueryText | strategies.Question] = strategies.queries(schema, "s", depth=1)
    if asking:
        wheres = draw(st.lists(strategies.conditions(schema, depth=0), max_size=2))
        asked = strategies.questions(schema, tame, wheres=[None, None, *wheres])
    register = st.tuples(st.just("register"), st.tuples(asked, st.sampled_from([True, False, None, None])))
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
        st.tuples(st.just("choose"), st.integers(0, 255)),
        st.tuples(st.sampled_from(["compile", "pay", "pay", "seal", "seal all", "expire"]), st.none()),
    )
    moments = st.integers(-7200, 7200).map(lambda seconds: START + seconds * SECOND)
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
        # Most steps are whole only when all that there is lies in the past.
        [*([START + 7200 * SECOND] if asking else []), *draw(st.lists(moments, max_size=1))],
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
            case "choose":
                self.choose(detail)
            case "compile":
                self.engine.compile()
            case "pay":
                self.engine.pay()
            case "seal" | "seal all":
                self.engine.seal(everything=name == "seal all")
            case "expire":
                self.engine.expire()

    def choose(self, bits: int) -> None:
        """Keep some clauses ready and others not, whatever it costs."""
        with self.engine.catalog.write() as tx:
            known = tx.execute(select(clauses.c.id).order_by(clauses.c.id)).scalars().all()
            eager = {clause for place, clause in enumerate(known) if bits >> place % 8 & 1}
            choose_clauses(tx, take_seq(tx), eager, set(known) - eager)

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
        """Compare one answer; False where the query's condition has failed, and rightly so."""
        expected, answer = _outcome(lambda: twin.invoke(now)), _outcome(lambda: self.engine.invoke(ours, now))
        if isinstance(expected, QueryFailed) or isinstance(answer, QueryFailed):
            if self.may_fail(twin):
                return False
            assert isinstance(expected, QueryFailed), f"{twin.query.sql} raises {answer}, and should not"
            assert isinstance(answer, QueryFailed), f"{twin.query.sql} should raise {expected}"
            return True
        found = differences(answer, expected, twin.query)
        assert not found, "\n".join([twin.query.sql, *found])
        outputs = [(out.name, out.value.type.arrow) for out in twin.query.outputs]
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


def differences(answer: Iterable[Mapping[str, Any]], expected: list[dict[str, Any]], query: Query) -> list[str]:
    """Where two answers differ; only what is added up from DOUBLE may do so, and by a rounding."""
    rows = list(answer)
    if len(rows) != len(expected):
        return [f"{len(rows)} rows instead of {len(expected)}:\n{rows}\n{expected}"]
    alikes = {output.name: _likeness(output.value, query) for output in query.outputs}
    return [
        f"row {number}, {name}: {one.get(name)!r} instead of {value!r}"
        for number, (one, other) in enumerate(zip(rows, expected, strict=True))
        for name, value in other.items()
        if list(one) != list(other) or not alikes[name](one[name], value)
    ]


_ADDED_UP = ("sum", "avg", "var_", "stddev_", "percentile")
_SORTED = ("min", "max", "approx_percentile")


def _likeness(value: Expression, query: Query) -> Callable[[Any, Any], bool]:
    """How values of an output compare: exactly, but for what floats are added up to, and which zero comes first."""
    aggregates = () if query.grouping is None else query.grouping.aggregates
    used = [one for number, one in enumerate(aggregates) if aggregate_name(number) in value.columns]
    used += [one.call for number, one in enumerate(query.overs) if over_name(number) in value.columns]
    if value.type.kind is Kind.DOUBLE and any(
        one.type.kind is Kind.DOUBLE and one.function.startswith(_ADDED_UP) for one in used
    ):
        return same_value
    if value.type.kind in FRACTIONAL and any(one.function in _SORTED for one in used):
        return lambda one, other: _is_same(normalized(one), normalized(other))
    return _is_same


def _is_same(one: Any, other: Any) -> bool:
    return comparable([{"": one}]) == comparable([{"": other}])


def _outcome(invoke: Callable[[], Any]) -> Any:
    """An answer, or how there was none."""
    try:
        return invoke()
    except QueryFailed as error:
        return error


def _leaves(twin: Handle) -> Iterator[Predicate]:
    todo = list(twin.query.stream.clause)
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
    play(script)


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(scripts(asking=True))
def test_the_engine_groups_and_orders_as_the_oracle_does(script: Script) -> None:
    play(script)


def play(script: Script) -> None:
    """Turn a script by hand, with small runs."""
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as root:
        patch.setattr(arrival, "TAIL_ROWS", script.tail_rows)
        patch.setattr(upkeep, "LONG_TAIL", 2 * script.tail_rows)
        patch.setattr(upkeep, "FAN", script.fan)
        patch.setattr(compiling, "SMALL_RUN", script.fan - 1)
        patch.setattr(compiling, "DEAD_SHARE", script.fan)
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


def _said(eager: bool | None) -> bool | str:
    return "auto" if eager is None else eager


def _path(engine: HandTurned, handle: str) -> str:
    paths = engine.invoker.explain(handle)["tuples_by_path"]
    return str(next(path for path, tuples in paths.items() if tuples))


@settings(max_examples=3, phases=(Phase.generate,), deadline=None, suppress_health_check=list(HealthCheck))
@given(scripts(timed=True) | scripts(timed=True, asking=True))
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
                    standing.append((soup.register(detail[0].text, materialize=_said(detail[1])), twin))
            elif name == "unregister" and standing:
                query, twin = standing.pop(detail % len(standing))
                query.unregister()
                twin.unregister()
            elif name in ("pay", "expire"):
                soup.settle()
            for query, twin in standing:
                for now in (START, *script.moments):
                    with suppress(QueryFailed):
                        expected = twin.invoke(now)
                        found = differences(query.invoke(now=from_micros(now)), expected, twin.query)
                        assert not found, "\n".join([query.sql, *found])
    finally:
        soup.drop_stream("s")
