"""Key indexes of a process: built once, bounded by memory, dropped with what they index."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest

from tureen.results.joins.key_indexes import KeyIndexes
from tureen.results.snapshot.segment import Segment
from tureen.schema import Schema
from tureen.stems.key_index import EXACT, KeyIndex, most_bytes
from tureen.stems.run import in_memory, sort_by_time

SCHEMA = Schema.parse("k BIGINT, m BIGINT, ts TIMESTAMP", "ts")
K, KM = (("k", EXACT),), (("k", EXACT), ("m", EXACT))


def segment_of(rows: int) -> Segment:
    """A segment of tuples in memory, with different keys."""
    numbers = np.arange(rows)
    table = pa.table(
        [pa.array(numbers), pa.array(numbers), pa.array(numbers).cast(pa.timestamp("us", "UTC"))], SCHEMA.stored
    )
    run = in_memory(SCHEMA, sort_by_time(SCHEMA, table))
    return Segment((1,), 1, rows, 0, rows - 1, lambda: run, list, None)


@pytest.mark.parametrize("columns", [K, KM])
def test_indexes_are_bounded_by_memory(columns: tuple[tuple[str, str], ...], built: list[int]) -> None:
    size = most_bytes(1000, len(columns))
    indexes = KeyIndexes(2 * size + 10)
    segments = [segment_of(1000) for _ in range(3)]
    for segment in segments[:2]:
        indexes.of_segment(segment, columns)
    assert indexes.bytes == 2 * size, "all keys are different"
    for number in (0, 2, 0, 2):
        indexes.of_segment(segments[number], columns)
    assert len(built) == 3
    indexes.of_segment(segments[1], columns)
    assert len(built) == 4, "the least recently used is dropped"
    assert indexes.can_keep(1000, columns)
    assert not indexes.can_keep(4000, columns)


def test_indexes_are_dropped_with_their_relation() -> None:
    indexes = KeyIndexes()
    segment, table = segment_of(10), pa.table({"k": [1, 2]})
    of_both = indexes.of_segment(segment, K).bytes + indexes.of_segment(segment, KM).bytes
    of_table = indexes.of_table(table, K).bytes
    assert indexes.bytes == of_both + of_table
    indexes.drop(segment.run(), K)
    assert indexes.bytes == indexes.of_segment(segment, KM).bytes + of_table
    del segment
    assert indexes.bytes == of_table
    del table
    assert indexes.bytes == 0
    # The ids of runs that are gone are used again.
    for rows in range(1, 50):
        index = indexes.of_segment(segment_of(rows), K)
        assert len(index.rows) == rows


def test_threads_build_an_index_once(monkeypatch: pytest.MonkeyPatch) -> None:
    indexes, segment = KeyIndexes(), segment_of(100)
    started, proceed = threading.Event(), threading.Event()
    built: list[int] = []
    build = KeyIndex.of

    def slow_build(columns: Sequence[tuple[pa.Array, str]]) -> KeyIndex:
        started.set()
        assert proceed.wait(100)
        built.append(len(columns))
        return build(columns)

    monkeypatch.setattr(KeyIndex, "of", slow_build)
    with ThreadPoolExecutor(3) as threads:
        first = threads.submit(indexes.of_segment, segment, K)
        assert started.wait(100)
        others = [threads.submit(indexes.of_segment, segment, K) for _ in range(2)]
        proceed.set()
        assert all(other.result() is first.result() for other in others)
    assert built == [1]
