"""Tuples by position against rows of one table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.results.rows.gather import StreamMatches
from tureen.results.rows.placed_tuples import PlacedTuples, placed_rows
from tureen.results.snapshot.segment import Hits, Segment
from tureen.schema import Schema
from tureen.stems.index import Block
from tureen.stems.run import OpenRun

SCHEMA = Schema.parse("n INT, k BIGINT, v DOUBLE, s STRING, ts TIMESTAMP", "ts")
NAMES = SCHEMA.stored.names


def rows_of(size: int, seed: int) -> pa.RecordBatch:
    """Random tuples; only some columns have NULLs."""
    random = np.random.default_rng(seed)
    numbers = random.integers(0, 100, size)
    return pa.record_batch(
        [
            pa.array(numbers.astype(np.int32), mask=numbers % 7 == seed % 7),
            pa.array(numbers * 3),
            pa.array(random.random(size)),
            pa.array([f"s{number}" for number in numbers], mask=numbers % 5 == 0),
            pa.array(np.sort(random.integers(0, 1000, size))).cast(pa.timestamp("us", "UTC")),
        ],
        schema=SCHEMA.stored,
    )


def segment_of(sizes: list[int], seed: int, first_id: int) -> tuple[Segment, pa.Table]:
    """A segment with blocks of these sizes, and its tuples."""
    batches = [rows_of(size, seed + number) for number, size in enumerate(sizes)]
    run = OpenRun([Block(batch) for batch in batches], [1000] * len(sizes), "ts")
    segment = Segment((seed,), first_id, sum(sizes), 0, 1000, lambda: run, list, None)
    return segment, pa.Table.from_batches(batches)


SEGMENTS = st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=4), min_size=1, max_size=4)


@example_settings(60)
@given(st.data(), SEGMENTS)
def test_placed_tuples_are_those_of_the_positions(data: st.DataObject, sizes: list[list[int]]) -> None:
    built = [segment_of(of_segment, 10 * number, 100 * number) for number, of_segment in enumerate(sizes)]
    segments, whole = [segment for segment, _ in built], pa.concat_tables([rows for _, rows in built])
    ids = np.concatenate([segment.first_id + np.arange(segment.rows) for segment in segments])
    positions = np.array(data.draw(st.lists(st.integers(0, len(whole) - 1), max_size=12)), np.int64)
    placed = PlacedTuples.among(SCHEMA, segments, positions)
    expected = whole.take(pa.array(positions))
    assert {name: placed.column(name).to_pylist() for name in NAMES} == expected.to_pydict()
    assert placed.ids.tolist() == ids[positions].tolist()
    assert placed.times.tolist() == expected.column("ts").cast(pa.int64()).to_pylist()

    rows = np.array(data.draw(st.lists(st.integers(-1, len(positions) - 1), max_size=6)), np.int64)
    columns = placed.columns_at(NAMES, rows)
    taken = [[None if row < 0 else column[row] for row in rows] for column in expected.to_pydict().values()]
    assert [column.to_pylist() for column in columns] == taken
    exists = rows[rows >= 0]
    assert placed.ids_at(exists).tolist() == ids[positions[exists]].tolist()
    assert placed.times_at(exists).tolist() == placed.times[exists].tolist()


@example_settings(60)
@given(st.data(), SEGMENTS)
def test_matches_are_placed_by_their_numbers(data: st.DataObject, sizes: list[list[int]]) -> None:
    hits, ids = [], []
    for number, of_segment in enumerate(sizes):
        segment, _ = segment_of(of_segment, 10 * number, 100 * number)
        selected = sorted(data.draw(st.sets(st.integers(0, segment.rows - 1), min_size=1)))
        run = segment.run()
        starts = np.searchsorted(selected, run.starts)
        in_block = np.array(selected) - np.repeat(run.block_starts, np.diff(starts))
        hits.append(Hits(segment, run, in_block.astype(np.uint16), starts))
        ids += [segment.first_id + position for position in selected]
    rows = np.array(data.draw(st.lists(st.integers(0, len(ids) - 1), max_size=12)), np.int64)
    assert placed_rows(StreamMatches(SCHEMA, hits), rows).ids.tolist() == [ids[row] for row in rows]


def test_segments_without_tuples_are_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    segments = [segment_of([3, 3], number, 10 * number)[0] for number in range(4)]
    opened: list[Segment] = []
    run = Segment.run

    def noting_run(self: Segment) -> OpenRun:
        opened.append(self)
        return run(self)

    monkeypatch.setattr(Segment, "run", noting_run)
    placed = PlacedTuples.among(SCHEMA, segments, np.array([7, 20, 6]))
    assert [len(placed.column(name)) for name in NAMES] == [3] * len(NAMES)
    assert placed.ids.tolist() == [11, 32, 10]
    assert {id(segment) for segment in opened} == {id(segments[1]), id(segments[3])}
