"""Texts about a query have the names that its writer knows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tureen.language import bind_query
from tureen.query import NamedRelation, Query
from tureen.results.query_names import QueryNames
from tureen.schema import Schema
from tureen.testing.manual_engine import ManualEngine

SCHEMA = "sym STRING, price DOUBLE, `odd name` INT, ts TIMESTAMP"
INTERNAL = re.compile(r'_\d+_|\bout\d|_key\d|_agg\d|\b_now\b|make_timestamp|\\"')
"""Names of columns of joined rows, of blocks and of groups, and what only DuckDB needs."""

QUERIES = [
    "SELECT upper(q.sym) AS u, count(*) FROM trades t JOIN quotes q ON t.sym = q.sym AND t.price + q.price > 3"
    " GROUP BY upper(q.sym) HAVING count(*) > 1",
    "SELECT sym FROM trades WHERE abs(price) < 3 AND ts > NOW - INTERVAL 1 HOUR AND `odd name` % 2 = 1",
    "SELECT y.k, n FROM (SELECT sym AS k, count(*) AS n FROM trades GROUP BY sym) y JOIN quotes ON y.k = quotes.sym"
    " AND n < quotes.price",
    "SELECT a.sym FROM trades a LEFT JOIN trades b ON a.sym = b.sym AND a.price < b.price + 2 WHERE b.sym IS NULL",
    "SELECT sym FROM trades WHERE price > (SELECT avg(price) FROM quotes)",
]


def names_of(sql: str) -> tuple[Query, QueryNames]:
    query = bind_query(sql, lambda name: NamedRelation(name, Schema.parse(SCHEMA, time="ts")))
    return query, QueryNames(query)


@pytest.mark.parametrize(
    ("sql", "join", "keys"),
    [
        (
            QUERIES[0],
            "(t, q WHERE q.sym = t.sym AND (t.price + q.price) > 3.0)",
            ["upper(q.sym)"],
        ),
        ("SELECT `odd name`, count(*) FROM trades GROUP BY 1", "trades", ["`odd name`"]),
        (
            "SELECT y.k, count(*) FROM (SELECT sym AS k FROM trades) y JOIN quotes ON y.k = quotes.sym GROUP BY y.k",
            "(y, quotes WHERE quotes.sym = y.k)",
            ["y.k"],
        ),
        (
            "SELECT a.sym, count(*) FROM trades a LEFT JOIN trades b ON a.sym = b.sym GROUP BY a.sym",
            "(a LEFT JOIN b ON b.sym = a.sym)",
            ["a.sym"],
        ),
    ],
)
def test_joins_and_keys_have_the_names_of_the_text(sql: str, join: str, keys: list[str]) -> None:
    query, names = names_of(sql)
    assert names.tree(query.source) == join
    assert query.grouping is not None
    assert list(map(names.expression, query.grouping.keys)) == keys


def test_columns_of_groups_are_what_they_are_computed_from() -> None:
    query, names = names_of("SELECT sym FROM trades GROUP BY sym HAVING sum(DISTINCT price * 2) > 3 OR sym = 'a'")
    assert query.grouping is not None
    assert query.grouping.having is not None
    assert names.expression(query.grouping.having) == "(sum(DISTINCT price * 2.0) > 3.0) OR (sym = 'a')"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[ManualEngine]:
    opened = ManualEngine(tmp_path)
    for stream in ("trades", "quotes"):
        opened.create_stream(stream, SCHEMA, time="ts")
        opened.push(stream, [{"sym": "IBM", "price": 1.0, "odd name": 1, "ts": datetime.now(UTC)}])
    yield opened
    opened.close()


def test_a_plan_has_no_internal_names(engine: ManualEngine) -> None:
    for sql in QUERIES:
        plan = engine.invoker.explain(engine.register(sql))
        shown = json.dumps({key: value for key, value in plan.items() if key not in ("sql", "shape")})
        assert INTERNAL.search(shown) is None, shown


def test_conditions_of_one_input_are_shown_as_they_were_written(engine: ManualEngine) -> None:
    plan = engine.invoker.explain(engine.register(QUERIES[1]))
    assert plan["factors"] == ["(`odd name` % 2) = 1", "abs(price) < 3.0"]
    assert plan["at_now"] == "ts > (NOW - INTERVAL '1' HOUR)"
