"""Joins: the engine against the oracle, and the oracle against DuckDB, after every step of a script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tests.oracle.judges import same_rows
from tureen.errors import QueryFailed, SqlError, Unsupported
from tureen.pipeline import arrival, compiling, join_keeping, upkeep
from tureen.results.joins import join_inputs
from tureen.schema import Schema
from tureen.soup.tables import Dimensions
from tureen.testing import Handle, Oracle
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
from tureen.window import to_micros

Step = tuple[str, Any]


@st.composite
def scripts(draw: st.DrawFn) -> list[Step]:
    """Pushes to streams, queries, tables and upkeep, in any order."""
    stream = st.sampled_from(STREAMS)
    push = st.tuples(st.sampled_from(["push", "push", "append"]), st.tuples(stream, stream_rows()))
    register = st.tuples(st.just("register"), st.tuples(joins(), st.sampled_from([True, False, None])))
    upkeep_steps = ["compile", "pay", "seal", "seal all", "keep_joins", "keep_joins", "index_keys"]
    other = st.one_of(
        st.tuples(st.just("take"), stream),
        st.tuples(st.just("replace"), table_rows()),
        st.tuples(st.just("unregister"), st.integers(0, 9)),
        st.tuples(st.sampled_from(upkeep_steps), st.none()),
    )
    first = [("push", (name, draw(stream_rows()))) for name in STREAMS]
    steps = draw(st.lists(st.one_of(push, register, other), max_size=6))
    queries = draw(st.lists(register, min_size=2, max_size=4))
    return [*draw(st.lists(register, max_size=1)), *first, *queries, ("keep_joins", None), *steps]


@dataclass
class ScriptRun:
    """A script that runs in the engine, in the oracle and in DuckDB."""

    root: Path
    standing: list[tuple[JoinText, str, Handle]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STREAMS, 0))
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {name: [] for name in STREAMS})

    def __post_init__(self) -> None:
        self.now = to_micros(START)
        self.engine = ManualEngine(self.root, lambda: self.now)
        self.oracle = Oracle(lambda: self.now)
        for name in STREAMS:
            for target in (self.engine, self.oracle):
                target.create_stream(name, STREAM_COLUMNS, time="ts", clock="stream")
        self.tables = Dimensions(self.engine.catalog)
        self.tables.create(TABLE, TABLE_COLUMNS, [])
        self.oracle.create_table(TABLE, TABLE_COLUMNS, [])
        self.table: list[dict[str, Any]] = []
        self.judge = duckdb.connect()
        self.judge.execute("SET TimeZone = 'UTC'")
        for name in (*STREAMS, TABLE):
            self._show(name)

    def run(self, step: Step) -> None:
        """Run a step and compare all answers; after a registration the new one, because no other can have changed."""
        action, value = step
        asked = self.standing
        match action:
            case "push" | "append":
                self._push(action, *value)
            case "register":
                self._register(*value)
                asked = self.standing[-1:]
            case "take":
                self.engine.take(value)
            case "replace":
                self.table = value
                self.tables.replace(TABLE, value)
                self.oracle.replace_table(TABLE, value)
                self._show(TABLE)
            case "unregister":
                if value < len(self.standing):
                    _, handle, twin = self.standing.pop(value)
                    self.engine.unregister(handle)
                    twin.unregister()
            case "seal all":
                self.engine.seal(everything=True)
            case _:
                getattr(self.engine, action)()
        self.check(asked)

    def close(self) -> None:
        """Close the engine and DuckDB."""
        self.engine.close()
        self.judge.close()

    def _push(self, action: str, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        first, jitter = self.counts[name], STREAMS.index(name) * 100
        timed = [{**row, "ts": time_of(first + number, jitter)} for number, row in enumerate(rows)]
        self.counts[name] += len(rows)
        (self.engine.push if action == "push" else self.engine.append)(name, timed)
        self.oracle.push(name, timed)
        self.rows[name] += [{**row, "_id": first + number} for number, row in enumerate(timed)]
        self._show(name)

    def _register(self, text: JoinText, materialize: bool | None) -> None:
        try:
            twin = self.oracle.register(text.text)
        except (Unsupported, SqlError) as error:
            with pytest.raises(type(error)):
                self.engine.register(text.text)
            return
        self.standing.append((text, self.engine.register(text.text, materialize=materialize), twin))

    def check(self, asked: Sequence[tuple[JoinText, str, Handle]]) -> None:
        """Compare the answers of some queries; where the oracle raises, the engine raises too."""
        for text, handle, twin in asked:
            try:
                expected = twin.invoke()
            except QueryFailed:
                with pytest.raises(QueryFailed):
                    self.engine.invoke(handle)
                continue
            answer = list(self.engine.invoke(handle))
            assert same_rows(answer, expected, ordered=True), (text.text, answer, expected)
            now = self._now(twin)
            judged = self.judge.sql(text.judge_sql.replace("{now}", str(now))).to_arrow_table().to_pylist()
            assert same_rows(expected, judged, text.ordered), (text.text, text.judge_sql, now, expected, judged)

    def _now(self, twin: Handle) -> int:
        names = {entry.relation for entry in twin.query.leaves if entry.relation in STREAMS}
        times = [to_micros(row["ts"]) for name in names for row in self.rows[name]]
        return max(times, default=self.now)

    def _show(self, name: str) -> None:
        """Let DuckDB see the rows that a stream or the table now has."""
        if name == TABLE:
            table = pa.Table.from_pylist(self.table, Schema.parse(TABLE_COLUMNS).arrow)
        else:
            schema = Schema.parse(STREAM_COLUMNS).arrow.append(pa.field("_id", pa.int64()))
            table = pa.Table.from_pylist(self.rows[name], schema)
        self.judge.register(name, table)


@example_settings(8, explored=12, shrink=False)
@given(scripts(), st.booleans(), st.sampled_from([1 << 20, 3]), st.sampled_from([1 << 20, 4]))
def test_joins_equal_oracle_and_duckdb_at_every_step(
    script: list[Step], by_key: bool, step_tuples: int, large_step: int
) -> None:
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(arrival, "TAIL_ROWS", 4)
        patch.setattr(upkeep, "LONG_TAIL", 8)
        patch.setattr(upkeep, "FAN", 2)
        patch.setattr(compiling, "SMALL_RUN", 1)
        patch.setattr(arrival, "KEYED_ROWS", 1)
        patch.setattr(join_keeping, "STEP_TUPLES", step_tuples)
        patch.setattr(join_keeping, "LARGE_STEP", large_step)
        if by_key:
            # Every equality with an input is looked up in a key index.
            patch.setattr(join_inputs, "PROBE_SHARE", 0)
            patch.setattr(join_inputs, "PROBE_COST", 0)
        run = ScriptRun(Path(folder))
        try:
            for step in script:
                run.run(step)
        finally:
            run.close()
