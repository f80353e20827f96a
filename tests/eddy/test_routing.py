"""With any policy, an eddy over real grouped filters answers each query as if it were alone."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.routing import GroupedFilters, alone, clauses_of, route
from tests.examples import example_settings
from tureen.eddy import (
    Eddy,
    Fixed,
    Flow,
    Lineage,
    Observation,
    Operator,
    Policy,
    Random,
    Tickets,
    consumed,
    eliminated,
    grouped_filters,
    optimal,
    worst,
)
from tureen.predicate import AnyOf, Clause, Compare, Factor, Interval, IsNull, Opaque, Within

COLUMNS = "abcd"
VALUES = st.none() | st.integers(0, 9)


def _within(column: str, ends: tuple[int, int]) -> Within:
    return Within(column, (Interval(min(ends), max(ends)),))


RANGES = st.builds(_within, st.sampled_from(COLUMNS), st.tuples(st.integers(0, 9), st.integers(0, 9)))
FACTORS: st.SearchStrategy[Factor] = st.one_of(
    RANGES,
    RANGES,
    st.builds(IsNull, st.sampled_from(COLUMNS)),
    st.builds(Compare, st.sampled_from(COLUMNS), st.sampled_from(["<", "=", ">="]), st.sampled_from(COLUMNS)),
    st.builds(lambda left, right: AnyOf((left, right)), RANGES, RANGES),
    st.just(Opaque("a % 2 = 0", ("a",))),
)
CLAUSES = st.lists(FACTORS, max_size=4).map(tuple)
ROWS = st.lists(st.tuples(*[VALUES] * len(COLUMNS)), min_size=1, max_size=60)


def batch_of(rows: list[tuple[int | None, ...]]) -> pa.RecordBatch:
    return pa.record_batch({name: pa.array([row[i] for row in rows], pa.int32()) for i, name in enumerate(COLUMNS)})


def policies(filters: GroupedFilters, batch: pa.RecordBatch, seed: int) -> list[Policy]:
    operators = filters.flow.operators
    shuffled = random.Random(seed).sample([operator.name for operator in operators], len(operators))
    result: list[Policy] = [Random(random.Random(seed)), Fixed(shuffled)]
    result += [Tickets(random.Random(seed), credit) for credit in (consumed, eliminated)]
    if len(operators) <= 6:
        work = filters.work(batch, sparing=True)
        result += [optimal(operators, work), worst(operators, work)]
    return result


@example_settings(25)
@given(
    clauses=st.lists(CLAUSES, min_size=1, max_size=8),
    rows=ROWS,
    size=st.sampled_from([1, 7, 64]),
    sparing=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_every_policy_answers_as_each_query_alone(
    clauses: list[Clause], rows: list[tuple[int | None, ...]], size: int, sparing: bool, seed: int
) -> None:
    batch = batch_of(rows)
    filters = GroupedFilters(clauses, batch.schema)
    expected = alone(clauses, batch)
    everything = np.arange(len(rows))
    for policy in policies(filters, batch, seed):
        for probe in (filters.matching(batch), filters.looking_up(batch)):
            eddy = Eddy(filters.flow, policy, window=random.Random(seed).choice([None, 10]), sparing=sparing)
            assert np.array_equal(route(eddy, probe, everything, size), expected), policy
            assert eddy.statistics.admitted == len(rows)
            assert eddy.statistics.visits <= len(rows) * len(filters.flow.operators)


@example_settings(20)
@given(clauses=st.lists(CLAUSES, min_size=2, max_size=8), rows=ROWS, seed=st.integers(0, 2**32))
def test_queries_added_between_blocks_get_later_tuples(
    clauses: list[Clause], rows: list[tuple[int | None, ...]], seed: int
) -> None:
    batch, half = batch_of(rows), len(rows) // 2
    few, all_of_them = GroupedFilters(clauses[:1], batch.schema), GroupedFilters(clauses, batch.schema)
    eddy = Eddy(few.flow, Tickets(random.Random(seed)), window=5)
    early = route(eddy, few.looking_up(batch), np.arange(half), 3)
    eddy.change(all_of_them.flow)
    late = route(eddy, all_of_them.looking_up(batch), np.arange(half, len(rows)), 3)
    expected = alone(clauses, batch)
    assert np.array_equal(early, expected[:half, :1])
    assert np.array_equal(late, expected[half:])


@example_settings(20)
@given(clauses=st.lists(CLAUSES, min_size=1, max_size=6), rows=ROWS)
def test_optimal_order_has_fewest_visits(clauses: list[Clause], rows: list[tuple[int | None, ...]]) -> None:
    batch = batch_of(rows)
    filters = GroupedFilters(clauses, batch.schema)
    if not 0 < len(filters.flow.operators) <= 6:
        return
    work, visits = filters.work(batch, sparing=True), {}
    named: dict[str, Policy] = {
        "optimal": optimal(filters.flow.operators, work),
        "alphabet": Fixed([]),
        "worst": worst(filters.flow.operators, work),
    }
    for name, policy in named.items():
        eddy = Eddy(filters.flow, policy)
        route(eddy, filters.looking_up(batch), np.arange(len(rows)), 1)
        visits[name] = eddy.statistics.visits
    assert visits["optimal"] <= visits["alphabet"] <= visits["worst"]


def test_filters_are_grouped_by_columns() -> None:
    clauses = clauses_of(["a > 1 AND b > 1", "a < 5 AND a + b > 3", "c = d AND a > 2"], COLUMNS)
    assert [(operator.name, sorted(operator.queries), operator.columns) for operator in grouped_filters(clauses)] == [
        ("a", [0, 1, 2], ("a",)),
        ("a, b", [1], ("a", "b")),
        ("b", [0], ("b",)),
        ("c, d", [2], ("c", "d")),
    ]


@pytest.mark.parametrize(("sparing", "expected"), [(True, ["a"]), (False, ["a", "b"])])
def test_sparing_eddy_skips_unneeded_operators(sparing: bool, expected: list[str]) -> None:
    flow = Flow((Operator("a", frozenset({0, 1})), Operator("b", frozenset({1})), Operator("c", frozenset({1}))), 2)
    eddy = Eddy(flow, Fixed("cab"), sparing=sparing)
    block = eddy.admit(1)
    operator = eddy.next(block)
    assert operator is not None
    block = eddy.observe(block, Observation(operator, 1, 1, 1), frozenset({0}))
    assert [candidate.name for candidate in eddy.ready(block)] == expected


def test_query_without_condition_needs_no_visit() -> None:
    batch = batch_of([(1, 2, 3, 4)])
    filters = GroupedFilters([()], batch.schema)
    eddy = Eddy(filters.flow, Random(random.Random(1)))
    assert route(eddy, filters.matching(batch), np.arange(1), 1).tolist() == [[True]]
    assert eddy.next(Lineage(1, frozenset())) is None
    assert eddy.statistics.visits == 0
