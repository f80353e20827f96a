"""A stream of trades, at one of several servers and at a twin that has everything."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.federation.nodes import Nodes
from tureen.position import Position
from tureen.results.answer import Answer
from tureen.testing.manual_engine import ManualEngine

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TRADES = "sym STRING, price DOUBLE, qty INT, ts TIMESTAMP"


def trades(*prices: float) -> list[dict[str, Any]]:
    return [
        {"sym": "ab"[number % 2], "price": price, "qty": number, "ts": NOW - timedelta(seconds=100 - number)}
        for number, price in enumerate(prices)
    ]


def push(nodes: Nodes, twin: ManualEngine, rows: list[Any]) -> None:
    nodes["A"].engine.append("trades", rows)
    twin.append("trades", rows)
    nodes.receive()


def assert_same(answer: Answer, expected: Answer) -> None:
    assert answer.table.equals(expected.table)
    assert (answer.window, answer.complete, answer.note) == (expected.window, expected.complete, None)


def new_prices(engine: ManualEngine, handle: str, since: str) -> tuple[list[float], str]:
    new = engine.invoker.new_rows(handle, Position.parse(since))
    return new.rows["price"].to_pylist(), new.position()
