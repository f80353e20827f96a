"""The events of NEXMark: persons, the auctions that they open, and the bids on these, in the usual proportions.

Of 50 events, one is a person, three are auctions and 46 are bids (Tucker et al., NEXMark, 2002; the generator of
Apache Beam). Half of all bids are on a few hot auctions. The same seed gives the same events.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

START = 1_767_225_600_000_000  # 2026-01-01, in microseconds
PERSONS, AUCTIONS, EVENTS = 1, 3, 50
"""Of so many events, the first are persons, the next auctions, and all others bids."""

FIRST_ID = 1_000
RECENT = 100
"""Tuples refer to one of so many latest persons or auctions, or to the hot one among them."""

SCHEMAS = {
    "person": "id BIGINT, name STRING, city STRING, state STRING, ts TIMESTAMP",
    "auction": "id BIGINT, item STRING, initial BIGINT, category INT, seller BIGINT, expires TIMESTAMP, ts TIMESTAMP",
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, ts TIMESTAMP",
}
SIDE_SCHEMA = "key BIGINT, value STRING"
SIDE_ROWS = 10_000
SIDE = pa.table({"key": range(SIDE_ROWS), "value": [f"side {key}" for key in range(SIDE_ROWS)]})
"""The table that q13 joins bids to."""

_STATES = np.array(["AZ", "CA", "ID", "OR", "WA", "WY"])
_CITIES = np.array(["Phoenix", "Los Angeles", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne"])
_NAMES = np.array(["Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"])
_CHANNELS = np.array(["Google", "Facebook", "Baidu", "Apple", "channel-1", "channel-2", "channel-3"])

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class NexmarkEvents:
    """The rows of each stream, in order of time."""

    rows: dict[str, pa.Table]
    now: int
    """The time of the last event."""

    def pushes(self, count: int) -> list[dict[str, pa.Table]]:
        """The same rows in a number of pushes: the k-th part of each stream, for each k."""
        parts: list[dict[str, pa.Table]] = []
        for part in range(count):
            bounds = {
                name: (len(table) * part // count, len(table) * (part + 1) // count)
                for name, table in self.rows.items()
            }
            parts.append({name: self.rows[name].slice(low, high - low) for name, (low, high) in bounds.items()})
        return parts


def nexmark_events(count: int, seconds: float, seed: int = 1) -> NexmarkEvents:
    """Events that are evenly distributed over some seconds."""
    chance = np.random.default_rng(seed)
    numbers = np.arange(count)
    times = START + (numbers * (seconds * 1e6 / count)).astype(np.int64)
    turn = numbers % EVENTS
    is_person, is_bid = turn < PERSONS, turn >= PERSONS + AUCTIONS
    is_auction = ~is_person & ~is_bid
    persons, auctions = np.cumsum(is_person, dtype=np.int64), np.cumsum(is_auction, dtype=np.int64)
    rows = {
        "person": _persons(chance, times[is_person]),
        "auction": _auctions(chance, times[is_auction], persons[is_auction]),
        "bid": _bids(chance, times[is_bid], auctions[is_bid], persons[is_bid]),
    }
    return NexmarkEvents(rows, int(times[-1]))


def _persons(chance: np.random.Generator, times: Numbers) -> pa.Table:
    size = len(times)
    columns = {
        "id": FIRST_ID + np.arange(size),
        "name": chance.choice(_NAMES, size),
        "city": chance.choice(_CITIES, size),
        "state": chance.choice(_STATES, size),
        "ts": _moments(times),
    }
    return pa.table(columns)


def _auctions(chance: np.random.Generator, times: Numbers, persons: Numbers) -> pa.Table:
    size = len(times)
    columns = {
        "id": FIRST_ID + np.arange(size),
        "item": np.char.add("item-", chance.integers(0, 1000, size).astype(str)),
        "initial": _prices(chance, size),
        "category": chance.integers(10, 15, size).astype(np.int32),
        "seller": _recent(chance, persons),
        "expires": _moments(times + chance.integers(1, 20_000_000, size)),
        "ts": _moments(times),
    }
    return pa.table(columns)


def _bids(chance: np.random.Generator, times: Numbers, auctions: Numbers, persons: Numbers) -> pa.Table:
    size = len(times)
    folders = (np.char.add("/", chance.integers(0, limit, size).astype(str)) for limit in (5, 50, 500))
    url = np.full(size, "https://www.nexmark.com")
    for folder in folders:
        url = np.char.add(url, folder)
    columns = {
        "auction": _recent(chance, auctions),
        "bidder": _recent(chance, persons),
        "price": _prices(chance, size),
        "channel": chance.choice(_CHANNELS, size),
        "url": np.char.add(url, "/item.htm?query=1"),
        "ts": _moments(times),
    }
    return pa.table(columns)


def _recent(chance: np.random.Generator, known: Numbers) -> Numbers:
    """The id of one of the latest of `known` objects; half of the time the hot one."""
    last = known - 1
    back = np.minimum(chance.integers(0, RECENT, len(known)), last)
    is_hot = chance.random(len(known)) < 0.5
    return FIRST_ID + np.where(is_hot, last // RECENT * RECENT, last - back)


def _prices(chance: np.random.Generator, size: int) -> Numbers:
    return (100 * 10 ** (6 * chance.random(size))).astype(np.int64)


def _moments(micros: Numbers) -> pa.Array:
    return pa.array(micros).cast(pa.timestamp("us", "UTC"))
