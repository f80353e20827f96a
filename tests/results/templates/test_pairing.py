"""The compiled index of a template's values finds the same queries as a join of rows and values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.pot.catalog import Catalog
from tureen.pot.streams import create_stream
from tureen.results.invoke import Invoker
from tureen.results.templates.pairing import IndexedPairing, JoinedPairing, Pairing
from tureen.schema import Schema
from tureen.soup.templates import Templates
from tureen.stems.intake import to_batch

BASE = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = Schema.parse("i INT, l BIGINT, d DOUBLE, f FLOAT, s STRING, b BOOLEAN, day DATE, ts TIMESTAMP", "ts")
FEW = st.integers(-2, 3)
WHOLE = st.one_of(FEW, st.sampled_from([2**31 - 1, -(2**31)]))
LONG = st.one_of(FEW, st.sampled_from([2**63 - 1, -(2**63), 2**53 + 1]))
FLOATS = st.one_of(FEW.map(float), st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 0.5, 5e-324]))
TEXTS = st.sampled_from(["", "a", "ab", "b", "é", "a ", "z\U0001f600"])
TIMES = FEW.map(lambda seconds: BASE + timedelta(seconds=seconds))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": WHOLE,
    "l": LONG,
    "d": FLOATS,
    "f": FEW.map(float),
    "s": TEXTS,
    "b": st.booleans(),
    "day": st.integers(1, 4).map(lambda day: date(2026, 1, day)),
    "ts": TIMES,
}
ROWS = st.fixed_dictionaries({name: values if name == "ts" else st.none() | values for name, values in VALUES.items()})
COMPARED = {"i": "il", "l": "il", "d": "dil", "f": "dif", "s": "s", "b": "b", "day": ["day"], "ts": ["ts"]}
"""The columns whose values a column may be compared with."""
ARROW = {column.name: column.type.arrow for column in SCHEMA.columns}


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Templates]:
    catalog = Catalog(Path(tmp_path_factory.mktemp("pot")), create=True)
    with catalog.write() as tx:
        create_stream(tx, "s", SCHEMA, clock="wall", retain=None, source=None)
    yield Templates(catalog, Invoker(catalog))
    catalog.close()


@st.composite
def parametrized_queries(draw: st.DrawFn) -> tuple[str, pa.Table]:
    """A query of comparisons with parameters, and the parameter values."""
    count, rows = draw(st.integers(1, 3)), draw(st.integers(1, 40))
    parts, columns = [], {}
    for number in range(count):
        name = draw(st.sampled_from(list(VALUES)))
        kind = draw(st.sampled_from(COMPARED[name]))
        op = draw(st.sampled_from(["=", "=", "<", "<=", ">", ">="]))
        parameter_first = draw(st.booleans())
        parts.append(f":p{number} {op} {name}" if parameter_first else f"{name} {op} :p{number}")
        values = draw(st.lists(st.none() | VALUES[kind], min_size=rows, max_size=rows))
        columns[f"p{number}"] = pa.array(values, ARROW[kind])
    common = draw(st.sampled_from(["", " AND i IS NOT NULL", " AND l % 2 = 0"]))
    return f"SELECT i FROM s WHERE {' AND '.join(parts)}{common}", pa.table(columns)


def pairing_of(templates: Templates, sql: str, params: pa.Table) -> Pairing:
    handle = templates.register(sql, params, None)
    try:
        return templates._pairing(templates.members(handle))
    finally:
        templates.drop(handle)


@example_settings(50)
@given(parametrized_queries(), st.lists(ROWS, min_size=1, max_size=30))
def test_index_and_join_agree(templates: Templates, query: tuple[str, pa.Table], rows: list[dict[str, Any]]) -> None:
    sql, params = query
    indexed = pairing_of(templates, sql, params)
    assert isinstance(indexed, IndexedPairing), sql
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tureen.soup.templates.can_compile", lambda *_: False)
        joined = pairing_of(templates, sql, params)
    assert isinstance(joined, JoinedPairing)
    common = [
        row
        for row in rows
        if ("IS NOT NULL" not in sql or row["i"] is not None) and ("%" not in sql or (row["l"] or 1) % 2 == 0)
    ]
    table = pa.Table.from_batches([to_batch(SCHEMA, common)], SCHEMA.arrow)
    ours, theirs = indexed.pairs(table), joined.pairs(table)
    assert [part.tolist() for part in ours] == [part.tolist() for part in theirs], sql


@pytest.mark.parametrize(
    ("where", "params"),
    [
        ("s = :p", {"p": ["a\0", "a"]}),
        ("s <> :p", {"p": ["a"]}),
        ("l + :p > 3", {"p": [1]}),
        ("s = :p OR i > 3", {"p": ["a"]}),
        ("i > :p", {"p": [1.5]}),
    ],
)
def test_other_predicates_are_joined(templates: Templates, where: str, params: dict[str, Any]) -> None:
    assert isinstance(pairing_of(templates, f"SELECT i FROM s WHERE {where}", pa.table(params)), JoinedPairing)
