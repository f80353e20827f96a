"""Matching, selecting and evaluating agree with the plain twin."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.errors import QueryFailed
from tureen.matching import Buffers, CellReader, Costs, Selector, Tuning, holds, match_block, select
from tureen.predicate import AllOf, Clause
from tureen.queries import QueryRun, compile_clauses
from tureen.stems.index import Block, index_block

from .material import SCALES, SCHEMA, batch_of, random_clause, random_derived, random_rows, random_within
from .twin import key, order_key, rows_of, true_for

COLUMN_MAJOR = Costs(lineage=10**9)
TUNINGS = [
    Tuning(),
    Tuning(costs=COLUMN_MAJOR),
    Tuning(costs=COLUMN_MAJOR, exact_bytes=0, coarse_slots=5),
    Tuning(costs=COLUMN_MAJOR, exact_bytes=0, coarse_slots=5, short_share=10**9),
    Tuning(costs=COLUMN_MAJOR, short_share=1),
    Tuning(costs=COLUMN_MAJOR, short_share=10**9),
]
SIZES = st.sampled_from([0, 1, 2, 7, 63, 64, 65, 130, 300])
SEEDS = st.integers(0, 2**32)
BUFFERS = {tuning: Buffers(tuning) for tuning in TUNINGS}


def make(seed: int, size: int, *, indexed: bool) -> tuple[random.Random, list[dict[str, object]], Block]:
    rng = random.Random(seed)
    rows = random_rows(rng, size)
    batch = batch_of(rows, padding=rng.choice([0, 3]))
    return rng, rows, Block(batch, index_block(batch, SCHEMA.names) if indexed else None)


@example_settings(50)
@given(seed=SEEDS, size=SIZES)
def test_index_sorts_each_column(seed: int, size: int) -> None:
    _, rows, block = make(seed, size, indexed=True)
    for name in SCHEMA.names:
        present = [number for number, row in enumerate(rows) if row[name] is not None]
        index = block.indexed(name)
        expected = sorted(present, key=lambda number: order_key(key(rows[number][name], SCALES[name])))
        expected += [number for number, row in enumerate(rows) if row[name] is None]
        assert index.perm.tolist() == expected, name
        assert index.rank[index.perm].tolist() == list(range(size))
        assert index.valid == len(present)
        assert index.perm.dtype == index.rank.dtype == np.uint16


@example_settings(50)
@given(seed=SEEDS, size=SIZES, indexed=st.booleans(), tuning=st.sampled_from(TUNINGS))
def test_match_select_and_twin_agree(seed: int, size: int, indexed: bool, tuning: Tuning) -> None:
    rng, rows, block = make(seed, size, indexed=indexed)
    clauses = [random_clause(rng, rows) for _ in range(rng.choice([1, 10, 40]))]
    ids = sorted(rng.sample(range(10**12), len(clauses)))
    run = compile_clauses(ids, clauses, SCHEMA)
    if rng.random() < 0.5:
        run = QueryRun.from_buffer(run.to_buffer())
    cell = match_block(block, run, BUFFERS[tuning])
    cell.batch.validate(full=True)
    reader = CellReader(cell.batch, size)
    first, last = sorted((rng.choice([0, rng.randint(0, size)]), rng.choice([size, rng.randint(0, size)])))
    expected = {number: rows_of(clause, rows, SCALES) for number, clause in zip(ids, clauses, strict=True)}
    assert set(cell.failures) == {number for number, matches in expected.items() if matches is None}
    assert reader.clauses.tolist() == [number for number, matches in expected.items() if matches]
    for number, clause in zip(ids, clauses, strict=True):
        matches = expected[number]
        if matches is None:
            with pytest.raises(QueryFailed):
                select(block, clause)
            assert reader.rows_of(number).tolist() == []
            continue
        inside = [row for row in matches if first <= row < last]
        assert reader.rows_of(number).tolist() == matches, clause
        assert reader.count_of(number) == len(matches)
        assert reader.rows_of(number, first, last).tolist() == inside
        assert select(block, clause).tolist() == matches, clause
        assert Selector(clause, SCHEMA).rows(block, first, last).tolist() == inside


@example_settings(30)
@given(seed=SEEDS, size=SIZES, indexed=st.booleans())
def test_holds_agrees_with_the_twin(seed: int, size: int, indexed: bool) -> None:
    rng, rows, block = make(seed, size, indexed=indexed)
    for _ in range(10):
        predicate = rng.choice([random_within, random_derived])(rng, rows)
        expected = [true_for(predicate, row, SCALES) for row in rows]
        assert holds(predicate, block).tolist() == expected, predicate


@example_settings(40)
@given(seed=SEEDS)
def test_compiled_clauses_can_be_read_back(seed: int) -> None:
    rng, rows, _ = make(seed, 60, indexed=False)
    clauses: list[Clause] = [random_clause(rng, rows) for _ in range(20)]
    run = compile_clauses(range(20), clauses, SCHEMA)
    for position, clause in enumerate(clauses):
        assert rows_of(run.clause(position), rows, SCALES) == rows_of(clause, rows, SCALES)
        assert rows_of((AllOf(clause),), rows, SCALES) == rows_of(clause, rows, SCALES)
