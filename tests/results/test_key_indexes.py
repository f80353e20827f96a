"""Key indexes of a process: built once, bounded by memory, dropped with what they index."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest

from tureen.results.key_indexes import KeyIndexes
from tureen.schema import Schema
from tureen.stems.key_index import EXACT, KeyIndex, most_bytes
from tureen.stems.run import OpenRun, in_memory, sort_by_time

SCHEMA = Schema.parse("k BIGINT, m BIGINT, ts TIMESTAMP", "ts")
K, KM = (("k", EXACT),), (("k", EXACT), ("m", EXACT))


def run_of(rows: int) -> OpenRun:
    """A run with different keys."""
    numbers = np.arange(rows)
    table = pa.table(
        [pa.array(numbers), pa.array(numbers), pa.array(numbers).cast(pa.timestamp("us", "UTC"))], SCHEMA.stored
    )
    return in_memory(SCHEMA, sort_by_time(SCHEMA, table))


@pytest.mark.parametrize("columns", [K, KM])
def test_indexes_are_bounded_by_memory(columns: tuple[tuple[str, str], ...]) -> None:
    size = most_bytes(1000, len(columns))
    indexes = KeyIndexes(2 * size + 10)
    runs = [run_of(1000) for _ in range(3)]
    for run in runs[:2]:
        assert indexes.has_room(1000, columns)
        indexes.of_run(run, columns)
    assert indexes.bytes == 2 * size, "all keys are different"
    assert not indexes.has_room(1000, columns)
    indexes.of_run(runs[0], columns)
    indexes.of_run(runs[2], columns)
    assert [indexes.has(run, columns) for run in runs] == [True, False, True], "the least recently used is dropped"
    assert indexes.can_keep(1000, columns)
    assert not indexes.can_keep(4000, columns)


def test_indexes_are_dropped_with_their_relation() -> None:
    indexes = KeyIndexes()
    run, table = run_of(10), pa.table({"k": [1, 2]})
    indexes.of_run(run, K)
    indexes.of_run(run, KM)
    indexes.of_table(table, K)
    of_table = KeyIndex.of([(pa.array([1, 2]), EXACT)]).bytes
    assert indexes.bytes > of_table
    indexes.drop(run, K)
    assert not indexes.has(run, K)
    assert indexes.has(run, KM)
    del run
    assert indexes.bytes == of_table
    del table
    assert indexes.bytes == 0
    # The ids of runs that are gone are used again.
    for rows in range(1, 50):
        index = indexes.of_run(run_of(rows), K)
        assert len(index.rows) == rows


def test_threads_build_an_index_once(monkeypatch: pytest.MonkeyPatch) -> None:
    indexes, run = KeyIndexes(), run_of(100)
    started, proceed = threading.Event(), threading.Event()
    built: list[int] = []
    build = KeyIndex.of

    def slow_build(columns: Sequence[tuple[pa.Array, str]]) -> KeyIndex:
        started.set()
        assert proceed.wait(10)
        built.append(len(columns))
        return build(columns)

    monkeypatch.setattr(KeyIndex, "of", slow_build)
    with ThreadPoolExecutor(3) as threads:
        first = threads.submit(indexes.of_run, run, K)
        assert started.wait(10)
        others = [threads.submit(indexes.of_run, run, K) for _ in range(2)]
        proceed.set()
        assert all(other.result() is first.result() for other in others)
    assert built == [1]
