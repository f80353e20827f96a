"""The data of the tour: random trades, queries over them, and alert rules."""

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

COMPANIES = [
    {"sym": "AAPL", "sector": "hardware"},
    {"sym": "MSFT", "sector": "software"},
    {"sym": "NVDA", "sector": "hardware"},
    {"sym": "IBM", "sector": "services"},
    {"sym": "ORCL", "sector": "software"},
]
"""A table without TSLA, so that the LEFT JOIN has a row of NULLs."""

BY_SECTOR = (
    "SELECT c.sector, count(*) AS trades, sum(t.qty) AS qty FROM trades t LEFT JOIN companies c ON t.sym = c.sym"
    " GROUP BY c.sector BEGIN NOW - 10 MINUTES END NOW"
)


def trades(generator: random.Random) -> Iterator[list[dict[str, Any]]]:
    """Generate batches of trades: prices are random walks, quantities have a long tail."""
    prices = dict(SYMBOLS)
    while True:
        batch = []
        for _ in range(ROWS_PER_BATCH):
            symbol = generator.choice(list(prices))
            prices[symbol] *= 1 + generator.gauss(0, 0.0004)
            batch.append(
                {
                    "sym": symbol,
                    "price": round(prices[symbol], 2),
                    "qty": int(generator.paretovariate(1.2) * 10),
                    "ts": datetime.now(UTC),
                }
            )
        yield batch


def rules(generator: random.Random) -> Iterator[dict[str, Any]]:
    """Generate alert rules: a symbol, a narrow range of prices, and a minimum quantity."""
    for _ in range(RULES):
        symbol = generator.choice(list(SYMBOLS))
        low = round(SYMBOLS[symbol] * generator.uniform(0.9, 1.1), 2)
        yield {"sym": symbol, "low": low, "high": round(low + 0.05, 2), "qty": generator.choice([500, 1_000, 2_000])}
