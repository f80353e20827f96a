"""The engine against the oracle: any arrival order, any batching, queries before, between and after data.

A script of steps runs without Spark, and after every step every standing query must return the oracle's answer. Runs
are small, so that a few rows are sealed, indexed, matched and owed.
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
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select

import tureen
from tests.examples import example_settings
from tests.oracle.judges import same_value
from tureen.errors import QueryFailed, Unsupported
from tureen.pipeline import arrival, compiling, upkeep
from tureen.pot.catalog import take_seq
from tureen.pot.catalog_tables import clauses
from tureen.pot.clauses import choose_clauses
from tureen.predicate import AllOf, AnyOf, Predicate
from tureen.query import Expression, Query, aggregate_name, over_name
from tureen.results.snapshot import segment
from tureen.schema import FRACTIONAL, Kind, Schema
from tureen.testing import Handle, Oracle, comparable, strategies
from tureen.testing.manual_engine import Batch, ManualEngine, TakenBatch
from tureen.testing.truth import holds
from tureen.testing.values import normalized
from tureen.window import from_micros, to_micros

START = to_micros(strategies.BASE)
SECOND = 1_000_000

Step = tuple[str, Any]


@dataclass(frozen=True)
class Script:
    """A stream, and the steps of a test."""

    schema: Schema
    clock: str
    retain: str | None
    tail_rows: int
    fan: int
    prompt: bool
    """Whether queries are compiled and debts are paid after every step, so that most cells are published."""
    steps: list[Step]
    moments: list[int]
    """Instants to invoke at, in addition to the stream's NOW."""


@st.composite
def scripts(draw: st.DrawFn, timed: bool | None = None, grouped: bool = False) -> Script:
    """Streams of any schema with pushes, queries and upkeep, in any order.

    The queries select columns or, with `grouped`, use everything else, with few conditions so that they share clauses.
    """
    schema = draw(strategies.schemas(timed=timed))
    tame = grouped and draw(st.integers(0, 3)) > 0
    rows = strategies.rows(schema, min_size=2, tame=tame)
    sqls: st.SearchStrategy[strategies.QueryText | strategies.Question] = strategies.queries(schema, "s", depth=1)
    if grouped:
        wheres = draw(st.lists(strategies.conditions(schema, depth=0), max_size=2))
        sqls = strategies.questions(schema, tame, wheres=[None, None, *wheres])
    register = st.tuples(st.just("register"), st.tuples(sqls, st.sampled_from([True, False, None, None])))
    push = st.tuples(st.just("push"), st.tuples(rows, st.integers(1, 3)))
    step = st.one_of(
        push,
        push,
        register,
        register,
        st.tuples(st.just("append"), rows),
        st.tuples(st.just("append"), rows),
        st.tuples(st.just("take"), st.integers(1, 3)),
        st.tuples(st.sampled_from(["plan", "commit planned"]), st.none()),
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
        # Most steps are whole only when all tuples are in the past.
        [*([START + 7200 * SECOND] if grouped else []), *draw(st.lists(moments, max_size=1))],
    )


@dataclass
class ScriptRun:
    """A running script, in the engine and in the oracle."""

    script: Script
    root: Path
    now: int = START
    standing: list[tuple[str, Handle]] = field(default_factory=list)
    uncommitted: deque[tuple[Batch, list[dict[str, Any]], int]] = field(default_factory=deque)
    planned: TakenBatch | None = None

    def __post_init__(self) -> None:
        self.engine = ManualEngine(self.root, clock=lambda: self.now)
        self.oracle = Oracle(clock=lambda: self.now)
        schema, script = self.script.schema, self.script
        self.engine.create_stream("s", schema.sql, schema.time, script.clock, script.retain)
        self.oracle.create_stream("s", schema, clock=script.clock, retain=script.retain)

    def play(self) -> None:
        """Run every step, and compare after each."""
        for name, detail in self.script.steps:
            self.take(name, detail)
            if self.script.prompt:
                self.engine.compile()
                self.engine.pay()
            self.compare()

    def take(self, name: str, detail: Any) -> None:
        """Run a step on both sides."""
        match name:
            case "push":
                rows, parts = detail
                self.engine.push("s", rows, parts)
                self.arrived(rows, self.now)
            case "append":
                self.engine.append("s", detail)
                self.arrived(detail, self.now)
            case "take" if self.planned is None:
                self.engine.take("s", detail)
            case "plan" if self.planned is None:
                self.planned = self.engine.plan("s")
            case "commit planned" if self.planned is not None:
                self.engine.commit_taken(self.planned)
                self.planned = None
            case "begin":
                self.uncommitted.append((self.engine.begin("s", detail), detail, self.now))
            case "commit" if self.uncommitted:
                batch, rows, at = self.uncommitted.popleft()
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
        """Make some clauses eager and others lazy, regardless of cost."""
        with self.engine.catalog.write() as tx:
            clause_ids = tx.execute(select(clauses.c.id).order_by(clauses.c.id)).scalars()
            eager = {clause for index, clause in enumerate(clause_ids) if bits >> index % 8 & 1}
            choose_clauses(tx, take_seq(tx), eager, set(clause_ids) - eager)

    def arrived(self, rows: list[dict[str, Any]], at: int) -> None:
        """Push the rows that the engine has committed to the oracle."""
        self.oracle.push("s", rows, at=at)

    def drop(self, pair: tuple[str, Handle]) -> None:
        """Unregister a query on both sides."""
        self.engine.unregister(pair[0])
        self.oracle.unregister(pair[1])
        self.standing.remove(pair)

    def compare(self) -> None:
        """Invoke all standing queries."""
        for pair in list(self.standing):
            for now in (None, *self.script.moments):
                if not self.agree(*pair, now):
                    self.drop(pair)
                    break

    def agree(self, handle: str, expected_handle: Handle, now: int | None) -> bool:
        """Compare an answer; False if the query's condition fails for some tuple."""
        expected, answer = (
            _answer_or_error(lambda: expected_handle.invoke(now)),
            _answer_or_error(lambda: self.engine.invoke(handle, now)),
        )
        if isinstance(expected, QueryFailed) or isinstance(answer, QueryFailed):
            if self.may_fail(expected_handle):
                return False
            assert isinstance(expected, QueryFailed), f"{expected_handle.query.sql} raises {answer}, and should not"
            assert isinstance(answer, QueryFailed), f"{expected_handle.query.sql} should raise {expected}"
            return True
        messages = differences(answer, expected, expected_handle.query)
        assert not messages, "\n".join([expected_handle.query.sql, *messages])
        outputs = [(out.name, out.value.type.arrow) for out in expected_handle.query.outputs]
        assert list(zip(answer.table.schema.names, answer.table.schema.types, strict=True)) == outputs
        return True

    def may_fail(self, expected_handle: Handle) -> bool:
        """Whether a factor raises on any tuple, in the window or not, committed or not."""
        probe = Oracle()
        probe.create_stream("s", self.script.schema)
        for batch in (rows for _, rows, _ in self.uncommitted):
            probe.push("s", batch)
        rows = [tuple_.values for oracle in (self.oracle, probe) for tuple_ in oracle.tuples("s")]
        return any(_raises(leaf, row, self.script.schema) for leaf in _leaves(expected_handle) for row in rows)


def differences(answer: Iterable[Mapping[str, Any]], expected: list[dict[str, Any]], query: Query) -> list[str]:
    """Messages for the differences of two answers; sums of DOUBLE may differ by rounding."""
    rows = list(answer)
    if len(rows) != len(expected):
        return [f"{len(rows)} rows instead of {len(expected)}:\n{rows}\n{expected}"]
    comparisons = {output.name: _comparison(output.value, query) for output in query.outputs}
    return [
        f"row {number}, {name}: {row.get(name)!r} instead of {value!r}"
        for number, (row, expected_row) in enumerate(zip(rows, expected, strict=True))
        for name, value in expected_row.items()
        if list(row) != list(expected_row) or not comparisons[name](row[name], value)
    ]


_ADDED_UP = ("sum", "avg", "var_", "stddev_", "percentile", "corr", "covar_", "regr_")
_SORTED = ("min", "max", "approx_percentile")


def _comparison(value: Expression, query: Query) -> Callable[[Any, Any], bool]:
    """How values of an output compare: exactly, except for sums of floats and the sign of zeros."""
    aggregates = () if query.grouping is None else query.grouping.aggregates
    used = [call for number, call in enumerate(aggregates) if aggregate_name(number) in value.columns]
    used += [over.call for number, over in enumerate(query.overs) if over_name(number) in value.columns]
    if value.type.kind is Kind.DOUBLE and any(
        call.type.kind is Kind.DOUBLE and call.function.startswith(_ADDED_UP) for call in used
    ):
        return same_value
    if value.type.kind in FRACTIONAL and any(call.function in _SORTED for call in used):
        return lambda left, right: _is_same(normalized(left), normalized(right))
    return _is_same


def _is_same(left: Any, right: Any) -> bool:
    return comparable([{"": left}]) == comparable([{"": right}])


def _answer_or_error(invoke: Callable[[], Any]) -> Any:
    """An answer, or its error."""
    try:
        return invoke()
    except QueryFailed as error:
        return error


def _leaves(expected_handle: Handle) -> Iterator[Predicate]:
    pending = list(expected_handle.query.stream.clause)
    while pending:
        predicate = pending.pop()
        if isinstance(predicate, AllOf | AnyOf):
            pending += predicate.parts
        else:
            yield predicate


def _raises(leaf: Predicate, row: dict[str, Any], schema: Schema) -> bool:
    try:
        holds(leaf, row, schema)
    except QueryFailed:
        return True
    return False


@example_settings(13, explored=25)
@given(scripts())
def test_selections_agree_with_the_oracle(script: Script) -> None:
    play(script)


@example_settings(6, explored=10)
@given(scripts(grouped=True))
def test_groups_and_orders_agree_with_the_oracle(script: Script) -> None:
    play(script)


def play(script: Script) -> None:
    """Run a script, with small runs."""
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as root:
        patch.setattr(arrival, "TAIL_ROWS", script.tail_rows)
        patch.setattr(upkeep, "LONG_TAIL", 2 * script.tail_rows)
        patch.setattr(upkeep, "FAN", script.fan)
        patch.setattr(segment, "SCANS_BEFORE_INDEX", script.fan)
        patch.setattr(compiling, "SMALL_RUN", script.fan - 1)
        patch.setattr(compiling, "DEAD_SHARE", script.fan)
        run = ScriptRun(script, Path(root))
        try:
            run.play()
        finally:
            run.engine.close()


def test_scripts_reach_every_access_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Precondition of the scripts: with small runs, tuples are published, owed, lazy and scanned."""
    monkeypatch.setattr(arrival, "TAIL_ROWS", 3)
    engine = ManualEngine(tmp_path, clock=lambda: START)
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


def _materialize(eager: bool | None) -> bool | str:
    return "auto" if eager is None else eager


def _path(engine: ManualEngine, handle: str) -> str:
    paths = engine.invoker.explain(handle)["tuples_by_path"]
    return str(next(path for path, tuples in paths.items() if tuples))


@example_settings(3, shrink=False)
@given(scripts(timed=True) | scripts(timed=True, grouped=True))
def test_the_engine_on_spark_agrees_with_the_oracle(soup: tureen.Soup, script: Script) -> None:
    """The same scripts through push, Spark and threads, with upkeep in the background."""
    oracle = Oracle()
    oracle.create_stream("s", script.schema, retain=script.retain)
    soup.create_stream("s", script.schema, retain=script.retain)
    standing: list[tuple[tureen.StandingQuery, Handle]] = []
    try:
        for name, detail in script.steps:
            if name in ("push", "begin"):
                rows = detail[0] if name == "push" else detail
                oracle.push("s", rows)
                soup.push("s", rows)
                if name == "push":
                    soup.settle()
            elif name == "register":
                with suppress(Unsupported):
                    expected_handle = oracle.register(detail[0].text)
                    standing.append(
                        (soup.register(detail[0].text, materialize=_materialize(detail[1])), expected_handle)
                    )
            elif name == "unregister" and standing:
                query, expected_handle = standing.pop(detail % len(standing))
                query.unregister()
                expected_handle.unregister()
            elif name in ("pay", "expire"):
                soup.settle()
            for query, expected_handle in standing:
                for now in (START, *script.moments):
                    with suppress(QueryFailed):
                        expected = expected_handle.invoke(now)
                        messages = differences(query.invoke(now=from_micros(now)), expected, expected_handle.query)
                        assert not messages, "\n".join([query.sql, *messages])
    finally:
        soup.drop_stream("s")
