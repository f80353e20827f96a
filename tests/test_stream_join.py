"""Stream joins: which part of a query can be kept, and which queries share it."""

from __future__ import annotations

import pytest

from tureen.join import InnerJoin
from tureen.language import bind_query
from tureen.query import NamedRelation, RelationKind
from tureen.schema import Schema
from tureen.stream_join import StreamJoin, StreamJoinOfQuery, stream_join_of

SCHEMA = Schema.parse("k INT, v BIGINT, d DOUBLE, ts TIMESTAMP", time="ts")
IDS = {"a": 1, "b": 2, "c": 3}


def part_of(sql: str) -> StreamJoinOfQuery | None:
    def describe(name: str) -> NamedRelation:
        kind = RelationKind.STREAM if name in IDS else RelationKind.TABLE
        return NamedRelation(name, SCHEMA, kind)

    query = bind_query(sql, describe)
    return stream_join_of(query, [IDS.get(entry.relation) for entry in query.leaves])


def join_of(sql: str) -> StreamJoin:
    part = part_of(sql)
    assert part is not None
    return part.join


BASE = "SELECT a.v FROM a JOIN b ON a.k = b.k"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT b.ts, a.d FROM b, a WHERE b.k = a.k AND a.v > 5 AND b.d < 1",
        "SELECT x.v FROM a [RANGE 5 MINUTES] AS x, b AS y WHERE x.k = y.k AND x.v + y.v > 3",
        "SELECT count(*) FROM a JOIN b USING (k)",
        "SELECT a.v FROM a JOIN b ON a.k = b.k JOIN t ON t.v = a.v",
        "SELECT a.v FROM a JOIN b ON a.k = b.k, c",
        "SELECT a.v FROM a LEFT JOIN b ON a.k = b.k AND a.v + b.v > 3",
        "SELECT a.v FROM a FULL JOIN b ON a.k = b.k AND a.v > 3",
        "SELECT a.v FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE a.k = b.k)",
        "SELECT a.v FROM a WHERE k NOT IN (SELECT k FROM b) AND v > 5",
        "SELECT b.v FROM b JOIN a ON a.k = b.k LEFT JOIN c ON c.k = a.k",
        "SELECT a.v FROM a LEFT JOIN b ON a.k = b.k JOIN t ON t.k = a.k",
    ],
)
def test_queries_share_a_join(sql: str) -> None:
    assert join_of(sql) == join_of(BASE)
    assert StreamJoin.of_key(join_of(sql).key) == join_of(BASE)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.v FROM a JOIN b ON a.k = b.v",
        "SELECT a.v FROM a JOIN b ON a.k < b.k",
        "SELECT a.v FROM a JOIN b ON a.k = b.k + 1",
        "SELECT a.v FROM a JOIN b ON a.k = b.k AND a.v = b.v",
        "SELECT a.v FROM a JOIN c ON a.k = c.k",
        "SELECT x.v FROM a x JOIN a y ON x.k = y.k",
    ],
)
def test_other_joins_differ(sql: str) -> None:
    assert join_of(sql).key != join_of(BASE).key


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.v FROM a",
        "SELECT a.v FROM a, b",
        "SELECT a.v FROM a, b WHERE a.v + b.v = 3",
        "SELECT a.v FROM a JOIN t ON a.k = t.k",
        "SELECT a.v FROM a LEFT JOIN b ON a.v + b.v = 3",
        "SELECT a.v FROM a LEFT JOIN t ON a.k = t.k",
        "SELECT a.v FROM a WHERE EXISTS (SELECT 1 FROM t WHERE a.k = t.k)",
    ],
)
def test_nothing_to_keep(sql: str) -> None:
    assert part_of(sql) is None


def test_largest_connected_group_is_kept() -> None:
    part = part_of("SELECT 1 AS one FROM a, t, b, c WHERE a.k = t.k AND c.k = b.k AND b.v < a.v AND a.d + b.d > 1")
    assert part is not None
    assert (part.join.streams, part.inputs, part.is_whole) == ((1, 2, 3), (0, 2, 3), False)
    assert isinstance(part.source, InnerJoin)
    assert part.source.sides == (part.tree, 1)
    assert len(part.source.factors) == 2, "the table's and the expression"


@pytest.mark.parametrize(
    ("sql", "inputs"),
    [
        (BASE, set()),
        ("SELECT a.v FROM a LEFT JOIN b ON a.k = b.k", {0}),
        ("SELECT a.v FROM a RIGHT JOIN b ON a.k = b.k", {1}),
        ("SELECT a.v FROM a FULL JOIN b ON a.k = b.k", {0, 1}),
        ("SELECT a.v FROM a SEMI JOIN b ON a.k = b.k", set()),
        ("SELECT a.v FROM a ANTI JOIN b ON a.k = b.k", {0}),
        ("SELECT a.v FROM a ASOF JOIN b ON a.k = b.k AND a.ts >= b.ts", set()),
        ("SELECT a.v FROM a ASOF LEFT JOIN b ON a.k = b.k AND a.ts >= b.ts", {0}),
        ("SELECT a.v FROM a WHERE k IN (SELECT k FROM b)", set()),
        ("SELECT a.v FROM a WHERE k NOT IN (SELECT k FROM b)", {0, 1}),
    ],
)
def test_inputs_with_tuples_without_a_partner(sql: str, inputs: set[int]) -> None:
    part = part_of(sql)
    assert part is not None
    assert part.all_tuples == inputs


@pytest.mark.parametrize(
    ("windows", "reach"),
    [
        (("[RANGE 5 MINUTES]", "[RANGE 2 MINUTES]"), 300_000_000),
        (("[RANGE 5 MINUTES]", ""), None),
        (("[ROWS 5]", "[RANGE 5 MINUTES]"), None),
    ],
)
def test_reach(windows: tuple[str, str], reach: int | None) -> None:
    part = part_of(f"SELECT a.v FROM a {windows[0]} JOIN b {windows[1]} ON a.k = b.k")
    assert part is not None
    assert part.reach == reach
