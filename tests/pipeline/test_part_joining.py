"""Kept joins with plans, against the same queries evaluated when they are invoked, and DuckDB."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.join_parts import sub_joins_of
from tureen.pipeline import arrival, join_keeping, upkeep
from tureen.plan_hint import PlanHint
from tureen.pot.kept_joins import KeptJoin, joins_to_keep
from tureen.stream_join import StreamJoin
from tureen.testing.manual_engine import ManualClock, ManualEngine

START = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS = "n INT, k INT, m BIGINT, s STRING, ts TIMESTAMP"
CONDITIONS = {
    "abc": ["t0.k = t1.k", "t1.m = t2.m"],
    "cab": ["t0.k = t1.k", "t0.s = t2.s", "t1.m <= t2.m"],
    "aba": ["t0.k = t1.m", "t1.s = t2.s", "t0.n < t2.n"],
    "abcd": ["t0.k = t1.k", "t1.m = t2.m", "t2.k = t3.k", "t0.s = t3.s"],
    "dcba": ["t0.k = t1.k", "t0.k = t2.k", "t0.m = t3.m"],
    "abcdb": ["t0.k = t1.k", "t1.s = t2.s", "t2.k = t3.k", "t3.m = t4.m", "t0.k = t3.k"],
}
"""For each join the streams that it reads, and how they are compared."""
STEPS = {"push": 10, "late": 2, "keep": 5, "keep once": 2, "seal": 2, "register": 2, "unregister": 1, "reopen": 1}


def sql_of(streams: str, window: int | None) -> str:
    sources = ", ".join(f"{stream} t{number}" for number, stream in enumerate(streams))
    outputs = ", ".join(f"t{number}.n AS n{number}" for number in range(len(streams)))
    end = "" if window is None else f" BEGIN NOW - {window} END NOW"
    return f"SELECT {outputs} FROM {sources} WHERE {' AND '.join(CONDITIONS[streams])}{end}"


class _Script:
    """Random pushes, commits, merges, queries that come and go, and restarts."""

    def __init__(self, folder: Path, draw: random.Random) -> None:
        self.folder, self.draw, self.clock = folder, draw, ManualClock(START)
        self.engine = ManualEngine(folder, self.clock)
        retain = draw.choice([None, None, "20 seconds"])
        for name in "abcd":
            self.engine.create_stream(name, COLUMNS, time="ts", clock="stream", retain=retain)
        self.retain = retain
        self.rows: dict[str, list[dict[str, Any]]] = {name: [] for name in "abcd"}
        self.standing: list[tuple[str, str, str, int | None]] = []
        self.second = 0

    def step(self, kind: str) -> None:
        engine, draw = self.engine, self.draw
        if kind in ("push", "late"):
            self.push(draw.choice("abcd"), 12 if kind == "late" else 0)
        elif kind == "keep":
            engine.keep_joins()
        elif kind == "keep once":
            engine.keep_joins_once()
        elif kind == "seal":
            engine.seal()
        elif kind == "register":
            self.register()
        elif kind == "unregister" and self.standing:
            kept, lazy, _, _ = self.standing.pop(draw.randrange(len(self.standing)))
            engine.unregister(kept)
            engine.unregister(lazy)
        elif kind == "reopen":
            engine.close()
            self.engine = ManualEngine(self.folder, self.clock)

    def push(self, name: str, late: int) -> None:
        draw = self.draw
        rows: list[dict[str, Any]] = []
        for _ in range(draw.randint(1, 4)):
            self.second += draw.randint(0, 1)
            key = None if draw.random() < 0.1 else draw.randrange(3)
            time = START + timedelta(seconds=self.second - draw.randint(0, late))
            row = {"n": len(self.rows[name]) + len(rows), "k": key, "m": draw.randrange(3), "s": draw.choice("xyz")}
            rows.append({**row, "ts": time})
        self.rows[name] += rows
        self.engine.append(name, rows)
        self.engine.take(name)

    def register(self) -> None:
        streams, window = self.draw.choice(list(CONDITIONS)), self.draw.choice([None, None, 5, 9])
        hint = PlanHint(self.draw.choice(["left-deep", "bushy", "left-deep", "bushy", None]))
        sql = sql_of(streams, window)
        kept = self.engine.register(sql, materialize=True, hint=hint)
        self.standing.append((kept, self.engine.register(sql, materialize=False), streams, window))

    def check(self, *, by_duckdb: bool = False) -> None:
        for kept, lazy, streams, window in self.standing:
            answer, expected = (self.engine.invoke(handle).table for handle in (kept, lazy))
            columns = [f"n{number}" for number in range(len(streams))]
            assert _sorted(answer, columns) == _sorted(expected, columns)
            if by_duckdb and window is None and self.retain is None:
                assert _sorted(answer, columns) == self.by_duckdb(streams)

    def by_duckdb(self, streams: str) -> list[tuple[Any, ...]]:
        schema = pa.schema([("n", pa.int32()), ("k", pa.int32()), ("m", pa.int64()), ("s", pa.string())])
        with duckdb.connect() as connection:
            for name, rows in self.rows.items():
                connection.register(name, pa.Table.from_pylist(rows, schema))
            return sorted(connection.sql(sql_of(streams, None)).fetchall())


def _sorted(table: pa.Table, columns: list[str]) -> list[tuple[Any, ...]]:
    return sorted(zip(*(table.column(name).to_pylist() for name in columns), strict=True))


def kept(engine: ManualEngine) -> dict[str, KeptJoin]:
    with engine.catalog.read() as tx:
        return {join.key: join for join in joins_to_keep(tx)}


def run_script(seed: int, steps: int = 24) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrival, "TAIL_ROWS", 4)
        patch.setattr(upkeep, "TAIL_ROWS", 4)
        patch.setattr(upkeep, "FAN", 2)
        draw = random.Random(seed)
        patch.setattr(join_keeping, "STEP_TUPLES", draw.choice([1 << 20, 3]))
        patch.setattr(join_keeping, "FAN_OUT_SAMPLE", draw.choice([1 << 20, 200]))
        script = _Script(Path(folder), draw)
        script.register()
        for _ in range(steps):
            script.step(draw.choices(list(STEPS), list(STEPS.values()))[0])
            script.check()
        script.check(by_duckdb=True)
        script.engine.close()


@example_settings(2, explored=3)
@given(st.integers(0, 1 << 32))
def test_answers_are_those_of_lazy_queries(seed: int) -> None:
    run_script(seed)


@pytest.mark.parametrize("plan", ["left-deep", "bushy"])
@pytest.mark.parametrize("streams", CONDITIONS)
def test_every_shape_with_steps_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, streams: str, plan: str
) -> None:
    """With a sub-join that another query has kept before, and that is ahead; then all streams grow."""
    monkeypatch.setattr(join_keeping, "STEP_TUPLES", 7)
    monkeypatch.setattr(join_keeping, "FAN_OUT_SAMPLE", 1 << 20)
    script = _Script(tmp_path, random.Random(len(streams)))
    script.retain = None
    for _ in range(12):
        script.push(script.draw.choice(streams), 0)
    known = script.engine.register("SELECT t0.n FROM a t0, b t1 WHERE t0.k = t1.k", materialize=True)
    script.engine.keep_joins()
    before = kept(script.engine)
    sql = sql_of(streams, None)
    handle = script.engine.register(sql, materialize=True, hint=PlanHint(plan))
    script.standing.append((handle, script.engine.register(sql, materialize=False), streams, None))
    for _ in range(2):
        script.engine.keep_joins_once()
        script.check()
    for _ in range(3):
        for name in sorted(set(streams)):
            script.push(name, 3)
        script.engine.keep_joins()
    script.check(by_duckdb=True)
    nodes_shown = script.engine.invoker.explain(handle)["kept_join"]["sub_joins"]
    assert [len(node["streams"]) for node in nodes_shown][-1] < len(streams)
    assert all(node["refused"] is None for node in nodes_shown)
    after = kept(script.engine)
    (root,) = (join for key, join in after.items() if len(join.progress) == len(streams))
    nodes = sub_joins_of(StreamJoin.of_key(root.key), plan)
    assert len(nodes) == len(nodes_shown) == len(streams) - 2
    assert after.keys() == {root.key, *before, *(node.key for node in nodes)}
    script.engine.unregister(handle)
    script.engine.keep_joins()
    assert kept(script.engine).keys() == before.keys()
    script.engine.unregister(known)
    script.engine.keep_joins()
    assert not kept(script.engine)
    script.engine.close()


POINTS = ["join.before_write", "join.after_write", "join.before_commit", "join.in_commit", "join.after_commit"]


@pytest.mark.parametrize("point", POINTS)
def test_steps_that_end_anywhere_are_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """The sub-join, or the join, ends at a commit point; another process continues."""
    script = _Script(tmp_path, random.Random(1))
    script.retain = None
    sql = sql_of("abc", None)
    handle = script.engine.register(sql, materialize=True, hint=PlanHint("left-deep"))
    script.standing.append((handle, script.engine.register(sql, materialize=False), "abc", None))
    for ended_step in (1, 2):
        for name in "abcabc":
            script.push(name, 0)
        passed = 0

        def end_there(reached: str, ended_step: int = ended_step) -> None:
            nonlocal passed
            passed += reached == point
            if reached == point and passed == ended_step:
                raise _EndedError

        with monkeypatch.context() as patch:
            patch.setattr("tureen.pipeline.join_keeping.crash_point", end_there)
            patch.setattr("tureen.pipeline.join_task.crash_point", end_there)
            with pytest.raises(_EndedError):
                script.engine.keep_joins()
        script.step("reopen")
        script.check()
        script.engine.keep_joins()
        script.check()
        assert script.engine.invoker.explain(handle)["kept_join"]["owed_tuples"] == {"a": 0, "b": 0, "c": 0}
    script.engine.close()


class _EndedError(BaseException):
    """Stands for the end of a process."""


def test_a_refused_sub_join_leaves_the_join_to_the_eddy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_keeping, "FAN_OUT_SAMPLE", 8)
    engine = ManualEngine(tmp_path)
    for name in "abc":
        engine.create_stream(name, "k INT, m INT")
    sql = "SELECT a.m, c.m AS n FROM a JOIN b ON a.k = b.k JOIN c ON b.m = c.m"
    handle = engine.register(sql, materialize=True, hint=PlanHint("left-deep"))
    for name in "ab":
        engine.append(name, [{"k": 1, "m": number} for number in range(20)])
    engine.append("c", [{"k": 1, "m": 3}])
    for name in "abc":
        engine.take(name)
    engine.keep_joins()
    about = engine.invoker.explain(handle)["kept_join"]
    assert about["used"]
    assert about["joined_tuples"] == len(list(engine.invoke(handle))) == 20
    (node,) = about["sub_joins"]
    assert node["streams"] == ["a", "b"]
    assert "more than 8 each" in node["refused"]
    engine.close()
