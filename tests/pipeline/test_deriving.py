"""Derived streams: their tuples are the changes of a query, each once, whatever happens in between."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import func, select

from tests.examples import example_settings
from tests.pipeline.derived_rows import BASE, SCHEMA, answer, counted, row
from tureen.errors import (
    DependentStreams,
    DuplicateName,
    InvalidSchema,
    SqlError,
    TureenError,
    UnknownColumn,
    Unsupported,
)
from tureen.joining.join_limits import JoinLimits
from tureen.pipeline import arrival, derivation, upkeep
from tureen.position import BEGINNING, Position, PushPosition
from tureen.pot import log
from tureen.pot.catalog_tables import push_keys, streams
from tureen.pot.runs import rejected_rows
from tureen.pot.streams import drop_stream, find_stream
from tureen.pot.tables import drop_dimension, find_dimension
from tureen.soup.tables import Dimensions
from tureen.testing.manual_engine import ManualEngine


@pytest.fixture
def engine(engine: ManualEngine) -> ManualEngine:
    engine.create_stream("s", SCHEMA, time="ts", clock="stream")
    return engine


def test_history_comes_first_and_new_tuples_follow(engine: ManualEngine) -> None:
    engine.push("s", [row(number) for number in range(5)])
    engine.append("s", [row(5)])
    engine.derive_stream("big", "SELECT v * 10 AS ten, ts FROM s WHERE v > 2")
    engine.derive()
    assert sorted(each["ten"] for each in answer(engine, "SELECT ten FROM big")) == [30, 40, 50]
    engine.append("s", [row(6), row(1)])
    engine.derive()
    engine.take("big")
    engine.seal(everything=True)
    assert sorted(each["ten"] for each in answer(engine, "SELECT ten FROM big")) == [30, 40, 50, 60]


def test_time_is_that_of_the_input_or_named_or_of_arrival(engine: ManualEngine) -> None:
    engine.derive_stream("a", "SELECT v, ts AS moment FROM s")
    engine.derive_stream("b", "SELECT v, ts, ts + INTERVAL 1 HOUR AS later FROM s", time="later", clock="wall")
    engine.derive_stream("c", "SELECT v FROM s")
    engine.derive_stream("d", "SELECT k, count(*) AS n, window_start, window_end FROM s [TUMBLE 1 MINUTE] GROUP BY k")
    with engine.catalog.read() as tx:
        created = {name: find_stream(tx, name) for name in "abcd"}
    assert {name: stream.schema.time for name, stream in created.items()} == {
        "a": "moment",
        "b": "later",
        "c": None,
        "d": "window_start",
    }
    assert {name: stream.clock for name, stream in created.items()} == {
        "a": "stream",
        "b": "wall",
        "c": "stream",
        "d": "stream",
    }


@pytest.mark.parametrize(
    ("sql", "error", "message"),
    [
        ("SELECT count(*) AS n FROM s", Unsupported, "groups without steps"),
        ("SELECT DISTINCT k FROM s", Unsupported, "has no changes"),
        ("SELECT k FROM s ORDER BY k LIMIT 3", Unsupported, "has no changes"),
        ("SELECT s.k FROM s LEFT JOIN s t ON s.k = t.k", Unsupported, "no changes"),
        ("SELECT k, count(*) AS n FROM s [ROWS 10 SLIDE 10] GROUP BY k", Unsupported, "steps of rows"),
        ("SELECT k, count(*) AS n FROM s [TUMBLE 1 MINUTE] GROUP BY k ORDER BY n", Unsupported, "ORDER BY"),
        ("SELECT nothing FROM s", UnknownColumn, "no column 'nothing'"),
        ("SELECT k, v AS k FROM s", SqlError, "duplicate column"),
    ],
)
def test_what_no_stream_can_be_derived_from(
    engine: ManualEngine, sql: str, error: type[TureenError], message: str
) -> None:
    with pytest.raises(error, match=message):
        engine.derive_stream("d", sql)
    with engine.catalog.read() as tx, pytest.raises(TureenError, match="there is no stream"):
        find_stream(tx, "d")


def test_names_and_columns_are_checked(engine: ManualEngine) -> None:
    with pytest.raises(DuplicateName):
        engine.derive_stream("s", "SELECT v FROM s")
    with pytest.raises(InvalidSchema, match="no column 'missing'"):
        engine.derive_stream("d", "SELECT v, ts FROM s", time="missing")
    with pytest.raises(InvalidSchema):
        engine.derive_stream("d", "SELECT v, k FROM s", time="v")


def test_relations_that_streams_are_derived_from_are_not_dropped(engine: ManualEngine) -> None:
    Dimensions(engine.catalog).create("t", "k INT, name STRING", [{"k": 1, "name": "one"}])
    engine.derive_stream("d", "SELECT s.v, s.ts, t.name FROM s JOIN t ON s.k = t.k")
    engine.derive_stream("e", "SELECT v, ts FROM d")
    for name in ("s", "d"):
        with engine.catalog.write() as tx, pytest.raises(DependentStreams, match="derived from it"):
            drop_stream(tx, find_stream(tx, name))
    with engine.catalog.write() as tx, pytest.raises(DependentStreams, match="table 't' cannot be dropped: 'd' is"):
        drop_dimension(tx, find_dimension(tx, "t"))
    for name in ("e", "d", "s"):
        with engine.catalog.write() as tx:
            drop_stream(tx, find_stream(tx, name))
    engine.derive()
    with engine.catalog.read() as tx:
        assert tx.execute_text("SELECT count(*) FROM queries").scalar() == 0


def test_rows_without_a_time_are_rejected(engine: ManualEngine) -> None:
    engine.derive_stream("d", "SELECT v, CASE WHEN v <> 2 THEN ts END AS moment FROM s", time="moment")
    engine.append("s", [row(number) for number in range(4)])
    engine.derive()
    assert sorted(each["v"] for each in answer(engine, "SELECT v FROM d")) == [0, 1, 3]
    with engine.catalog.read() as tx:
        (rejected,) = rejected_rows(tx, find_stream(tx, "d").id)
    assert (rejected["row"]["v"], rejected["reason"]) == (2, "the time is NULL")


def test_query_that_fails_stops_its_stream_alone(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.derive_stream("bad", "SELECT 10 / v AS q, ts FROM s")
    engine.derive_stream("good", "SELECT v, ts FROM s")
    engine.append("s", [row(0), row(5)])
    engine.derive()
    assert len(answer(engine, "SELECT v FROM good")) == 2
    assert answer(engine, "SELECT q FROM bad") == []
    (error,) = engine.deriver.errors().values()
    assert "divi" in error.lower()
    # It is tried again later.
    monkeypatch.setattr(derivation, "RETRY_AFTER", 0.0)
    engine.derive()
    assert len(engine.deriver.errors()) == 1


def test_large_history_is_read_in_steps(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derivation, "READ_TUPLES", 4)
    monkeypatch.setattr(derivation, "PUSH_ROWS", 3)
    for start in range(0, 40, 5):
        engine.push("s", [row(number) for number in range(start, start + 5)])
    engine.derive_stream("d", "SELECT v, ts FROM s WHERE v <> 7")
    engine.derive()
    assert [each["v"] for each in answer(engine, "SELECT v FROM d ORDER BY v")] == [v for v in range(40) if v != 7]


DERIVED = (
    ("selected", "SELECT v, k, ts FROM s WHERE v % 2 = 0"),
    ("chained", "SELECT v + 100 AS w, k, ts FROM selected WHERE k <> 1"),
    ("joined", "SELECT a.v AS x, b.v AS y, a.ts FROM s a JOIN other b ON a.k = b.k BEGIN NOW - 8 SECONDS END NOW"),
    ("stepped", "SELECT k, count(*) AS n, sum(v) AS total, window_end FROM s [TUMBLE 4 SECONDS] GROUP BY k"),
)


class Script:
    """A pot with derived streams, and what they must contain."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.engine = ManualEngine(root)
        for name in ("s", "other"):
            self.engine.create_stream(name, SCHEMA, time="ts", clock="stream")
        self.pushed: dict[str, int] = {"s": 0, "other": 0}
        self.steps: list[dict[str, Any]] = []
        self.is_derived = dict.fromkeys((name for name, _ in DERIVED), False)

    def push(self, name: str, count: int, append: Callable[[str, Any], Any]) -> None:
        """Add tuples to a stream."""
        first = self.pushed[name]
        append(name, [row(number) for number in range(first, first + count)])
        self.pushed[name] += count

    def restart(self) -> None:
        """As after a kill: nothing is stored that was not stored before."""
        self.engine.inbox.close()
        self.engine.catalog.close()
        self.engine = ManualEngine(self.root)

    def check(self) -> None:
        """Compare each stream with the changes of its query from the beginning."""
        for name, sql in DERIVED:
            if not self.is_derived[name]:
                continue
            rows = answer(self.engine, f"SELECT * FROM {name}")
            if name == "stepped":
                assert counted(rows) <= counted(self._all_steps(sql)), "a step is there twice, or was not over"
            else:
                handle = self.engine.register(sql, materialize=False)
                expected = self.engine.invoker.new_rows(handle, Position.parse(BEGINNING)).rows.to_pylist()
                self.engine.unregister(handle)
                assert counted(rows) == counted(expected), name

    def _all_steps(self, sql: str) -> list[dict[str, Any]]:
        self.steps += [each for each in answer(self.engine, sql) if each not in self.steps]
        return self.steps


@contextmanager
def script() -> Iterator[Script]:
    with TemporaryDirectory() as root, pytest.MonkeyPatch.context() as patch:
        for module in (arrival, upkeep):
            patch.setattr(module, "TAIL_ROWS", 4)
        patch.setattr(upkeep, "FAN", 2)
        patch.setattr(derivation, "STEPS_EVERY", 0.0)
        patch.setattr(derivation, "PUSH_ROWS", 2)
        opened = Script(Path(root))
        yield opened
        opened.engine.close()


ACTIONS = ("append", "append", "append", "sink", "take", "seal", "derive", "create", "restart", "note", "check")


def test_streams_continue_after_a_restart() -> None:
    with script() as run:
        for name, sql in DERIVED:
            run.engine.derive_stream(name, sql)
            run.is_derived[name] = True
        for step in range(6):
            run.push("s", 3, run.engine.append)
            run.push("other", 1, run.engine.append)
            run.engine.derive()
            run._all_steps(DERIVED[3][1])
            if step == 2:
                run.engine.deriver.note_progress()
            if step == 3:
                run.engine.take("selected")
                run.engine.inbox.trim()
            run.restart()
            run.check()
        run.engine.derive()
        run.check()


@example_settings(12)
@given(st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 11)), max_size=40))
def test_streams_equal_the_changes_of_their_queries(actions: list[tuple[str, int]]) -> None:
    with script() as run:
        for action, number in [*actions, *(("create", index) for index in range(4))]:
            engine = run.engine
            base = ("s", "other")[number % 2]
            if action in ("append", "sink"):
                run.push(base, 1 + number % 3, engine.append if action == "append" else engine.push)
                if run.is_derived["stepped"]:
                    # Steps are compared with what was their content when they ended.
                    engine.derive()
                    run._all_steps(DERIVED[3][1])
            elif action == "take":
                existing = [base, *(name for name, is_derived in run.is_derived.items() if is_derived)]
                engine.take(existing[number % len(existing)])
            elif action == "seal":
                engine.seal(everything=number % 2 == 0)
            elif action == "derive":
                engine.derive()
            elif action == "create":
                name, sql = DERIVED[number % 4]
                if not run.is_derived[name] and (name != "chained" or run.is_derived["selected"]):
                    engine.derive_stream(name, sql)
                    run.is_derived[name] = True
            elif action == "restart":
                run.restart()
            elif action == "note":
                engine.deriver.note_progress()
            else:
                engine.derive()
                run.check()
        run.engine.derive()
        run.check()


def test_joins_with_more_rows_than_the_limit_are_read_in_parts(engine: ManualEngine) -> None:
    engine.create_stream("t", SCHEMA, time="ts", clock="stream")
    for name in ("s", "t"):
        engine.append(name, [{"k": 1, "v": number, "ts": BASE} for number in range(60)])
    engine.invoker.answers.limits = JoinLimits(rows=500)
    engine.derive_stream("j", "SELECT a.v, b.v AS w, a.ts FROM s a JOIN t b ON a.k = b.k")
    engine.derive()
    assert engine.deriver.errors() == {}
    assert answer(engine, "SELECT count(*) AS n FROM j") == [{"n": 3600}]


def test_rows_before_one_that_fails_are_derived(engine: ManualEngine) -> None:
    engine.derive_stream("d", "SELECT 10 / v AS q, ts FROM s")
    for number in (1, 2, 0, 5):
        engine.push("s", [{"k": 1, "v": number, "ts": BASE}])
    engine.derive()
    assert sorted(each["q"] for each in answer(engine, "SELECT q FROM d")) == [5.0, 10.0]
    assert len(engine.deriver.errors()) == 1


def test_rejected_rows_are_stored_once(tmp_path: Path) -> None:
    engine = ManualEngine(tmp_path)
    engine.create_stream("s", SCHEMA, time="ts")
    engine.derive_stream("d", "SELECT v, CASE WHEN v > 5 THEN ts END AS moment FROM s", time="moment")
    engine.append("s", [row(1)])
    for _ in range(3):
        engine.derive()
        engine.inbox.close()
        engine.catalog.close()
        engine = ManualEngine(tmp_path)
    with engine.catalog.read() as tx:
        assert len(rejected_rows(tx, find_stream(tx, "d").id)) == 1
    engine.close()


def test_keys_of_derived_streams_are_not_kept(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "SEGMENT_BYTES", 1)
    engine.derive_stream("d", "SELECT v, ts FROM s")
    for number in range(10):
        engine.append("s", [row(number)])
        engine.derive()
        engine.take("s")
        engine.take("d")
        engine.inbox.trim()
    with engine.catalog.read() as tx:
        assert tx.execute(select(func.count()).select_from(push_keys)).scalar_one() == 0
        stored = tx.execute(select(streams.c.derived_to).where(streams.c.name == "d")).scalar_one()
    assert stored is not None


def test_copy_of_a_pot_in_use_continues(tmp_path: Path) -> None:
    """Its derived streams may contain changes of tuples that were pushed after their own log was copied."""
    engine = ManualEngine(tmp_path / "pot")
    for name in ("s", "other"):
        engine.create_stream(name, SCHEMA, time="ts", clock="stream")
    engine.append("other", [row(number) for number in range(9)])
    engine.derive_stream("j", "SELECT a.v, b.v AS w, a.ts FROM s a JOIN other b ON a.k = b.k AND a.v = b.v")
    engine.append("s", [row(number) for number in range(3)])
    engine.derive()
    inbox = tmp_path / "pot" / "inbox"
    shutil.copytree(inbox / "1", tmp_path / "early")
    engine.append("s", [row(3), row(4)])
    engine.derive()
    engine.close()
    shutil.rmtree(inbox / "1")
    shutil.copytree(tmp_path / "early", inbox / "1")
    copied = ManualEngine(tmp_path / "pot")
    copied.append("s", [row(5), row(6), row(7)])
    copied.derive()
    assert sorted(each["v"] for each in answer(copied, "SELECT v FROM j")) == [0, 1, 2, 3, 4, 5, 6, 7]
    copied.close()


def test_without_derived_streams_every_position_is_reached_at_once(engine: ManualEngine) -> None:
    engine.append("s", [row(1)])
    position = PushPosition(seq=1 << 40, stream=1, end=0, pushes=1 << 40)
    deriver = engine.deriver
    assert deriver.is_reached(position)
    engine.derive_stream("d", "SELECT k, ts FROM s")
    deriver.notice()
    assert not deriver.is_reached(position), "the stream may not be known yet"
    engine.derive()
    assert not deriver.is_reached(position)
