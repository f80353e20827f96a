"""Which streams cover a query: one by one, and from the index."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tests.sharing.predicates import SCHEMA, clauses, columns_in, comparisons, predicates, ranges
from tureen.language import bind_query
from tureen.predicate import Clause
from tureen.query import NamedRelation
from tureen.schema import Schema
from tureen.sharing.covering import covers, residual
from tureen.sharing.properties import PartialAggregate, Properties, properties_of
from tureen.sharing.stream_index import StreamIndex

PHOTONS = Schema.parse("ra DOUBLE, dec DOUBLE, phc INT, en DOUBLE, det TIMESTAMP", time="det")

VELA = "ra >= 120.0 AND ra <= 138.0 AND dec >= -49.0 AND dec <= -40.0"
Q1 = f"SELECT ra, dec, phc, en, det FROM photons WHERE {VELA}"
Q2 = (
    "SELECT ra, dec, en, det FROM photons "
    "WHERE en >= 1.3 AND ra >= 130.5 AND ra <= 135.5 AND dec >= -48.0 AND dec <= -45.0"
)
Q3 = (
    f"SELECT window_start, avg(en) FROM photons WHERE {VELA} "
    "GROUP BY HOP(det, INTERVAL '10' SECOND, INTERVAL '20' SECOND)"
)
Q4 = (
    f"SELECT window_start, avg(en) FROM photons WHERE {VELA} "
    "GROUP BY HOP(det, INTERVAL '40' SECOND, INTERVAL '60' SECOND) HAVING avg(en) >= 1.3"
)


def properties(sql: str) -> Properties:
    query = bind_query(sql, lambda name: NamedRelation(name, PHOTONS))
    needed = properties_of(query)
    assert needed is not None
    return needed


def test_queries_of_the_paper() -> None:
    """Query 2 is computed from the stream of Query 1, and Query 4 from that of Query 3; not the reverse."""
    by_name = {name: properties(sql) for name, sql in (("q1", Q1), ("q2", Q2), ("q3", Q3), ("q4", Q4))}
    covered = {(a, b) for a in by_name for b in by_name if covers(PHOTONS, by_name[a], by_name[b])}
    assert covered == {(name, name) for name in by_name} | {("q1", "q2"), ("q1", "q3"), ("q1", "q4"), ("q3", "q4")}


def test_average_needs_sum_and_count() -> None:
    average = properties(Q3).aggregation
    assert average is not None
    assert {partial.function for partial in average.partials} == {"sum", "count"}
    assert all(isinstance(partial, PartialAggregate) and "en" in partial.argument for partial in average.partials)


@pytest.mark.parametrize(
    "select", ["percentile(en, 0.5)", "count(DISTINCT phc)", "collect_list(phc)"], ids=lambda text: text.split("(")[0]
)
def test_aggregates_of_all_rows_are_not_composed(select: str) -> None:
    sql = f"SELECT window_start, {select} AS x FROM photons GROUP BY TUMBLE(det, INTERVAL '10' SECOND)"
    assert properties(sql).aggregation is None


def test_groups_are_rolled_up() -> None:
    by_phc = properties(
        "SELECT phc, window_start, count(*) AS n FROM photons GROUP BY phc, TUMBLE(det, INTERVAL '10' SECOND)"
    )
    total = properties("SELECT window_start, count(*) AS n FROM photons GROUP BY TUMBLE(det, INTERVAL '20' SECOND)")
    assert covers(PHOTONS, by_phc, total)
    assert not covers(PHOTONS, total, by_phc)


def test_a_missing_column_of_a_factor_that_remains() -> None:
    stream = properties("SELECT ra FROM photons WHERE phc > 3 AND en > 1")
    assert covers(PHOTONS, stream, properties("SELECT ra FROM photons WHERE phc > 3 AND en > 1"))
    assert not covers(PHOTONS, stream, properties("SELECT ra FROM photons WHERE phc > 3 AND en > 2"))
    wide = properties("SELECT ra FROM photons WHERE phc > 3 AND en > 2").clause
    assert [factor.column for factor in residual(PHOTONS, stream.clause, wide)] == ["en"]  # type: ignore[union-attr]


columns = st.frozensets(st.sampled_from(SCHEMA.names), min_size=4)
selections = clauses(st.one_of(ranges(("a", "b", "x", "s")), comparisons(), predicates(1)), 3)


@given(st.lists(st.tuples(selections, columns), max_size=12), selections, columns)
@example_settings(60)
def test_the_index_has_the_streams_that_cover(
    streams: list[tuple[Clause, frozenset[str]]], clause: Clause, needed: frozenset[str]
) -> None:
    index: StreamIndex[int] = StreamIndex()
    kept: dict[int, Properties] = {}
    for number, (selection, has) in enumerate(streams):
        kept[number] = Properties("s", selection, has | columns_in(selection))
        index.add(number, kept[number], SCHEMA)
        if number % 4 == 3:
            index.remove(number - 1)
            del kept[number - 1]
    query = Properties("s", clause, needed)
    expected = [number for number in kept if covers(SCHEMA, kept[number], query)]
    assert sorted(index.covering(query)) == expected
    assert index.covering(Properties("other", clause, needed)) == []
    assert len(index) == len(kept)
