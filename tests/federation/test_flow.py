"""Flows as text: what is sent means exactly the factors that it contains, and nothing else can be asked for."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.examples import example_settings
from tureen.errors import TureenError, UnknownColumn, Unsupported
from tureen.federation.flow import FlowSelection, flow_text, parse_flow
from tureen.language import bind_query
from tureen.predicate import Clause, may_raise
from tureen.query import NamedRelation
from tureen.schema import Schema
from tureen.sharing.properties import Properties
from tureen.testing.strategies import wide_schema
from tureen.testing.text_strategies import conditions

SCHEMA = Schema(wide_schema().columns, None)

RELATION = NamedRelation("s", SCHEMA)
TRADES = NamedRelation("s", Schema.parse("sym STRING, price DOUBLE, ts TIMESTAMP", "ts"))


def parsed(text: str) -> FlowSelection:
    return parse_flow(text, lambda _: RELATION)


def clause_of(condition: str) -> Clause:
    return bind_query(f"SELECT * FROM s WHERE {condition}", lambda _: RELATION).stream.clause


def test_texts_mean_the_factors_that_can_be_sent() -> None:
    left_out: list[bool] = []

    @example_settings(150)
    @given(conditions(SCHEMA))
    def check(condition: str) -> None:
        try:
            clause = clause_of(condition)
        except Unsupported:
            return  # decimals with too many digits
        flow = parsed(flow_text(SCHEMA, "s", None, clause))
        assert set(flow.clause) <= set(clause)
        assert not any(map(may_raise, flow.clause))
        assert flow.columns == tuple(SCHEMA.names)
        left_out.append(len(flow.clause) < sum(not may_raise(factor) for factor in clause))

    check()
    # Those with constants that cannot be written as they are.
    assert sum(left_out) < len(left_out) / 5


def test_names_are_quoted() -> None:
    schema = Schema.parse("`coord/cel/ra` DOUBLE, `select` STRING, `ünï` BOOLEAN, ts TIMESTAMP", "ts")
    relation = NamedRelation("a b", schema)
    condition = "`coord/cel/ra` BETWEEN 120.0 AND 138.0 AND (`select` = 'it''s' OR `ünï`)"
    clause = bind_query(f"SELECT * FROM `a b` WHERE {condition}", lambda _: relation).stream.clause
    text = flow_text(schema, "a b", ["select"], clause)
    properties = Properties("a b", clause, frozenset({"select", "ts"}))
    assert parse_flow(text, lambda _: relation) == FlowSelection(properties, ("select", "ts"))


def test_long_conditions_are_left_out() -> None:
    members = ", ".join(str(number * 7) for number in range(20_000))
    clause = bind_query(f"SELECT * FROM s WHERE price > 1 AND price IN ({members})", lambda _: TRADES).stream.clause
    both = bind_query(f"SELECT * FROM s WHERE price > 1 AND sym IN ('{members}', 'x')", lambda _: TRADES).stream.clause
    assert flow_text(TRADES.schema, "s", None, clause) == "SELECT * FROM `s`"
    assert flow_text(TRADES.schema, "s", None, both) == "SELECT * FROM `s` WHERE (`price` > 1.0)"


def test_a_flow_without_columns_has_the_time() -> None:
    untimed, timed = Schema.parse("a INT, b INT"), Schema.parse("a INT, ts TIMESTAMP", "ts")
    assert flow_text(timed, "s", [], ()) == "SELECT `ts` FROM `s`"
    assert flow_text(untimed, "s", [], ()) == "SELECT `a` FROM `s`"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT DISTINCT * FROM s",
        "SELECT * FROM s ORDER BY ts",
        "SELECT * FROM (SELECT * FROM s) t",
        "SELECT * FROM s WHERE ts > NOW - INTERVAL '1' HOUR",
        "SELECT row_number() OVER (ORDER BY ts) FROM s",
        "SELECT * FROM s [TUMBLE 1 HOUR]",
        "SELECT * FROM s, s AS t",
        "SELECT * FROM s WHERE EXISTS (SELECT 1 FROM s t)",
    ],
)
def test_other_queries_are_refused(text: str) -> None:
    with pytest.raises(TureenError):
        parse_flow(text, lambda _: TRADES)


def test_conditions_that_may_fail_are_refused() -> None:
    with pytest.raises(Unsupported, match="conditions that cannot fail"):
        parse_flow("SELECT * FROM s WHERE CAST(sym AS INT) > 1", lambda _: TRADES)
    with pytest.raises(UnknownColumn):
        parse_flow("SELECT nothing FROM s", lambda _: TRADES)
