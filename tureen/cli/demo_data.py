"""The material of the tour: trades as they might come, the queries over them, and rules for alerts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

SYMBOLS = {"AAPL": 230.0, "MSFT": 420.0, "NVDA": 140.0, "IBM": 235.0, "ORCL": 180.0, "TSLA": 330.0}
ROWS_PER_BATCH = 2_000
RULES = 10_000

SCHEMA = "sym STRING, price DOUBLE, qty INT, ts TIMESTAMP"

BLOCK_TRADES = "SELECT sym, price, qty FROM trades WHERE qty >= 500 BEGIN NOW - INTERVAL '10' MINUTE END NOW"
ALERTS = "SELECT sym, price, ts FROM trades WHERE sym = :sym AND price BETWEEN :low AND :high AND qty > :qty"
LATE_COMER = (
    "SELECT sym, count(*) AS trades, max(price) AS highest FROM trades WHERE qty > 20"
    " GROUP BY sym ORDER BY trades DESC BEGIN NOW - 10 MINUTES END NOW"
)


def trades(chance: random.Random) -> Iterator[list[dict[str, Any]]]:
    """Batches of trades: each symbol's price is a random walk, quantities have a long tail."""
    prices = dict(SYMBOLS)
    while True:
        batch = []
        for _ in range(ROWS_PER_BATCH):
            symbol = chance.choice(list(prices))
            prices[symbol] *= 1 + chance.gauss(0, 0.0004)
            batch.append(
                {
                    "sym": symbol,
                    "price": round(prices[symbol], 2),
                    "qty": int(chance.paretovariate(1.2) * 10),
                    "ts": datetime.now(UTC),
                }
            )
        yield batch


def rules(chance: random.Random) -> Iterator[dict[str, Any]]:
    """Rules for alerts: a symbol, a narrow band of prices, and a least quantity."""
    for _ in range(RULES):
        symbol = chance.choice(list(SYMBOLS))
        low = round(SYMBOLS[symbol] * chance.uniform(0.9, 1.1), 2)
        yield {"sym": symbol, "low": low, "high": round(low + 0.05, 2), "qty": chance.choice([500, 1_000, 2_000])}
