"""Fast paths can be turned off, each and all, and nothing but the duration changes."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import tureen
from tests.examples import example_settings
from tests.fast_path_switch import without_fast_paths
from tests.pot.catalog_rows import reproducible, rows_of_tables
from tureen.errors import TureenError
from tureen.fast_paths import VARIABLE, FastPath, disabled_fast_paths, is_enabled, parse_names
from tureen.pot.stream_cache import StreamCache
from tureen.soup.registry import Registry
from tureen.testing.manual_engine import ManualClock, ManualEngine

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", set()),
        (" , ", set()),
        ("bell", {FastPath.BELL}),
        (" turn,bell ,turn", {FastPath.BELL, FastPath.TURN}),
        (",".join(FastPath), set(FastPath)),
    ],
)
def test_names_are_separated_by_commas(text: str, names: set[FastPath]) -> None:
    assert parse_names(text) == names


def test_an_unknown_name_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "bell,whistle")
    disabled_fast_paths.cache_clear()
    with pytest.raises(TureenError, match="TUREEN_DISABLE has an unknown fast path: 'whistle'") as error:
        tureen.open(tmp_path / "pot").create_table("t", "a INT")
    assert error.value.hint == f"the fast paths are {', '.join(FastPath)}"
    monkeypatch.undo()
    disabled_fast_paths.cache_clear()


def test_fast_paths_are_turned_off_one_by_one() -> None:
    before = disabled_fast_paths()
    with without_fast_paths(FastPath.BELL):
        assert not is_enabled(FastPath.BELL)
        assert disabled_fast_paths() == before | {FastPath.BELL}
    assert disabled_fast_paths() == before
    with without_fast_paths():
        assert not any(map(is_enabled, FastPath))


@pytest.mark.parametrize("name", FastPath)
def test_every_fast_path_is_documented(name: FastPath) -> None:
    assert f"\n| `{name}` | " in (ROOT / "docs" / "operating.md").read_text()


CONSTANTS = {"n": st.integers(-5, 5).map(str), "x": st.sampled_from(["0.5", "2", "-1.25"]), "s": st.just("'b'")}
HEADS = ("SELECT n, s FROM events WHERE ", "SELECT s, count(*) AS c, sum(x) AS x FROM events WHERE ")
MATERIALIZE: tuple[bool | str, ...] = (True, False, "auto")
TAILS = ("", " GROUP BY s ORDER BY s", " GROUP BY s ORDER BY s BEGIN NOW - 10 SECONDS END NOW")


@st.composite
def registrations(draw: st.DrawFn) -> tuple[str, bool | str, str | None]:
    """A query, of which many have the same frame and clause and some are wrong; `materialize`; and its name."""
    columns = draw(st.lists(st.sampled_from(sorted(CONSTANTS)), min_size=1, max_size=3))
    operators = st.sampled_from(["=", "<>", "<", ">=", ">"])
    factors = [f"{column} {draw(operators)} {draw(CONSTANTS[column])}" for column in columns]
    factors += draw(st.sampled_from([[], [], ["n IN (1, 2)"], ["(n = 1 OR x > 1)"], ["wrong = 1"]]))
    is_grouped = draw(st.booleans())
    tail = draw(st.sampled_from(TAILS[1:])) if is_grouped else TAILS[0]
    sql = HEADS[is_grouped] + " AND ".join(factors) + tail
    return sql, draw(st.sampled_from(MATERIALIZE)), draw(st.sampled_from([None, None, "a", "b"]))


Step = tuple[str, bool | str, str | None] | list[int] | int
"""A query to register, values of `n` to push, or the number of a registration to undo."""

steps = registrations() | st.lists(st.integers(-5, 5), min_size=1, max_size=8) | st.integers(0, 9)


def play(root: Path, script: list[Step]) -> list[Any]:
    """Run a script in a new pot; after each step, what it returned, the catalog's rows and all answers."""
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    engine = ManualEngine(root, ManualClock(begin + timedelta(seconds=12)))
    engine.create_stream("events", "n INT, x DOUBLE, s STRING, ts TIMESTAMP", time="ts")
    registry = Registry(engine.catalog, StreamCache(engine.catalog))
    handles: list[str] = []
    history: list[Any] = []
    for number, step in enumerate(script):
        outcome: Any = None
        try:
            if isinstance(step, tuple):
                sql, materialize, name = step
                outcome = registry.register(sql, name, materialize, None)
                handles.append(outcome)
            elif isinstance(step, list):
                seconds = begin + timedelta(seconds=number)
                engine.push("events", [{"n": n, "x": n / 2, "s": "abc"[n % 3], "ts": seconds} for n in step])
            else:
                handle = handles[step] if step < len(handles) else "0" * 32
                registry.unregister(handle, None)
                handles.remove(handle)
        except TureenError as error:
            outcome = type(error), str(error)
        engine.compile()
        with engine.catalog.read() as tx:
            rows = rows_of_tables(tx)
        history.append((outcome, rows, [engine.invoke(handle).table.to_pylist() for handle in handles]))
    engine.close()
    return history


@example_settings(10)
@given(script=st.lists(steps, min_size=4, max_size=12))
def test_registrations_and_answers_are_the_same(tmp_path_factory: pytest.TempPathFactory, script: list[Step]) -> None:
    with reproducible():
        on = play(tmp_path_factory.mktemp("on"), script)
    with reproducible(), without_fast_paths():
        off = play(tmp_path_factory.mktemp("off"), script)
    assert on == off


def test_tasks_of_spark_without_fast_paths(spark: SparkSession, tmp_path: Path) -> None:
    """Rows are taken by processes without fast paths; tests/behaviour runs its suite in one, beside such with them."""
    variables = spark.sparkContext.environment
    variables[VARIABLE] = ",".join(FastPath)
    try:
        with without_fast_paths(), tureen.open(tmp_path / "pot", mode="write") as soup:
            soup.create_stream("s", "a INT")
            query = soup.register("SELECT a FROM s WHERE a > 1")
            changes = query.changes()
            for value in range(4):
                soup.push("s", [{"a": value}])
                soup.settle()
            assert soup.status()["streams"]["s"]["pending_rows"] == 0
            assert query.invoke().table.to_pydict() == {"a": [2, 3]}
            assert [next(changes).row["a"] for _ in range(2)] == [2, 3]
            assert _processes_with(f"{VARIABLE}={variables[VARIABLE]}".encode()), "Spark passed no variables on"
    finally:
        del variables[VARIABLE]


def _processes_with(variable: bytes) -> list[str]:
    """The commands of Spark's Python processes that were started with an environment variable."""
    commands = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (process / "cmdline").read_bytes()
            if b"pyspark" in command and variable in (process / "environ").read_bytes().split(b"\0"):
                commands.append(command.decode())
    return commands
