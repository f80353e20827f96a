"""(e) A million alert rules, followed while rows arrive, and how late a match is.

A rule is an equality on a key of 100,000 values and a threshold. Rows arrive at a steady rate; a reader follows all
rules at once, and a match's lateness is the time from the row's push to the reader's hands.
"""

from __future__ import annotations

import resource
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

import tureen
from benchmarks.report import Report

RULES = 1_000_000
KEYS = 100_000
RATE = 10_000
SECONDS = 20
PUSH_EVERY = 0.1


def _rules(seed: int = 5) -> pa.Table:
    chance = np.random.default_rng(seed)
    keys = pa.array(chance.integers(0, KEYS, RULES, dtype=np.int32))
    return pa.table({"key": keys, "least": pa.array(90 + 10 * chance.random(RULES))})


def _rows(number: int, count: int) -> pa.Table:
    chance = np.random.default_rng(number)
    moment = time.time_ns() // 1000
    return pa.table(
        {
            "key": pa.array(chance.integers(0, KEYS, count, dtype=np.int32)),
            "v": pa.array(100 * chance.random(count)),
            "n": pa.array(np.full(count, number)),
            "ts": pa.array(np.full(count, moment), pa.timestamp("us", tz="UTC")),
        }
    )


def measure(root: Path, report: Report) -> None:
    """Register, check that every match is told, and measure how late it is."""
    with tureen.open(root / "alerts", mode="write") as soup:
        soup.create_stream("r", "key INT, v DOUBLE, n BIGINT, ts TIMESTAMP", time="ts")
        soup.wait(soup.push("r", _rows(0, 1)), timeout=120)
        rules = _rules()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began = time.perf_counter()
        alerts = soup.register_many("SELECT key, v, n FROM r WHERE key = :key AND v > :least", rules)
        report.add(f"register {RULES:,} rules", time.perf_counter() - began, "s", "<= 60")
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e6
        report.add("memory for it", grown, "GB", "<= 1")
        since = alerts[0].invoke().position
        pushed: dict[int, float] = {}
        tables: list[pa.Table] = []
        pusher = threading.Thread(target=_push, args=(soup, pushed, tables))
        pusher.start()
        late, told = _follow(alerts.changes(since=since, timeout=5), pushed)
        pusher.join()
        assert told == _expected(rules, pa.concat_tables(tables)), "some matches were not told, or told twice"
        report.add(f"matches told of {len(tables) * int(RATE * PUSH_EVERY):,} rows", sum(told.values()), "")
        report.add("rows arrived", len(tables) * RATE * PUSH_EVERY / SECONDS, "rows/s")
        report.add("from push to a match in hand, p50", statistics.median(late), "s")
        report.add("from push to a match in hand, p99", statistics.quantiles(late, n=100)[-1], "s", "<= 2")


def _push(soup: tureen.Soup, pushed: dict[int, float], tables: list[pa.Table]) -> None:
    began = time.perf_counter()
    for number in range(1, int(SECONDS / PUSH_EVERY) + 1):
        rows = _rows(number, int(RATE * PUSH_EVERY))
        tables.append(rows)
        pushed[number] = time.perf_counter()
        soup.push("r", rows)
        time.sleep(max(0.0, began + number * PUSH_EVERY - time.perf_counter()))


def _follow(changes: Iterator[object], pushed: dict[int, float]) -> tuple[list[float], dict[int, int]]:
    """How late each match was, and how many there were of each push."""
    late, told = [], dict.fromkeys(range(1, int(SECONDS / PUSH_EVERY) + 1), 0)
    for change in changes:
        number = change.row["n"]  # type: ignore[attr-defined]
        late.append(time.perf_counter() - pushed[number])
        told[number] += 1
    return late, told


def _expected(rules: pa.Table, rows: pa.Table) -> dict[int, int]:
    """The number of matches of each push, by sorting and searching the thresholds of each key."""
    keys, least = rules.column("key").to_numpy(), rules.column("least").to_numpy()
    order = np.lexsort((least, keys))
    starts = np.searchsorted(keys[order], np.arange(KEYS + 1))
    least = least[order]
    found: dict[int, int] = {}
    triples = zip(*(rows.column(name).to_pylist() for name in ("key", "v", "n")), strict=True)
    for key, value, number in triples:
        low, high = starts[key], starts[key + 1]
        found[number] = found.get(number, 0) + int(np.searchsorted(least[low:high], value))
    return found
