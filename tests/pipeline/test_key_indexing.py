"""Key indexes are written for standing joins before they are invoked, and dropped when no join needs them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tureen
from tureen.keys import KeyColumns
from tureen.language.languages import bind_text
from tureen.pipeline import arrival, key_indexing
from tureen.pot.backup import backup_pot
from tureen.pot.catalog import Catalog
from tureen.pot.key_files import KeyFile
from tureen.pot.parts import Parts
from tureen.pot.runs import live_runs
from tureen.pot.streams import drop_stream, find_stream
from tureen.pot.sweep import sweep
from tureen.results.invoke import Invoker
from tureen.results.joins import join_inputs
from tureen.soup.integrity import verify
from tureen.stems.run import Layout
from tureen.testing.manual_engine import ManualEngine

START = datetime(2026, 1, 1, tzinfo=UTC)
K: KeyColumns = (("k", "int"),)
K_AND_S: KeyColumns = (("k", "int"), ("s", "string"))
SQL = "SELECT a.n AS x, b.n AS y FROM a [ROWS 3] JOIN b ON a.k = b.k"


def rows(first: int, count: int) -> list[dict[str, Any]]:
    """Rows with seven different keys."""
    return [
        {"k": n % 7, "s": f"v{n % 7}", "n": n, "ts": START + timedelta(seconds=n)} for n in range(first, first + count)
    ]


def stored_keys(engine: ManualEngine, name: str) -> list[set[KeyColumns] | None]:
    """The columns of the indexes in the file of each run of a stream; None if it is not indexed at all."""
    with engine.catalog.read() as tx:
        runs = live_runs(tx, find_stream(tx, name).id)
    layouts = [Layout.of(Parts(engine.catalog.root / run.path)) for run in runs]
    return [set(layout.keys) if layout.indexed else None for layout in layouts]


def key_file_columns(engine: ManualEngine, name: str) -> list[list[KeyColumns]]:
    """The columns of the key files of each indexed run of a stream."""
    with engine.catalog.read() as tx:
        runs = live_runs(tx, find_stream(tx, name).id)
    return [sorted(file.columns for file in run.key_files) for run in runs if run.indexed]


def key_paths(engine: ManualEngine, name: str) -> list[Path]:
    """The key files of a stream."""
    with engine.catalog.read() as tx:
        runs = live_runs(tx, find_stream(tx, name).id)
    return [engine.catalog.root / file.path for run in runs for file in run.key_files]


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ManualEngine:
    monkeypatch.setattr(arrival, "TAIL_ROWS", 10)
    monkeypatch.setattr(arrival, "KEYED_ROWS", 50)
    monkeypatch.setattr(join_inputs, "PROBE_SHARE", 2)
    monkeypatch.setattr(join_inputs, "PROBE_COST", 1)
    engine = ManualEngine(tmp_path)
    for name in ("a", "b"):
        engine.create_stream(name, "k INT, s STRING, n INT, ts TIMESTAMP", time="ts", clock="stream")
    engine.push("a", rows(0, 3))
    engine.push("b", rows(0, 60))
    return engine


def test_an_invocation_after_a_commit_or_merge_builds_nothing(engine: ManualEngine, built: list[int]) -> None:
    handle = engine.register(SQL, materialize=False)
    engine.index_keys()
    assert built == [60]
    expected = list(engine.invoke(handle))
    assert len(expected) == 27
    engine.push("b", rows(60, 80))
    engine.index_keys()
    assert built == [60, 80]
    assert len(engine.invoke(handle)) == 60
    engine.seal(everything=True)
    engine.index_keys()
    assert built == [60, 80, 140]
    assert len(engine.invoke(handle)) == 60
    assert built == [60, 80, 140]
    assert engine.invoker.key_indexes.bytes == 0, "all are in files"


def test_runs_are_written_with_the_indexes_that_joins_need(engine: ManualEngine, built: list[int]) -> None:
    by_number, by_both = engine.register(SQL), engine.register(f"{SQL} AND a.s = b.s")
    engine.index_keys()
    engine.push("b", rows(60, 60))
    assert stored_keys(engine, "b") == [set(), {K, K_AND_S}]
    engine.unregister(by_both)
    engine.index_keys()
    engine.push("b", rows(120, 60))
    assert stored_keys(engine, "b") == [set(), {K, K_AND_S}, {K}]
    engine.seal(everything=True)
    assert stored_keys(engine, "b") == [{K}]
    assert stored_keys(engine, "a") == [None], "it has few rows"
    expected = list(engine.invoke(by_number))
    engine.close()
    built.clear()
    again = ManualEngine(engine.catalog.root)
    assert list(again.invoke(by_number)) == expected
    assert built == [], "it needs not be built after a restart"
    again.unregister(by_number)
    again.index_keys()
    again.push("b", rows(180, 60))
    assert stored_keys(again, "b") == [{K}, set()]


def test_a_damaged_index_is_built_again_and_repaired(engine: ManualEngine, built: list[int]) -> None:
    handle = engine.register(SQL, materialize=False)
    engine.index_keys()
    engine.push("b", rows(60, 60))
    engine.seal(everything=True)
    expected = list(engine.invoke(handle))
    engine.close()
    with engine.catalog.read() as tx:
        (run,) = live_runs(tx, find_stream(tx, "b").id)
    path = engine.catalog.root / run.path
    data, start = bytearray(path.read_bytes()), Parts(path)._entries[-1][0]
    data[start] ^= 1
    path.write_bytes(data)
    built.clear()
    again = ManualEngine(engine.catalog.root)
    assert list(again.invoke(handle)) == expected
    assert built == [120]
    again.repair()
    assert stored_keys(again, "b") == [{K}]
    assert list(again.invoke(handle)) == expected
    assert built == [120, 120], "the run was written again with its index"
    assert verify(engine.catalog.root).damaged == ()


def test_older_runs_have_their_indexes_in_key_files(engine: ManualEngine, built: list[int]) -> None:
    handle = engine.register(SQL, materialize=False)
    expected = list(engine.invoke(handle))
    assert built == [60], "the invocation comes before the engine"
    assert engine.invoker.key_indexes.bytes > 0
    engine.index_keys()
    assert built == [60, 60]
    assert stored_keys(engine, "b") == [set()]
    assert key_file_columns(engine, "b") == [[K]]
    assert engine.invoker.key_indexes.bytes == 0, "the file is used instead"
    assert list(engine.invoke(handle)) == expected
    engine.close()
    built.clear()
    again = ManualEngine(engine.catalog.root)
    assert list(again.invoke(handle)) == expected
    again.index_keys()
    assert built == [], "it needs not be built after a restart"
    assert verify(engine.catalog.root).damaged == ()


def test_another_process_uses_a_key_file_once_there_is_one(engine: ManualEngine, built: list[int]) -> None:
    handle = engine.register(SQL, materialize=False)
    reader = Invoker(Catalog(engine.catalog.root))
    expected = list(reader.invoke(handle))
    assert reader.key_indexes.bytes > 0
    engine.index_keys()
    assert built == [60, 60]
    assert list(reader.invoke(handle)) == expected
    assert reader.key_indexes.bytes == 0
    engine.key_indexer.plan()
    engine.unregister(engine.register(f"{SQL} AND a.s = b.s"))
    assert list(reader.invoke(handle)) == expected
    assert built == [60, 60]


def test_key_files_are_dropped_with_their_run(engine: ManualEngine, built: list[int]) -> None:
    handle = engine.register(SQL)
    engine.index_keys()
    (path,) = key_paths(engine, "b")
    engine.push("b", rows(60, 80))
    engine.seal(everything=True)
    engine.index_keys()
    assert built == [60, 80, 140]
    assert key_paths(engine, "b") == []
    sweep(engine.catalog, grace=-1)
    assert not path.exists()
    assert len(engine.invoke(handle)) == 60
    assert verify(engine.catalog.root).damaged == ()


def test_key_files_are_dropped_with_their_stream(engine: ManualEngine) -> None:
    engine.register(SQL)
    engine.index_keys()
    (path,) = key_paths(engine, "b")
    with engine.catalog.write() as tx:
        drop_stream(tx, find_stream(tx, "b"))
    sweep(engine.catalog, grace=-1)
    assert not path.exists()


def test_the_file_of_a_run_that_was_merged_meanwhile_is_garbage(
    engine: ManualEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.push("b", rows(60, 60))
    handle = engine.register(SQL, materialize=False)
    expected = list(engine.invoke(handle))

    def merge_first(attempt: str, written: Sequence[tuple[int, KeyFile]]) -> None:
        engine.seal(everything=True)
        publish(attempt, written)

    publish = engine.key_indexer._publish
    monkeypatch.setattr(engine.key_indexer, "_publish", merge_first)
    engine.index_keys()
    assert stored_keys(engine, "b") == [{K}]
    assert key_paths(engine, "b") == []
    sweep(engine.catalog, grace=-1)
    assert list(engine.catalog.root.rglob("*.keys")) == []
    assert list(engine.invoke(handle)) == expected


@pytest.mark.parametrize("offset", [0, 300, -20, None])
def test_a_damaged_or_missing_key_file_is_written_again(
    engine: ManualEngine, built: list[int], offset: int | None
) -> None:
    handle = engine.register(SQL, materialize=False)
    engine.index_keys()
    expected = list(engine.invoke(handle))
    engine.close()
    (path,) = key_paths(engine, "b")
    if offset is None:
        path.unlink()
    else:
        data = bytearray(path.read_bytes())
        data[offset] ^= 1
        path.write_bytes(data)
    built.clear()
    again = ManualEngine(engine.catalog.root)
    assert list(again.invoke(handle)) == expected
    if offset is not None:
        assert len(verify(engine.catalog.root).damaged) == 1
        again.repair()
    again.index_keys()
    assert list(again.invoke(handle)) == expected
    assert key_paths(again, "b") != [path]
    assert verify(engine.catalog.root).damaged == ()
    assert built[-1:] == [60]


def test_a_backup_has_key_files(engine: ManualEngine, tmp_path: Path, built: list[int]) -> None:
    handle = engine.register(SQL, materialize=False)
    engine.index_keys()
    expected = list(engine.invoke(handle))
    target = tmp_path / "backup"
    backup_pot(engine.catalog, target, lambda *_: None)
    built.clear()
    assert list(Invoker(Catalog(target)).invoke(handle)) == expected
    assert built == []


def test_without_a_standing_join_nothing_is_built(engine: ManualEngine, built: list[int]) -> None:
    engine.register("SELECT n FROM b WHERE k = 3")
    engine.register("SELECT a.n FROM a JOIN b ON a.k < b.k")
    engine.index_keys()
    assert built == []
    engine.invoker.answer_once(SQL)
    assert built == [60], "a query that is not registered builds what it needs"
    engine.index_keys()
    assert engine.invoker.key_indexes.bytes > 0


def test_key_files_of_the_last_join_are_dropped_with_it(engine: ManualEngine) -> None:
    by_number, by_both = engine.register(SQL), engine.register(f"{SQL} AND a.s = b.s")
    same = engine.register("SELECT b.n FROM b, a WHERE b.s = a.s AND b.k = a.k AND a.n > 5")
    for handle, columns in ((None, [K, K_AND_S]), (by_number, [K_AND_S]), (by_both, [K_AND_S]), (same, [])):
        if handle is not None:
            engine.unregister(handle)
        engine.index_keys()
        assert key_file_columns(engine, "b") == [columns], "those that another query needs"
    sweep(engine.catalog, grace=-1)
    assert list(engine.catalog.root.rglob("*.keys")) == []


def test_small_runs_are_indexed_when_they_are_needed(engine: ManualEngine, built: list[int]) -> None:
    handle = engine.register(SQL)
    engine.push("b", rows(60, 20))
    engine.index_keys()
    assert built == [60]
    engine.invoke(handle)
    assert built == [60, 20]


def test_a_round_builds_a_limited_number_of_rows(
    engine: ManualEngine, built: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_indexing, "ROWS_AT_ONCE", 70)
    monkeypatch.setattr(key_indexing, "SHAPES_AT_ONCE", 1)
    for first in (60, 120):
        engine.push("b", rows(first, 60))
    engine.register(SQL)
    engine.register(f"{SQL} AND a.s = b.s")
    indexer = engine.key_indexer
    indexer.plan()
    assert (indexer.build(), built, indexer.is_behind) == (True, [60, 60], True)
    assert (indexer.build(), built, indexer.is_behind) == (True, [60, 60], True), "they are verified once"
    assert (indexer.build(), built, indexer.is_behind) == (True, [60] * 3, True), "one of the queries is not bound yet"
    indexer.plan()
    while indexer.build():
        pass
    assert (len(built), indexer.is_behind) == (6, False)


def test_one_query_of_a_shape_is_bound(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    bound: list[str] = []
    bind = bind_text

    def counting_bind(sql: str, *arguments: Any, **named: Any) -> Any:
        bound.append(sql)
        return bind(sql, *arguments, **named)

    monkeypatch.setattr(key_indexing, "bind_text", counting_bind)
    for number in range(5):
        engine.register(f"{SQL} WHERE b.n > {number}")
        engine.index_keys()
    assert len(bound) == 1


def test_a_stream_that_is_created_again_is_indexed(engine: ManualEngine, built: list[int]) -> None:
    engine.register(SQL)
    engine.index_keys()
    with engine.catalog.write() as tx:
        drop_stream(tx, find_stream(tx, "b"))
    engine.create_stream("b", "k INT, s STRING, n INT, ts TIMESTAMP", time="ts", clock="stream")
    engine.push("b", rows(0, 70))
    engine.register(SQL)
    engine.index_keys()
    assert built == [60, 70]


def test_a_damaged_run_does_not_stop_the_others(engine: ManualEngine, built: list[int]) -> None:
    engine.push("b", rows(60, 60))
    with engine.catalog.read() as tx:
        damaged = live_runs(tx, find_stream(tx, "b").id)[1]
    path = engine.catalog.root / damaged.path
    data = bytearray(path.read_bytes())
    data[600] ^= 255
    path.write_bytes(data)
    engine.register(SQL)
    engine.index_keys()
    assert built == [60]


def test_the_engine_indexes_what_it_has_committed(soup: tureen.Soup, built: list[int]) -> None:
    for name, count in (("few", 10), ("many", 20_000)):
        soup.create_stream(name, "k BIGINT")
        soup.push(name, pa.table({"k": pa.array(range(count), pa.int64())}))
    query = soup.register("SELECT few.k FROM few JOIN many ON few.k = many.k", materialize=False)
    soup.settle()
    before = sum(built)
    assert before in (0, 20_000), "none if a task of Spark was told in time to write it"
    assert [row["k"] for row in query.invoke()] == list(range(10))
    assert sum(built) == before, "the invocation builds nothing"
    assert [entry["joined_by"] for entry in query.explain()["inputs"]] == ["scan", "key index"]
