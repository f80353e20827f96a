"""Fixtures: a stream with a column of every type."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tureen.errors import UnknownStream, nearest
from tureen.language import bind_query
from tureen.predicate import Clause
from tureen.query import NamedRelation, Query
from tureen.schema import Schema

TRADES = Schema.parse(
    "sym STRING, Venue STRING, price DOUBLE, cost DOUBLE, qty INT, lots INT, big BIGINT, ratio FLOAT, "
    "net DECIMAL(10,2), wide DECIMAL(38,10), day DATE, due DATE, ts TIMESTAMP, seen TIMESTAMP, "
    "ok BOOLEAN, hot BOOLEAN, `order` INT, `begin` INT, `end` INT, `a b` INT",
    time="ts",
)


def lookup(name: str) -> NamedRelation:
    if name.lower() != "trades":
        raise UnknownStream(f"no stream '{name}'", hint=nearest(name, ["trades"]))
    return NamedRelation("trades", TRADES)


@pytest.fixture
def bind() -> Callable[[str], Query]:
    return lambda text: bind_query(text, lookup)


@pytest.fixture
def where() -> Callable[[str], Clause]:
    return lambda condition: bind_query(f"SELECT * FROM trades WHERE {condition}", lookup).stream.clause
