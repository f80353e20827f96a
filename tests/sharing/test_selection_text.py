"""Selections as SQL: what a peer reads is what was written, and everything else is refused."""

from __future__ import annotations

import httpx
import pytest
from hypothesis import given

from tests.examples import example_settings
from tests.sharing.predicates import SCHEMA, clauses, predicates
from tureen.errors import TureenError, Unsupported
from tureen.language import bind_query
from tureen.predicate import Clause
from tureen.query import NamedRelation
from tureen.schema import Schema
from tureen.sharing.covering import covers
from tureen.sharing.properties import Properties, properties_of
from tureen.sharing.selection_text import MAX_TEXT, parse_selection, selection_text, shippable, shortened
from tureen.sharing.widening import widened

ODD = Schema.parse("`coord/cel/ra` DOUBLE, `select` INT, `two words` STRING, at TIMESTAMP, b BOOLEAN", time="at")


def needs(sql: str, schema: Schema) -> Properties:
    needed = properties_of(bind_query(sql, lambda name: NamedRelation(name, schema)))
    assert needed is not None
    return needed


@given(clauses(predicates(), 3))
@example_settings(150)
def test_what_is_read_is_what_was_written(clause: Clause) -> None:
    shipped = shippable(SCHEMA, Properties("s", clause, frozenset("a")))
    text = selection_text(SCHEMA, shipped)
    assert parse_selection(text, "s", SCHEMA) == shipped
    assert set(shipped.clause) <= set(clause)
    assert covers(SCHEMA, shipped, Properties("s", clause, frozenset("a")))


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("`coord/cel/ra` BETWEEN 120.0 AND 138.5", True),
        ("`coord/cel/ra` <> 1e300 AND `coord/cel/ra` > 0.1", True),
        ("`select` IN (1, 2, 7)", True),
        ("`two words` LIKE 'it''s\\_%z' OR `select` IS NULL", True),
        ("at >= TIMESTAMP '2026-01-01 00:00:00.000001'", True),
        ("b", True),
        ("`select` % 2 = 0", False),
        ("sqrt(`coord/cel/ra`) > 2", False),
    ],
)
def test_conditions_of_the_language(condition: str, kept: bool) -> None:
    needed = needs(f"SELECT at FROM s WHERE {condition}", ODD)
    shipped = shippable(ODD, needed)
    assert bool(shipped.clause) is kept
    assert shipped.columns == needed.columns | needed.clause_columns | {"at"}
    assert parse_selection(selection_text(ODD, shipped), "s", ODD) == shipped


def test_a_selection_without_columns_has_the_first_one() -> None:
    schema = Schema.parse("a INT, b INT")
    assert shippable(schema, needs("SELECT count(*) FROM s", schema)).columns == {"a"}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT at AS other FROM s",
        "SELECT count(*) FROM s",
        "SELECT DISTINCT at FROM s",
        "SELECT at FROM s LIMIT 3",
        "SELECT at FROM s [RANGE 1 MINUTE]",
        "SELECT at FROM s WHERE at < NOW",
        "SELECT at FROM s WHERE sqrt(`coord/cel/ra`) > 2",
        "SELECT x.at FROM s AS x, s AS y",
        "SELECT at, row_number() OVER (ORDER BY at) AS b FROM s",
        "DROP STREAM s",
        "SELECT",
        "",
    ],
)
def test_other_queries_are_refused(text: str) -> None:
    with pytest.raises(TureenError):
        parse_selection(text, "s", ODD)


def test_long_texts() -> None:
    values = ", ".join(str(number) for number in range(0, 40_000, 2))
    shipped = shippable(ODD, needs(f"SELECT at FROM s WHERE `select` IN ({values})", ODD))
    assert not shipped.clause, "the whole stream is received"
    with pytest.raises(Unsupported, match=str(MAX_TEXT)):
        parse_selection("SELECT at FROM s -- " + "x" * MAX_TEXT, "s", ODD)


@pytest.mark.parametrize("letter", ["a", "é", "漢"])
def test_a_text_fits_the_address_of_a_request(letter: str) -> None:
    schema = Schema.parse("w STRING")
    for count in (10, 9_000):
        values = ", ".join(f"'{letter}{number}'" for number in range(count))
        shipped = shippable(schema, needs(f"SELECT w FROM s WHERE w IN ({values})", schema))
        url = httpx.URL("http://alpha/v1/federation/flow", params={"flow": selection_text(schema, shipped)})
        assert len(url.query) < 65_536
        assert (shipped.clause == ()) == (count == 9_000)


def test_a_widened_flow_fits_the_address_of_a_request() -> None:
    schema = Schema.parse("w STRING")
    lists = [", ".join(f"'{letter}{number}'" for number in range(2_500)) for letter in "ab"]
    halves = [needs(f"SELECT w FROM s WHERE w IN ({values})", schema) for values in lists]
    assert all(shippable(schema, half).clause for half in halves)
    wide = widened(schema, *halves)
    assert wide is not None
    assert shortened(schema, wide).clause == ()
