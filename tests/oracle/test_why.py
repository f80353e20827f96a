"""Why tuples are in an answer or not: the engine against the oracle, for random queries over one stream and joins."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tests.oracle.test_engine import Script, ScriptRun, scripts
from tureen.errors import QueryFailed, SqlError, TureenError, Unsupported
from tureen.pipeline import arrival, upkeep
from tureen.query import Query, RelationKind
from tureen.schema import Column, Kind, Schema, Type
from tureen.soup.tables import Dimensions
from tureen.testing import Oracle
from tureen.testing.answered_ids import answered_ids
from tureen.testing.join_strategies import (
    START,
    STREAM_COLUMNS,
    STREAMS,
    TABLE,
    TABLE_COLUMNS,
    JoinText,
    joins,
    stream_rows,
    table_rows,
    time_of,
)
from tureen.testing.manual_engine import ManualEngine
from tureen.testing.oracle import now_of
from tureen.testing.tuples import in_window
from tureen.why.asking import explain_tuples
from tureen.why.explanation import ExplainedTuple, Reason
from tureen.window import to_micros

ALL = 1_000
"""More tuples than any example has."""

ABOUT_ROWS = frozenset({"joined", "group", "distinct"})
"""The kinds of reasons that do not keep a tuple out."""

CHECKED: Counter[str] = Counter()
"""How many factors were evaluated by the oracle, so that the checks are known to happen."""


def check(oracle: Oracle, engine: ManualEngine, handle: str, query: Query, now: int | None) -> None:
    """Ask about all tuples of each input, and compare with the oracle."""
    for number, entry in enumerate(query.inputs):
        if entry.block is not None:
            continue
        expected = answered_ids(oracle, query, number, now)
        answer = explain_tuples(engine.invoker, handle, f"{entry.names[0]}.id IS NOT NULL", now, ALL)
        assert answer.total == len(answer.tuples)
        for explained in answer:
            about = query.sql, entry.names[0], now, explained
            assert explained.in_answer == (explained.row["id"] in expected), about
            check_reasons(oracle, query, number, explained)
        if entry.kind is RelationKind.STREAM:
            check_window(oracle, query, number, now, answer.tuples)


def check_reasons(oracle: Oracle, query: Query, number: int, explained: ExplainedTuple) -> None:
    """Each factor that is named is not true."""
    kept_out = [reason for reason in explained.reasons if reason.kind not in ABOUT_ROWS]
    assert explained.in_answer == (not kept_out), (query.sql, explained)
    for reason in kept_out:
        if reason.kind == "factor":
            check_factor(oracle, query, number, explained, reason)
        elif reason.kind == "no partner" and reason.nearest is not None:
            check_nearest(oracle, query, number, explained, reason)


def check_factor(oracle: Oracle, query: Query, number: int, explained: ExplainedTuple, reason: Reason) -> None:
    """A factor over one input: the oracle evaluates its text over the tuple alone."""
    entry = query.inputs[number]
    alone = copy_of(oracle, {entry.relation: explained.row})
    source = f"{entry.relation} {entry.names[0]}"
    for condition, rows in ((reason.factor, 0), (f"({reason.factor}) IS NULL", reason.truth == "unknown")):
        try:
            answer = alone.register(f"SELECT 1 FROM {source} WHERE {condition}").invoke()
        except TureenError:
            # The text of a condition that only DuckDB evaluates, or of one over several inputs.
            return
        assert len(answer) == rows, (query.sql, condition, explained)
        CHECKED["factors"] += 1


def check_nearest(oracle: Oracle, query: Query, number: int, explained: ExplainedTuple, reason: Reason) -> None:
    """A factor between two inputs: the oracle evaluates its text over the tuple and the nearest one."""
    entry = query.inputs[number]
    other = next((other for other in query.inputs if other.names and other.names[0] == reason.input), None)
    assert reason.nearest is not None
    if other is None or other.block is not None or not explained.row:
        return
    partner = {name.partition(".")[2]: value for name, value in reason.nearest.items()}
    source = Oracle()
    for name, relation, row in ((entry.names[0], entry, explained.row), (other.names[0], other, partner)):
        schema = oracle._lookup(relation.relation).schema
        source.create_table(name, Schema(schema.columns), [row])
    try:
        handle = source.register(f"SELECT 1 FROM {entry.names[0]}, {other.names[0]} WHERE {reason.factor}")
    except TureenError:
        return
    assert handle.invoke() == [], (query.sql, explained, reason)
    CHECKED["nearest"] += 1


def check_window(
    oracle: Oracle, query: Query, number: int, now: int | None, tuples: tuple[ExplainedTuple, ...]
) -> None:
    """The tuples outside the window are those that the oracle has not in it."""
    entry, wall = query.inputs[number], oracle._clock()
    stream = oracle._stream(entry.relation)
    if now is None:
        streams = [oracle._stream(leaf.relation) for leaf in query.leaves if leaf.kind is RelationKind.STREAM]
        now = now_of(streams, wall)
    inside = {tuple_.values["id"] for tuple_ in in_window(stream.retained(wall), entry.window.span(now))}
    outside = {
        explained.row["id"]
        for explained in tuples
        if any(reason.kind in ("window", "expired") for reason in explained.reasons)
    }
    assert {explained.row["id"] for explained in tuples} - outside == inside, (query.sql, now)


def copy_of(oracle: Oracle, rows: dict[str, Any]) -> Oracle:
    """An oracle with tables instead of streams, each with one row."""
    alone = Oracle()
    for name, row in rows.items():
        alone.create_table(name, Schema(oracle._lookup(name).schema.columns), [row])
    return alone


class WhyRun(ScriptRun):
    """A script over a stream with ids; after its last step, all tuples are asked about."""

    def __post_init__(self) -> None:
        schema = self.script.schema
        with_id = Schema((*schema.columns, Column("id", Type(Kind.BIGINT))), schema.time)
        self.script = replace(self.script, schema=with_id)
        self.ids = count()
        super().__post_init__()

    def take(self, name: str, detail: Any) -> None:
        """Run a step, with ids for its rows."""
        if name == "push":
            detail = self._with_ids(detail[0]), detail[1]
        elif name in ("append", "begin"):
            detail = self._with_ids(detail)
        super().take(name, detail)

    def _with_ids(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**row, "id": next(self.ids)} for row in rows]

    def compare(self) -> None:
        """Nothing: answers are compared by other tests."""

    def ask(self) -> None:
        """Ask about all tuples, of each query that raises no error."""
        for handle, twin in self.standing:
            for now in (None, *self.script.moments):
                if self.may_fail(twin):
                    break
                try:
                    twin.invoke(now)
                except QueryFailed:
                    continue
                check(self.oracle, self.engine, handle, twin.query, now)


def ask(script: Script) -> None:
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as root:
        patch.setattr(arrival, "TAIL_ROWS", script.tail_rows)
        patch.setattr(upkeep, "LONG_TAIL", 2 * script.tail_rows)
        patch.setattr(upkeep, "FAN", script.fan)
        run = WhyRun(script, Path(root))
        try:
            run.play()
            run.ask()
        finally:
            run.engine.close()


@example_settings(10, explored=15)
@given(scripts())
def test_selections_explain_every_tuple(script: Script) -> None:
    ask(script)


@example_settings(8, explored=15)
@given(scripts(grouped=True))
def test_groups_and_orders_explain_every_tuple(script: Script) -> None:
    ask(script)


@example_settings(20)
@given(
    st.lists(joins(), min_size=2, max_size=4),
    st.fixed_dictionaries({name: st.lists(stream_rows(), min_size=1, max_size=2) for name in STREAMS}),
    table_rows(),
)
def test_joins_explain_every_tuple(
    texts: list[JoinText], pushes: dict[str, list[list[dict[str, Any]]]], table: list[dict[str, Any]]
) -> None:
    clock = lambda: to_micros(START)  # noqa: E731
    with TemporaryDirectory() as root:
        engine, oracle = ManualEngine(Path(root), clock), Oracle(clock)
        try:
            for name in STREAMS:
                for target in (engine, oracle):
                    target.create_stream(name, f"{STREAM_COLUMNS}, id BIGINT", time="ts", clock="stream")
                numbers = count()
                for index, rows in enumerate(pushes[name]):
                    jitter = STREAMS.index(name) * 100
                    timed = [{**row, "id": n, "ts": time_of(n, jitter)} for row in rows for n in [next(numbers)]]
                    (engine.append if index else engine.push)(name, timed)
                    oracle.push(name, timed)
            numbered = [{**row, "id": number} for number, row in enumerate(table)]
            Dimensions(engine.catalog).create(TABLE, f"{TABLE_COLUMNS}, id BIGINT", numbered)
            oracle.create_table(TABLE, f"{TABLE_COLUMNS}, id BIGINT", numbered)
            for text in texts:
                try:
                    twin = oracle.register(text.text)
                    twin.invoke()
                except (Unsupported, SqlError, QueryFailed):
                    continue
                check(oracle, engine, engine.register(text.text, materialize=False), twin.query, None)
        finally:
            engine.close()


def test_factors_were_checked() -> None:
    """After the tests above: reasons are not only of kinds that the oracle does not evaluate."""
    if CHECKED:
        assert CHECKED["factors"] > 100
        assert CHECKED["nearest"] > 100
