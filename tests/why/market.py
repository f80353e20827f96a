"""Trades and quotes up to noon, and questions about them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tureen.testing.manual_engine import ManualEngine
from tureen.why.asking import explain_tuples
from tureen.why.explanation import DEFAULT_LIMIT, Explanation

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


WINDOW = " BEGIN NOW - 10 MINUTES END NOW"


JOIN = "FROM trades t JOIN quotes q ON t.sym = q.sym"


def trade(number: int, sym: str | None, price: float | None, qty: int, minutes: float) -> dict[str, Any]:
    """A trade some minutes before noon."""
    return {"id": number, "sym": sym, "price": price, "qty": qty, "ts": NOON - timedelta(minutes=minutes)}


def quote(number: int, sym: str, bid: float, minutes: float) -> dict[str, Any]:
    """A quote some minutes before noon."""
    return {"id": number, "sym": sym, "bid": bid, "ts": NOON - timedelta(minutes=minutes)}


def ask(engine: ManualEngine, sql: str, condition: str, limit: int = DEFAULT_LIMIT, **options: Any) -> Explanation:
    """Why tuples are in the answer of a query that is registered for it."""
    handle = engine.register(sql, materialize=False)
    return explain_tuples(engine.invoker, handle, condition, options.get("now"), limit)
