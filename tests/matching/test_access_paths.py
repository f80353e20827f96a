"""Clauses match the same rows on every access path, and the same as the plain twin."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.matching import Buffers, Cell, CellReader, Costs, Tuning, access_column, describe, match_block
from tureen.predicate import Clause, Interval, Like, Within
from tureen.queries import QueryRun, compile_clauses
from tureen.queries.access_predicates import AccessIndex
from tureen.queries.lineage import LineageBitmaps
from tureen.stems.index import Block, index_block

from .material import SCALES, SCHEMA, batch_of, random_clause, random_rows
from .rules import random_rules
from .twin import Row, rows_of

COLUMN_MAJOR = Costs(row=0, search=0, search_text=0, lineage=10**9)
PATHS = {
    "default": Tuning(),
    "by key": Tuning(costs=replace(COLUMN_MAJOR, pair=0)),
    "hot": Tuning(costs=replace(COLUMN_MAJOR, pair=10**9)),
    "some hot": Tuning(costs=replace(COLUMN_MAJOR, visit=10, bitmap=0, word=0, late=0)),
    "visited": Tuning(costs=replace(COLUMN_MAJOR, row=10**9)),
    "by key and by row": Tuning(costs=replace(COLUMN_MAJOR, pair=0, lineage=0, stretch=0)),
}
BUFFERS = {name: Buffers(tuning) for name, tuning in PATHS.items()}


def with_keys(run: QueryRun, least_keys: int) -> QueryRun:
    return replace(run, known_access=AccessIndex.of(run.arrays, run.encodings, least_keys))


def check(cell: Cell, ids: Sequence[int], clauses: Sequence[Clause], rows: Sequence[Row]) -> None:
    cell.batch.validate(full=True)
    reader = CellReader(cell.batch, len(rows))
    expected = {number: rows_of(clause, rows, SCALES) for number, clause in zip(ids, clauses, strict=True)}
    assert set(cell.failures) == {number for number, matches in expected.items() if matches is None}
    assert reader.clauses.tolist() == [number for number, matches in expected.items() if matches]
    for number, matches in expected.items():
        assert reader.rows_of(number).tolist() == (matches or []), clauses[ids.index(number)]
        assert reader.count_of(number) == len(matches or [])


@example_settings(80)
@given(
    seed=st.integers(0, 2**32),
    size=st.sampled_from([1, 2, 7, 64, 65, 130, 300]),
    count=st.sampled_from([1, 10, 60]),
    path=st.sampled_from(sorted(PATHS)),
    least_keys=st.sampled_from([1, 4, 1000]),
)
def test_every_access_path_agrees_with_the_twin(seed: int, size: int, count: int, path: str, least_keys: int) -> None:
    rng = random.Random(seed)
    rows = random_rows(rng, size)
    batch = batch_of(rows, padding=rng.choice([0, 3]))
    block = Block(batch, index_block(batch, SCHEMA.names))
    clauses = [*random_rules(rng, rows, count), *(random_clause(rng, rows) for _ in range(rng.choice([0, 10])))]
    rng.shuffle(clauses)
    ids = sorted(rng.sample(range(10**12), len(clauses)))
    run = with_keys(compile_clauses(ids, clauses, SCHEMA), least_keys)
    if rng.random() < 0.5:
        run = QueryRun.from_buffer(run.to_buffer())
    check(match_block(block, run, BUFFERS[path]), ids, clauses, rows)


def rules(count: int) -> list[Clause]:
    return [
        (Within("i", (Interval(key, key),)), Within("d", (Interval(low=key / count, low_open=True),)))
        for key in range(count)
    ]


def test_describe_counts_clauses_by_access_path() -> None:
    visited: list[Clause] = [(Within("d", (Interval(high=0.5),)),), (Within("s", (Interval("a", "a"),)),)]
    run = compile_clauses(range(102), [*rules(100), *visited], SCHEMA)
    assert describe(run)["by_key"] == [{"column": "i", "keys": 100, "clauses": 100, "residual": "d"}]
    assert describe(run)["visited"] == 2
    assert describe(run)["by_row_up_to"] < describe(compile_clauses(range(9000), [()] * 9000, SCHEMA))["by_row_up_to"]
    assert [access_column(run, position) for position in (0, 57, 99, 100, 101)] == ["i", "i", "i", None, None]
    few = compile_clauses(range(5), rules(5), SCHEMA)
    assert describe(few) == {"by_key": [], "visited": 5, "by_row_up_to": describe(few)["by_row_up_to"]}
    assert access_column(few, 3) is None


def test_access_column_is_the_one_with_most_keys() -> None:
    clauses: list[Clause] = [
        (Within("j", (Interval(number % 20, number % 20),)), Within("i", (Interval(number, number),)))
        for number in range(60)
    ]
    clauses.append((Within("j", (Interval(3, 3),)), Within("d", (Interval(high=1.0),))))
    run = compile_clauses(range(61), clauses, SCHEMA)
    assert [(entry["column"], entry["clauses"]) for entry in describe(run)["by_key"]] == [("i", 60), ("j", 1)]


def test_lineage_bitmaps_are_limited_in_size() -> None:
    run = compile_clauses(range(5), rules(5), SCHEMA)
    assert run.lineage is not None
    assert LineageBitmaps.of(run.arrays, run.access, 0, run.lineage.words.nbytes) is not None
    assert LineageBitmaps.of(run.arrays, run.access, 0, run.lineage.words.nbytes - 1) is None


@pytest.mark.parametrize("path", sorted(PATHS))
def test_hot_keys_in_a_large_block(path: str) -> None:
    """Half of the rows have one key; its rules have bitmaps, and the staging buffers must grow."""
    rng = np.random.default_rng(7)
    rows = 5000
    key = np.where(rng.random(rows) < 0.5, 7, rng.integers(0, 500, rows)).astype(np.int32)
    value = rng.random(rows)
    batch = pa.RecordBatch.from_arrays([pa.array(key), pa.array(value)], names=["i", "d"])
    block = Block(batch, index_block(batch, ["i", "d"]))
    clauses = [*rules(500), *((Within("i", (Interval(7, 7),)), threshold) for _, threshold in rules(100))]
    run = compile_clauses(range(0, 3 * len(clauses), 3), clauses, SCHEMA)
    reader = CellReader(match_block(block, run, Buffers(PATHS[path])).batch, rows)
    assert np.all(np.diff(reader.clauses) > 0)
    for number, (_, threshold) in enumerate(clauses):
        assert isinstance(threshold, Within)
        limit = threshold.intervals[0].low
        assert isinstance(limit, float)
        expected = np.flatnonzero((key == (number if number < 500 else 7)) & (value > limit))
        assert np.array_equal(reader.rows_of(3 * number), expected)


@pytest.mark.parametrize("path", sorted(PATHS))
def test_clauses_without_columns(path: str) -> None:
    block = Block(batch_of(random_rows(random.Random(1), 3)))
    run = compile_clauses([4, 5, 9], [(), (Like("s", "%"), Like("s", "a%", negated=True)), ()], SCHEMA)
    reader = CellReader(match_block(block, run, Buffers(PATHS[path])).batch, 3)
    assert [number for number in reader.clauses.tolist() if number != 5] == [4, 9]
    assert reader.rows_of(9).tolist() == [0, 1, 2]
