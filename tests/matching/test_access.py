"""Clauses that a key reaches give what they give when they are visited, and what the plain twin gives."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tureen.matching import Buffers, Cell, CellReader, Costs, Tuning, match_block
from tureen.predicate import Clause
from tureen.queries import QueryRun, compile_clauses
from tureen.queries.access import AccessIndex
from tureen.stems.index import Block, index_block

from .material import SCALES, SCHEMA, batch_of, random_clause, random_rows
from .rules import random_rules
from .twin import Row, rows_of

WAYS = {
    "as it comes": Tuning(),
    "by key": Tuning(costs=Costs(search=0, pair=0)),
    "hot": Tuning(costs=Costs(search=0, pair=10**9)),
    "some hot": Tuning(costs=Costs(search=0, visit=10, pair=1)),
    "visited": Tuning(costs=Costs(search=10**9)),
}
BUFFERS = {name: Buffers(tuning) for name, tuning in WAYS.items()}


def with_keys(run: QueryRun, least_keys: int) -> QueryRun:
    return replace(run, known_access=AccessIndex.of(run.arrays, run.encodings, least_keys))


def check(cell: Cell, ids: Sequence[int], clauses: Sequence[Clause], rows: Sequence[Row]) -> None:
    cell.batch.validate(full=True)
    reader = CellReader(cell.batch, len(rows))
    expected = {number: rows_of(clause, rows, SCALES) for number, clause in zip(ids, clauses, strict=True)}
    assert set(cell.failures) == {number for number, found in expected.items() if found is None}
    assert reader.clauses.tolist() == [number for number, found in expected.items() if found]
    for number, found in expected.items():
        assert reader.rows_of(number).tolist() == (found or []), clauses[ids.index(number)]
        assert reader.count_of(number) == len(found or [])


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    size=st.sampled_from([1, 2, 7, 64, 65, 130, 300]),
    count=st.sampled_from([1, 10, 60]),
    way=st.sampled_from(sorted(WAYS)),
    least_keys=st.sampled_from([1, 4, 1000]),
)
def test_every_way_gives_what_the_twin_gives(seed: int, size: int, count: int, way: str, least_keys: int) -> None:
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
    check(match_block(block, run, BUFFERS[way]), ids, clauses, rows)
