"""A tour in about a minute: trades stream in, queries are registered before, during and after, and invoked."""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tureen.embedded import Soup, open
from tureen.standing import StandingQuery

SYMBOLS = {"AAPL": 230.0, "MSFT": 420.0, "NVDA": 140.0, "IBM": 235.0, "ORCL": 180.0, "TSLA": 330.0}
ROWS_PER_BATCH = 2_000
BATCHES = 20


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


def show(query: StandingQuery, meaning: str, wait_for: str) -> None:
    """Invoke a query and print what came."""
    began = time.perf_counter()
    query.invoke(wait_for=wait_for)
    waited = time.perf_counter() - began
    began = time.perf_counter()
    answer = query.invoke()
    took = (time.perf_counter() - began) * 1000
    print(f"\n  {query.name}: {meaning}")
    print(f"    {query.sql}")
    print(f"    {len(answer):,} rows in {took:.2f} ms (after {waited:.1f} s for the last push to be in)")
    for row in answer.table.slice(max(0, len(answer) - 2)).to_pylist():
        print("      " + ", ".join(f"{name}={value}" for name, value in row.items()))


def tour(soup: Soup) -> None:
    """Run the tour on an empty pot."""
    soup.create_stream("trades", "sym STRING, price DOUBLE, qty INT, ts TIMESTAMP", time="ts", retain="1 day")
    print("A stream `trades` is made. Spark starts in the background; rows are durable before it is up.")
    block_trades = soup.register(
        "SELECT sym, price, qty FROM trades WHERE qty >= 500 BEGIN NOW - INTERVAL '10' MINUTE END NOW",
        name="block_trades",
    )
    print("`block_trades` is registered before there is any data.")

    feed = trades(random.Random(7))
    at = soup.push("trades", next(feed))
    print(
        f"The first {ROWS_PER_BATCH:,} trades are pushed; waiting for Spark (some seconds, once) ...",
        flush=True,
    )
    soup.wait(at, timeout=300)
    began = time.perf_counter()
    during: list[StandingQuery] = []
    for number in range(1, BATCHES):
        at = soup.push("trades", next(feed))
        if number == BATCHES // 2:
            during = [
                soup.register(
                    f"SELECT * FROM trades WHERE sym = '{symbol}' AND price > {price} BEGIN NOW - 1 HOUR END NOW",
                    name=f"watch_{symbol.lower()}",
                )
                for symbol, price in SYMBOLS.items()
            ]
            print(f"{len(during)} more queries are registered while trades stream in.")
        time.sleep(max(0.0, began + number * 0.5 - time.perf_counter()))
    print(f"{ROWS_PER_BATCH * BATCHES:,} trades have been pushed.")
    last = soup.register(
        "SELECT sym, price FROM trades WHERE sym LIKE '%A%' AND price NOT BETWEEN 150 AND 300"
        " BEGIN NOW - 500 ROWS END NOW",
        name="late_comer",
    )
    print("`late_comer` is registered after the data: it sees them all the same.\n\nThe answers:")
    show(block_trades, "registered before the data", at)
    show(during[0], "registered in the middle, and answers over all of it", at)
    show(last, "registered after the data, over the last 500 trades", at)
    status = soup.status()
    stream = status["streams"]["trades"]
    print(
        f"\n{status['queries']} queries stand over {stream['rows']:,} rows in "
        f"{stream['runs']} indexed runs and a tail of {stream['tail_rows']:,} rows."
    )


def main() -> int:
    """Run the tour in a temporary pot."""
    root = Path(tempfile.mkdtemp(prefix="tureen-demo-"))
    try:
        with open(root / "pot") as soup:
            tour(soup)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    print("\nNext: the README shows how to do this from your own code.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
