"""Binding a template's row from its values equals binding its text."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings, explores
from tureen.language import bind_query
from tureen.language.spelling import sql_literals
from tureen.language.templates.member import MemberBinder
from tureen.language.templates.template import read_template
from tureen.predicate import dump_clause
from tureen.query import NamedRelation, Query
from tureen.schema import Schema

SCHEMA = Schema.parse(
    "sym STRING, price DOUBLE, small FLOAT, qty BIGINT, size INT, net DECIMAL(10,2), wide DECIMAL(38,4), day DATE,"
    " ok BOOLEAN, ts TIMESTAMP",
    "ts",
)
BASE = datetime(2026, 1, 1, tzinfo=UTC)

TEXTS = [
    "a",
    "it's",
    'say "so"',
    "back\\slash",
    "\\",
    "",
    "new\nline",
    "100%",
    "\\_",
    "\U0001f600",
    ":x",
    "--",
    "\0",
    None,
]
INTEGERS = [0, 1, -1, 2**31 - 1, -(2**31), None]
LONG = [*INTEGERS, 2**31, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 1.5, math.nan, math.inf, -math.inf, 1e300, 5e-324, None]
MONEY = [Decimal("0.00"), Decimal("-1.50"), Decimal("99999999.99"), Decimal("0.01"), None]
DAYS = [date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1), None]
TIMES = [
    BASE,
    BASE + timedelta(microseconds=1),
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1969, 12, 31, tzinfo=UTC),
    None,
]

VALUES: dict[str, list[Any]] = {
    "STRING": TEXTS,
    "INT": INTEGERS,
    "BIGINT": LONG,
    "DOUBLE": FLOATS,
    "FLOAT": [0.0, -0.0, 1.5, math.nan, math.inf, None],
    "DECIMAL(10,2)": MONEY,
    "DECIMAL(38,10)": [Decimal("1234567890123456789012345678.0123456789"), Decimal("-0.0000000001"), None],
    "DATE": DAYS,
    "TIMESTAMP": TIMES,
    "BOOLEAN": [True, False, None],
}
CONDITIONS = [
    "{c} {op} :x",
    ":x {op} {c}",
    "NOT ({c} {op} :x)",
    "{c} {op} :x AND {c} >= :y AND qty > 5",
    "{c} BETWEEN :x AND :y AND sym <> 'z' AND (ok OR size = 3)",
    "{c} {op} :x AND price * 2 > 7 AND sym LIKE 'a%' AND {c} IS NOT NULL",
]
FROM_TEXT = [
    "{c} IN (:x, :y)",
    "{c} <=> :x",
    "{c} {op} :x OR qty = 1",
    "{c} {op} :x AND :y IS NULL",
    "{c} = :x AND :x = :y",
]


def _same(left: Query, right: Query) -> bool:
    """Whether two queries are equal; the texts also distinguish NaN and signed zeros."""
    return (
        left == right and dump_clause(left.stream.clause) == dump_clause(right.stream.clause) and left.sql == right.sql
    )


def _columns(kind: str) -> list[str]:
    """The columns that values of a type may be compared with."""
    numbers = ["price", "small", "qty", "size", "net", "wide"]
    fitting = {"STRING": ["sym"], "DATE": ["day"], "TIMESTAMP": ["ts"], "BOOLEAN": ["ok"]}
    return fitting.get(kind, numbers)


def _check(sql: str, kind: str, rows: list[dict[str, Any]]) -> MemberBinder:
    columns = Schema.parse(f"x {kind}, y {kind}") if ":y" in sql else Schema.parse(f"x {kind}")
    binder = MemberBinder(sql, columns, SCHEMA)
    for row in rows:
        text = read_template(sql).fill(sql_literals(columns, row))
        expected = bind_query(text, lambda name: NamedRelation(name, SCHEMA))
        query, _ = binder.bind(text, row)
        assert _same(query, expected), (text, query.stream.clause, expected.stream.clause)
    return binder


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_clause_from_values_equals_clause_from_text(kind: str, condition: str) -> None:
    values = VALUES[kind]
    rows = [{"x": x, "y": values[-2]} for x in values]
    if ":y" in condition:
        rows += [{"x": x, "y": None} for x in values[:2]]
    columns, ops = _columns(kind), ("=", "<>", "<", "<=", ">", ">=") if "{op}" in condition else ("",)
    # The plain comparison is bound for all values, columns and operators, the others for all pairs of these.
    is_thinned = len(columns) > 1 and len(ops) > 1 and condition != CONDITIONS[0] and not explores()
    step = 3 if is_thinned else 1
    quick = 0
    for (place, column), (number, op) in product(enumerate(columns), enumerate(ops)):
        where = condition.format(c=column, op=op)
        sql = f"SELECT sym, price FROM s WHERE {where} BEGIN NOW - 5 MINUTES END NOW"
        binder = _check(sql, kind, rows[(place + number) % step :: step])
        quick += binder._first is not None
    assert quick, "none was bound from its values"


@pytest.mark.parametrize("kind", ["STRING", "INT", "DOUBLE"])
@pytest.mark.parametrize("condition", FROM_TEXT)
def test_other_conditions_are_bound_from_the_text(kind: str, condition: str) -> None:
    values = VALUES[kind]
    where = condition.format(c=_columns(kind)[0], op=">")
    binder = _check(f"SELECT * FROM s WHERE {where}", kind, [{"x": x, "y": values[-2]} for x in values])
    assert binder._first is None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT :x AS x, sym FROM s WHERE qty > :x",
        "SELECT sym, count(*) AS n FROM s WHERE qty > :x GROUP BY sym HAVING count(*) > :x",
        "SELECT sym, count(*) AS n FROM s GROUP BY sym HAVING sum(qty) > :x",
        "SELECT count(*) FILTER (WHERE qty > :x) AS n FROM s",
    ],
)
def test_parameters_in_other_clauses_are_bound_from_the_text(sql: str) -> None:
    assert _check(sql, "BIGINT", [{"x": x} for x in (1, 2, -3)])._first is None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sym, sum(qty) AS total FROM s [RANGE 5 MINUTES SLIDE 1 MINUTE] WHERE qty > :x GROUP BY sym",
        "SELECT DISTINCT sym FROM s WHERE qty > :x ORDER BY sym DESC LIMIT 3",
        "SELECT s.* FROM s WHERE s.QTY > :x AND s.`size` < 5",
    ],
)
def test_other_clauses_are_reused(sql: str) -> None:
    assert _check(sql, "BIGINT", [{"x": x} for x in (1, 2, None, -3)])._first is not None


@example_settings(50)
@given(
    low=st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)),
    high=st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)),
    column=st.sampled_from(["qty", "size", "price", "small", "net", "wide"]),
    ops=st.tuples(*[st.sampled_from(["=", "<>", "<", "<=", ">", ">="])] * 2),
)
def test_any_two_bounds(low: int | None, high: int | None, column: str, ops: tuple[str, str]) -> None:
    sql = f"SELECT * FROM s WHERE {column} {ops[0]} :x AND {column} {ops[1]} :y"
    _check(sql, "BIGINT", [{"x": 1, "y": 2}, {"x": low, "y": high}])


@example_settings(50)
@given(x=st.one_of(st.none(), st.text(st.characters(codec="utf-8"), max_size=12)))
def test_any_text(x: str | None) -> None:
    _check("SELECT * FROM s WHERE sym > :x", "STRING", [{"x": "a"}, {"x": x}])
