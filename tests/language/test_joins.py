"""Binding joins and queries within queries: what becomes of their conditions, and errors with place and hint."""

from __future__ import annotations

import pytest

from tureen.errors import Location, SqlError, TureenError, TypeMismatch, UnknownColumn, UnknownStream, Unsupported
from tureen.join import Field, InnerJoin, Join, JoinCompare, JoinKind, JoinOpaque
from tureen.language import bind_query
from tureen.predicate import Interval, Within
from tureen.query import NamedRelation, Query, RelationKind, SetOperation, SetOperator
from tureen.schema import Schema
from tureen.window import WHOLE, Now, RowsBack, Window

RELATIONS = {
    "t": NamedRelation("t", Schema.parse("sym STRING, price DOUBLE, qty INT, ts TIMESTAMP", "ts")),
    "q": NamedRelation("q", Schema.parse("sym STRING, bid DOUBLE, size BIGINT, ts TIMESTAMP", "ts")),
    "dim": NamedRelation("dim", Schema.parse("sym STRING, sector STRING"), RelationKind.TABLE),
}


def lookup(name: str) -> NamedRelation:
    if name.lower() not in RELATIONS:
        raise UnknownStream(f"no relation '{name}'")
    return RELATIONS[name.lower()]


def bind(sql: str) -> Query:
    return bind_query(sql, lookup)


SAME_SYM = JoinCompare(Field(1, "sym"), "=", Field(0, "sym"), domain="string")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT qty FROM t, q WHERE t.sym = q.sym",
        "SELECT qty FROM t JOIN q ON t.sym = q.sym",
        "SELECT qty FROM t INNER JOIN q ON q.sym = t.sym",
        "SELECT qty FROM t JOIN q USING (SYM)",
        "SELECT qty FROM t CROSS JOIN q WHERE t.sym = q.sym",
        "SELECT qty FROM t LEFT JOIN q ON t.sym = q.sym WHERE q.bid IS NOT NULL AND t.sym = q.sym",
        "SELECT qty FROM (t JOIN q ON t.sym = q.sym)",
    ],
)
def test_forms_of_an_inner_join_have_the_same_factors(sql: str) -> None:
    source = bind(sql).source
    assert isinstance(source, InnerJoin)
    assert set(source.sides) == {0, 1}
    assert set(source.factors) == {SAME_SYM}


def test_conditions_of_one_input_are_its_clause() -> None:
    query = bind("SELECT qty FROM t JOIN q ON t.sym = q.sym AND q.bid > 3 WHERE t.qty = 2 AND t.price > q.bid + 1")
    stream, quotes = query.inputs
    assert stream.clause == (Within("qty", (Interval(2, 2),)),)
    assert quotes.clause == (Within("bid", (Interval(3.0, None, True, False),)),)
    assert isinstance(query.source, InnerJoin)
    assert query.source.factors == (SAME_SYM, JoinCompare(Field(0, "price"), ">", Field(1, "bid"), 1.0, "double"))


def test_condition_on_right_of_outer_join_stays_a_condition_of_joined_rows() -> None:
    query = bind("SELECT qty FROM t LEFT JOIN q ON t.sym = q.sym AND q.bid > 3 AND t.qty > 1 WHERE q.bid IS NULL")
    assert isinstance(query.source, InnerJoin)
    (join,), (where,) = query.source.sides, query.source.factors
    assert isinstance(where, JoinOpaque)
    assert isinstance(join, Join)
    assert (join.kind, join.left, join.right) == (JoinKind.LEFT, 0, 1)
    # The left row's own condition decides about its partners, not about the row.
    assert [isinstance(factor, JoinOpaque) for factor in join.factors] == [False, True]
    assert [len(entry.clause) for entry in query.inputs] == [0, 1]


@pytest.mark.parametrize(
    ("where", "kind", "left"),
    [
        ("", JoinKind.FULL, 0),
        (" WHERE t.qty > 1", JoinKind.LEFT, 0),
        (" WHERE q.bid > 1", JoinKind.LEFT, 1),
        (" WHERE t.qty IS NULL OR q.bid > 1", JoinKind.FULL, 0),
    ],
)
def test_outer_join_becomes_what_where_leaves_of_it(where: str, kind: JoinKind, left: int) -> None:
    source = bind(f"SELECT t.qty FROM t FULL JOIN q ON t.sym = q.sym{where}").source
    join = source.sides[0] if isinstance(source, InnerJoin) else source
    assert isinstance(join, Join)
    assert (join.kind, join.left) == (kind, left)


def test_right_join_is_a_left_join_with_sides_exchanged() -> None:
    source = bind("SELECT qty FROM t RIGHT JOIN q ON t.sym = q.sym").source
    assert isinstance(source, Join)
    assert (source.kind, source.left, source.right) == (JoinKind.LEFT, 1, 0)


def test_comma_binds_less_tightly_than_join() -> None:
    source = bind("SELECT t.qty FROM t, q RIGHT JOIN dim ON q.sym = dim.sym").source
    assert isinstance(source, InnerJoin)
    assert source.sides[0] == 0
    assert isinstance(source.sides[1], Join)
    assert isinstance(bind("SELECT t.qty FROM t CROSS JOIN q RIGHT JOIN dim ON q.sym = dim.sym").source, Join)


def test_windows_per_input() -> None:
    minutes = Window(Now(-300_000_000), Now())
    query = bind(
        "SELECT t.qty FROM t [RANGE 5 MINUTES] JOIN q b [ROWS 10] ON t.sym = b.sym, dim, q c BEGIN NOW - 1 END NOW"
    )
    assert [entry.window for entry in query.inputs] == [
        minutes,
        Window(RowsBack(10), Now()),
        WHOLE,
        Window(Now(-1_000_000), Now()),
    ]


def test_exists_and_in_are_semi_and_anti_joins() -> None:
    query = bind("SELECT qty FROM t WHERE EXISTS (SELECT 1 FROM q WHERE q.sym = t.sym AND q.bid > 1) AND qty > 0")
    assert isinstance(query.source, Join)
    assert (query.source.kind, query.source.factors) == (JoinKind.SEMI, (SAME_SYM,))
    assert [len(entry.clause) for entry in query.inputs] == [1, 1]
    anti = bind("SELECT qty FROM t WHERE sym NOT IN (SELECT sym FROM dim)").source
    kinds = []
    while isinstance(anti, Join):
        kinds.append(anti.kind)
        anti = anti.left
    # One for equal values, and one for NULLs of each side.
    assert kinds == [JoinKind.ANTI] * 3


def test_asof_join_has_equalities_and_an_inequality() -> None:
    source = bind("SELECT qty FROM t ASOF JOIN q ON q.ts <= t.ts AND t.sym = q.sym").source
    assert isinstance(source, Join)
    assert (source.kind, source.factors) == (JoinKind.ASOF, (SAME_SYM,))
    assert source.latest == JoinCompare(Field(0, "ts"), ">=", Field(1, "ts"))


def test_blocks_are_inputs() -> None:
    query = bind(
        "WITH x AS (SELECT sym, count(*) AS n FROM t GROUP BY sym) SELECT a.n, b.n FROM x a JOIN x b USING (sym)"
    )
    assert [entry.kind for entry in query.inputs] == [RelationKind.BLOCK] * 2
    assert [entry.relation for entry in query.leaves] == ["t", "t"]
    assert [output.name for output in query.outputs] == ["n", "n_1"]


def test_set_operations_bind_by_precedence() -> None:
    query = bind("SELECT sym FROM t UNION SELECT sym FROM q INTERSECT SELECT sym FROM dim ORDER BY sym LIMIT 2")
    block = query.inputs[0].block
    assert isinstance(block, SetOperation)
    assert block.operator is SetOperator.UNION
    assert isinstance(block.right, SetOperation)
    assert block.right.operator is SetOperator.INTERSECT
    assert (query.limit, len(query.order)) == (2, 1)


def test_outputs_of_set_operations_have_common_types() -> None:
    query = bind("SELECT qty FROM t UNION ALL SELECT size FROM q")
    assert query.outputs[0].value.type.sql == "BIGINT"
    assert query.outputs[0].name == "qty"


def test_blocks_have_their_own_window_or_the_outer_one() -> None:
    query = bind(
        "SELECT 1 AS x FROM (SELECT sym FROM t) a, (SELECT sym FROM q BEGIN NOW - 2 END NOW) b BEGIN NOW - 9 END NOW"
    )
    assert [entry.window for entry in query.leaves] == [
        Window(Now(-9_000_000), Now()),
        Window(Now(-2_000_000), Now()),
    ]


def test_star_and_columns_of_the_same_name() -> None:
    names = [output.name for output in bind("SELECT * FROM t JOIN q ON t.sym = q.sym").outputs]
    assert names == ["sym", "price", "qty", "ts", "sym_1", "bid", "size", "ts_1"]
    names = [output.name for output in bind("SELECT * FROM t JOIN dim USING (sym)").outputs]
    assert names == ["sym", "price", "qty", "ts", "sector"]
    names = [output.name for output in bind("SELECT q.*, t.qty FROM t, q").outputs]
    assert names == ["sym", "bid", "size", "ts", "qty"]


@pytest.mark.parametrize(
    ("sql", "kind", "message", "at", "hint"),
    [
        ("SELECT sym FROM t JOIN q ON t.sym = q.sym", SqlError, "'sym' is ambiguous", 8, "t.sym or q.sym"),
        ("SELECT prise FROM t JOIN q ON t.sym = q.sym", UnknownColumn, "no column 'prise'", 8, "'price' of t"),
        ("SELECT t.bid FROM t JOIN q ON t.sym = q.sym", UnknownColumn, "no column 'bid'", 8, "columns are sym"),
        ("SELECT x.bid FROM t JOIN q ON t.sym = q.sym", UnknownColumn, "'x' is not an input", 8, "q.bid"),
        ("SELECT qty FROM t JOIN q", SqlError, "JOIN requires a condition", 24, "CROSS JOIN"),
        ("SELECT qty FROM t CROSS JOIN q ON t.sym = q.sym", SqlError, "CROSS JOIN has no condition", 30, "JOIN"),
        ("SELECT 1 AS x FROM t, t", SqlError, "'t' is in FROM twice", 23, "alias"),
        ("SELECT 1 AS x FROM t JOIN dim [ROWS 3] ON TRUE", SqlError, "is a table and has no window", 31, "stream"),
        ("SELECT 1 AS x FROM t JOIN q ON t.sym = q.size", TypeMismatch, "STRING", 40, None),
        ("SELECT 1 AS x FROM t JOIN nope ON TRUE", UnknownStream, "nope", 27, None),
        ("SELECT 1 AS x FROM t ASOF JOIN q ON t.sym = q.sym", SqlError, "one inequality", 32, "t.ts >= q.ts"),
        ("SELECT qty FROM t WHERE sym IN (SELECT sym, bid FROM q)", SqlError, "one column, got 2", 25, None),
        ("SELECT qty FROM t WHERE price > (SELECT bid, size FROM q)", SqlError, "one column, got 2", 33, None),
        ("SELECT sym FROM t UNION SELECT sym, bid FROM q", SqlError, "as many columns", 25, None),
        ("SELECT sym FROM t UNION SELECT ts FROM q", TypeMismatch, "STRING and TIMESTAMP", 25, "cast"),
        ("WITH RECURSIVE x AS (SELECT 1) SELECT * FROM x", Unsupported, "RECURSIVE", 6, None),
        ("WITH x (a, b) AS (SELECT sym FROM t) SELECT a FROM x", SqlError, "2 names for 1", 19, None),
        ("SELECT 1 AS x FROM t LEFT JOIN LATERAL (SELECT 1) ON TRUE", TureenError, "", 0, None),
        ("SELECT max(qty) FROM t HAVING EXISTS (SELECT 1 FROM q)", Unsupported, "EXISTS", 31, "GROUP BY"),
        (
            "SELECT qty, (SELECT bid FROM q WHERE q.sym = t.sym LIMIT 2) AS b FROM t",
            Unsupported,
            "plain SELECT",
            13,
            "join",
        ),
        (
            "SELECT qty, (SELECT bid, size FROM q WHERE q.sym = t.sym) AS b FROM t",
            SqlError,
            "one column, got 2",
            13,
            None,
        ),
        (
            "SELECT 1 AS x FROM t [TUMBLE 1 MINUTE], q [TUMBLE 1 MINUTE]",
            Unsupported,
            "steps of two inputs",
            43,
            "one of them",
        ),
    ],
)
def test_errors_have_a_place_and_a_hint(
    sql: str, kind: type[TureenError], message: str, at: int, hint: str | None
) -> None:
    with pytest.raises(kind) as caught:
        bind(sql)
    assert message in caught.value.message
    if at:
        assert caught.value.location == Location(1, at)
    if hint is not None:
        assert hint in (caught.value.hint or "")
