"""The maximum number of alert rules: registered in bulk, all followed by one reader while rows arrive.

A rule is an equality on a key of 100,000 values and a threshold. A match's delay is the time from the row's push until
the reader receives the match. Beyond a million rules the thresholds are higher, so that the number of matches does not
grow with the number of rules: about every second row has a match.
"""

from __future__ import annotations

import math
import shutil
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import tureen
from benchmarks import machine
from benchmarks.ceiling import LIMIT, NEVER, Delays, PushSchedule, walk
from benchmarks.report import Report
from benchmarks.scale import Scale
from tureen.results.answer import Change

MILLION = 1_000_000
CHECKED = 2_000
PATIENCE = 20.0
"""Seconds to wait for matches after the last push."""


@dataclass(frozen=True)
class AlertRules:
    """The rules as a table, and their thresholds by key, to compute the expected matches."""

    table: pa.Table
    starts: npt.NDArray[np.int64] = field(repr=False)
    order: npt.NDArray[np.int64] = field(repr=False)
    least: npt.NDArray[np.float64] = field(repr=False)

    @classmethod
    def make(cls, count: int, values: int, seed: int = 5) -> AlertRules:
        """`count` rules with random keys out of `values` and random thresholds."""
        chance = np.random.default_rng(seed)
        keys = chance.integers(0, values, count, dtype=np.int32)
        least = 100 - 10 * min(1.0, MILLION / count) * (1 - chance.random(count))
        order = np.lexsort((least, keys))
        starts = np.searchsorted(keys[order], np.arange(values + 1))
        return cls(pa.table({"key": pa.array(keys), "least": pa.array(least)}), starts, order, least[order])

    def matching_rules(self, key: int, value: float) -> npt.NDArray[np.int64]:
        """The numbers of the rules that a row matches."""
        low, high = self.starts[key], self.starts[key + 1]
        return self.order[low : low + np.searchsorted(self.least[low:high], value)]

    def expected(self, rows: pa.Table) -> int:
        """The number of matches of some rows."""
        pairs = zip(rows.column("key").to_pylist(), rows.column("v").to_pylist(), strict=True)
        return sum(len(self.matching_rules(key, value)) for key, value in pairs)


def rows_of(number: int, count: int, keys: int) -> pa.Table:
    """The rows of the n-th push, with random keys and the current time."""
    chance = np.random.default_rng(number)
    moment = time.time_ns() // 1000
    return pa.table(
        {
            "key": pa.array(chance.integers(0, keys, count, dtype=np.int32)),
            "v": pa.array(100 * chance.random(count)),
            "n": pa.array(np.full(count, number)),
            "ts": pa.array(np.full(count, moment), pa.timestamp("us", tz="UTC")),
        }
    )


def measure(root: Path, report: Report, scale: Scale) -> None:
    """Increase the number of rules until matches are late."""
    needs: list[float] = []

    def probe(count: int) -> float:
        room = machine.available()
        if needs and max(needs) * count > 0.7 * room:
            report.note(f"{count:,} rules would need more than the {room / 1e9:.0f} GB of memory that are left")
            return math.inf
        before = machine.resident()
        delays = measure_rules(root / "alerts", count, report, scale)
        # With few rules, the growth of the process hides their memory.
        if count >= MILLION:
            needs.append(max(0, machine.resident() - before) / count)
        return delays.p99

    ceiling = walk(probe, LIMIT, first=scale.first_rules, most=scale.most_rules, steps=scale.steps)
    report.reach("rules", ceiling.sustained)
    over = "not reached" if ceiling.broken is None else f"{ceiling.broken:,}"
    report.note(f"{ceiling.sustained:,} alert rules held; the least number that was not: {over}")


def measure_rules(root: Path, count: int, report: Report, scale: Scale) -> Delays:
    """Register rules, verify the matches of sample rows, and measure the delays of matches while rows arrive."""
    schedule = PushSchedule.of(scale)
    rules = AlertRules.make(count, scale.keys)
    with tureen.open(root, mode="write") as soup:
        soup.create_stream("r", "key INT, v DOUBLE, n BIGINT, ts TIMESTAMP", time="ts")
        soup.push("r", rows_of(0, 1, scale.keys))
        soup.settle()
        before, began = machine.resident(), time.perf_counter()
        alerts = soup.register_many("SELECT key, v, n FROM r WHERE key = :key AND v > :least", rules.table)
        report.add(f"register {count:,} rules", time.perf_counter() - began, "s", "<= 60" if count == MILLION else "")
        since = verify(soup, alerts, rules)
        tables = [rows_of(number, schedule.rows, scale.keys) for number in range(1, schedule.pushes + 1)]
        expected = {number: rules.expected(rows) for number, rows in enumerate(tables, 1)}
        due: dict[int, float] = {}
        pusher = threading.Thread(target=_push, args=(soup, schedule, tables, due))
        pusher.start()
        late, delivered = _follow(alerts.changes(since=since, timeout=PATIENCE), due, expected, schedule)
        pusher.join()
        grown = (machine.resident() - before) / 1e9
    shutil.rmtree(root)
    delays = Delays.of(late) if sum(delivered.values()) >= sum(expected.values()) else NEVER
    assert delays is NEVER or delivered == expected, "some matches were not delivered, or delivered twice"
    report.add(f"memory for {count:,} rules", grown, "GB", "<= 1" if count == MILLION else "")
    report.add(
        f"matches told of {schedule.rows * schedule.pushes:,} rows, {count:,} rules", sum(delivered.values()), ""
    )
    report.add(f"from push to a match in hand, {count:,} rules, p50", delays.p50, "s")
    report.add(
        f"from push to a match in hand, {count:,} rules, p99", delays.p99, "s", "<= 2" if count == MILLION else ""
    )
    return delays


def verify(soup: tureen.Soup, alerts: tureen.QueryTemplate, rules: AlertRules) -> str:
    """Check the matches of some rows against numpy; return the position after them."""
    since = alerts[0].invoke().position
    # Rows with a rule's key and near its threshold, so that even a few rules have matches.
    sampled = rules.table.take(pa.array(np.random.default_rng(0).integers(0, len(rules.table), CHECKED)))
    values = sampled.column("least").to_numpy() + np.tile([-0.01, 0.0, 0.01, 5.0], CHECKED // 4)
    rows = rows_of(0, CHECKED, 1).set_column(0, "key", sampled.column("key")).set_column(1, "v", pa.array(values))
    pairs = list(zip(rows.column("key").to_pylist(), rows.column("v").to_pylist(), strict=True))
    expected = sorted((int(rule), value) for key, value in pairs for rule in rules.matching_rules(key, value))
    soup.wait(soup.push("r", rows), timeout=120)
    changes = list(islice(alerts.changes(since=since, timeout=PATIENCE), len(expected)))
    matches = sorted((int(change.query.rpartition(".")[2]), change.row["v"]) for change in changes)
    assert matches == expected, "matches differ from numpy's"
    return str(changes[-1].position)


def _push(soup: tureen.Soup, schedule: PushSchedule, tables: Sequence[pa.Table], due: dict[int, float]) -> None:
    def push(number: int, moment: float) -> None:
        due[number] = moment
        soup.push("r", tables[number - 1])

    schedule.play(push)


def _follow(
    changes: Iterator[Change], due: Mapping[int, float], expected: Mapping[int, int], schedule: PushSchedule
) -> tuple[list[float], dict[int, int]]:
    """The delay of each match after the warm-up, and the number of matches of each push."""
    late, delivered, remaining = [], dict.fromkeys(expected, 0), sum(expected.values())
    deadline = time.perf_counter() + schedule.seconds + PATIENCE
    for change in changes if remaining else ():
        number, now = change.row["n"], time.perf_counter()
        delivered[number] += 1
        if number > schedule.warm:
            late.append(now - due[number])
        remaining -= 1
        if not remaining or now > deadline:
            break
    return late, delivered
