"""The lists of columns of key indexes follow from the conditions of a join, in any order."""

from __future__ import annotations

from itertools import permutations

import pytest

from tureen.join import Field, InnerJoin, Join, JoinCompare, JoinFactor, JoinKind, JoinOpaque, JoinTree, LateralJoin
from tureen.joining.key_columns import columns_of_streams, key_columns, key_equalities, probed_columns
from tureen.language import bind_query
from tureen.query import NamedRelation, RelationKind
from tureen.schema import Schema


def equal(left: str, right: str, domain: str = "int", offset: int = 0, op: str = "=") -> JoinCompare:
    """A comparison of two fields, such as "0.k"."""
    fields = (Field(int(text[0]), text[2:]) for text in (left, right))
    first, second = fields
    return JoinCompare(first, op, second, offset, domain)


def lists(tree: JoinTree) -> set[tuple[int, str]]:
    """What may be probed, without the domains."""
    return {(number, " ".join(column for column, _ in columns)) for number, columns in probed_columns(tree)}


def test_lists_do_not_depend_on_the_order_of_conditions() -> None:
    factors = [equal("0.k", "1.m"), equal("1.a", "0.x", "string"), equal("1.m", "0.z"), equal("0.t", "1.t", op="<")]
    for order in permutations(factors):
        assert key_columns(key_equalities(order, 1), 1) == (("a", "string"), ("m", "int"))


@pytest.mark.parametrize(
    "factor",
    [
        equal("0.k", "1.k", offset=1),
        equal("0.k", "1.k", op="<="),
        equal("1.k", "1.m"),
        equal("0.k", "2.k"),
        JoinOpaque("x", (Field(0, "k"), Field(1, "k"))),
    ],
)
def test_other_conditions_are_not_indexed(factor: JoinFactor) -> None:
    assert key_equalities([factor], 1) == []


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (InnerJoin((0, 1), (equal("0.k", "1.m"), equal("0.a", "1.b"))), {(0, "a k"), (1, "b m")}),
        # In a chain, an input is joined after one of its neighbours; in a ring, after one or both.
        (
            InnerJoin((0, 1, 2), (equal("0.k", "1.k"), equal("1.m", "2.m"))),
            {(0, "k"), (1, "k"), (1, "m"), (2, "m")},
        ),
        (
            InnerJoin((0, 1, 2), (equal("0.k", "1.k"), equal("1.m", "2.m"), equal("2.z", "0.z"))),
            {(0, "k"), (0, "z"), (0, "k z"), (1, "k"), (1, "m"), (1, "k m"), (2, "m"), (2, "z"), (2, "m z")},
        ),
        (Join(JoinKind.LEFT, 0, 1, (equal("0.k", "1.k"),)), {(0, "k"), (1, "k")}),
        (Join(JoinKind.SEMI, 0, 1, (equal("0.k", "1.k"),)), set()),
        (Join(JoinKind.ASOF, 0, 1, (equal("0.k", "1.k"),), equal("0.t", "1.t", op=">=")), set()),
        (LateralJoin(0, 1, (equal("0.k", "1.k"),), 2), {(0, "k"), (1, "k")}),
        (LateralJoin(0, 1, (equal("0.k", "1.k"),), 2, one_suffices=True), set()),
        (
            Join(JoinKind.LEFT, 0, InnerJoin((1, 2), (equal("1.k", "2.k"),)), (equal("0.m", "1.m"),)),
            {(0, "m"), (1, "k"), (2, "k")},
        ),
    ],
)
def test_inputs_that_may_be_probed(tree: JoinTree, expected: set[tuple[int, str]]) -> None:
    assert lists(tree) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT a.k FROM a JOIN b ON a.k = b.k AND a.m = b.k", {(1, "k m"), (2, "k")}),
        ("SELECT a.k FROM a, t WHERE a.k = t.k", {(1, "k")}),
        ("SELECT x.k FROM a x LEFT JOIN a y ON x.k = y.m", {(1, "k"), (1, "m")}),
        ("SELECT k FROM a", set()),
        ("SELECT a.k FROM a, b WHERE a.k > b.k", set()),
        (
            "SELECT t.k FROM t, (SELECT a.m FROM a JOIN b ON a.m = b.m) q, b WHERE q.m = b.k",
            {(1, "m"), (2, "m"), (2, "k")},
        ),
        (
            "SELECT k FROM a UNION SELECT b.k FROM b JOIN t ON b.k = t.k UNION SELECT a.m FROM t JOIN a ON a.m = t.k",
            {(2, "k"), (1, "m")},
        ),
    ],
)
def test_streams_that_a_query_may_probe(sql: str, expected: set[tuple[int, str]]) -> None:
    streams = {"a": 1, "b": 2}
    schema = Schema.parse("k INT, m INT, ts TIMESTAMP", "ts")

    def describe(name: str) -> NamedRelation:
        return NamedRelation(name, schema, RelationKind.STREAM if name in streams else RelationKind.TABLE)

    query = bind_query(sql, describe)
    if not query.joins:
        assert not expected
        return
    columns = columns_of_streams(query, [streams.get(leaf.relation) for leaf in query.leaves])
    assert {(stream, " ".join(name for name, _ in names)) for stream, names in columns} == expected
