"""Merged query runs match as if all of their clauses had been compiled together."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tests.matching.material import SCHEMA, random_clause
from tests.matching.test_match import SEEDS, SIZES, make
from tureen.matching import Buffers, match_block
from tureen.predicate import Interval, Within
from tureen.queries import QueryRun, compile_clauses
from tureen.queries.merging import merge_runs

MERGED_BUFFERS, COMPILED_BUFFERS = Buffers(), Buffers()


@example_settings(80)
@given(seed=SEEDS, size=SIZES, parts=st.integers(1, 4), some_died=st.booleans(), twice=st.booleans())
def test_merged_runs_match_like_one_run(seed: int, size: int, parts: int, some_died: bool, twice: bool) -> None:
    rng, rows, block = make(seed, size, indexed=True)
    clauses = [random_clause(rng, rows) for _ in range(rng.choice([1, 10, 40]))]
    ids = sorted(rng.sample(range(10**12), len(clauses)))
    ends = sorted(rng.randint(0, len(ids)) for _ in range(parts - 1))
    runs = [
        compile_clauses(ids[start:end], clauses[start:end], SCHEMA)
        for start, end in zip([0, *ends], [*ends, len(ids)], strict=True)
    ]
    live = sorted(rng.sample(ids, rng.randint(0, len(ids)))) if some_died else ids
    merged = merge_runs(runs, np.array(live, np.int64) if some_died else None)
    if twice:
        merged = merge_runs([merged, compile_clauses([10**13], [()], SCHEMA)], np.array(live, np.int64))
    assert merged.ids.tolist() == live
    live_clauses = [clause for number, clause in zip(ids, clauses, strict=True) if number in set(live)]
    compiled = compile_clauses(live, live_clauses, SCHEMA)
    cell, expected = match_block(block, merged, MERGED_BUFFERS), match_block(block, compiled, COMPILED_BUFFERS)
    assert cell.batch.equals(expected.batch)
    assert cell.failures == expected.failures
    assert [_factors(merged, position) for position in range(len(merged))] == [
        _factors(compiled, position) for position in range(len(compiled))
    ]
    loaded = QueryRun.from_buffer(merged.to_buffer())
    assert match_block(block, loaded, MERGED_BUFFERS).batch.equals(expected.batch)


def _factors(run: QueryRun, position: int) -> list[str]:
    return sorted(map(repr, run.clause(position)))


def test_unused_factors_are_dropped() -> None:
    runs = [compile_clauses([number], [(Within("i", (Interval(number, number),)),)], SCHEMA) for number in range(50)]
    merged = merge_runs(runs, np.array([7]))
    assert (merged.factors, len(merged.arrays.high)) == (1, 2 + 3)
    assert merged.clause(0) == runs[7].clause(0)
    both = merge_runs([runs[3], compile_clauses([9], [runs[3].clause(0)], SCHEMA)])
    assert both.factors == 1, "equal factors are merged"
