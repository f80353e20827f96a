"""How many alert rules are held: registered in bulk, all followed by one reader while rows arrive.

A rule is an equality on a key of 100,000 values and a threshold. A match's delay is the time from the row's push to the
reader's hands. There are as many rules as asked for, but not more matches: beyond a million rules their thresholds are
higher, so that a row still matches every other time, since nobody reads more alerts only because there are more rules.
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
from benchmarks.ceiling import LIMIT, NEVER, Freshness, Pace, walk
from benchmarks.report import Report
from benchmarks.scale import Scale
from tureen.results.answer import Change

FULL = 1_000_000
CHECKED = 2_000
PATIENCE = 20.0
"""So many seconds after the last push nobody waits any longer."""


@dataclass(frozen=True)
class Rules:
    """The rules as a table, and their thresholds by key, for what numpy expects."""

    table: pa.Table
    starts: npt.NDArray[np.int64] = field(repr=False)
    order: npt.NDArray[np.int64] = field(repr=False)
    least: npt.NDArray[np.float64] = field(repr=False)

    @classmethod
    def make(cls, count: int, values: int, seed: int = 5) -> Rules:
        """So many rules, their keys random ones of so many values, their thresholds random."""
        chance = np.random.default_rng(seed)
        keys = chance.integers(0, values, count, dtype=np.int32)
        least = 100 - 10 * min(1.0, FULL / count) * (1 - chance.random(count))
        order = np.lexsort((least, keys))
        starts = np.searchsorted(keys[order], np.arange(values + 1))
        return cls(pa.table({"key": pa.array(keys), "least": pa.array(least)}), starts, order, least[order])

    def matched(self, key: int, value: float) -> npt.NDArray[np.int64]:
        """The numbers of the rules that a row matches."""
        low, high = self.starts[key], self.starts[key + 1]
        return self.order[low : low + np.searchsorted(self.least[low:high], value)]

    def expected(self, rows: pa.Table) -> int:
        """How many matches some rows have."""
        pairs = zip(rows.column("key").to_pylist(), rows.column("v").to_pylist(), strict=True)
        return sum(len(self.matched(key, value)) for key, value in pairs)


def rows_of(number: int, count: int, keys: int) -> pa.Table:
    """The rows of the n-th push, their keys random ones of so many values, made now."""
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
    """Walk the number of rules up until matches come late."""
    needs: list[float] = []

    def probe(count: int) -> float:
        room = machine.available()
        if needs and max(needs) * count > 0.7 * room:
            report.note(f"{count:,} rules would need more than the {room / 1e9:.0f} GB of memory that are left")
            return math.inf
        before = machine.resident()
        fresh = hold(root / "alerts", count, report, scale)
        # Of few rules nothing can be told: the process itself grows more than they do.
        if count >= FULL:
            needs.append(max(0, machine.resident() - before) / count)
        return fresh.p99

    ceiling = walk(probe, LIMIT, first=scale.first_rules, most=scale.most_rules, steps=scale.steps)
    report.reach("rules", ceiling.held)
    over = "not reached" if ceiling.broken is None else f"{ceiling.broken:,}"
    report.note(f"{ceiling.held:,} alert rules held; the least number that was not: {over}")


def hold(root: Path, count: int, report: Report, scale: Scale) -> Freshness:
    """Let so many rules stand, check what is told of some rows, and measure how late matches are while rows arrive."""
    pace = Pace.of(scale)
    rules = Rules.make(count, scale.keys)
    with tureen.open(root, mode="write") as soup:
        soup.create_stream("r", "key INT, v DOUBLE, n BIGINT, ts TIMESTAMP", time="ts")
        soup.wait(soup.push("r", rows_of(0, 1, scale.keys)), timeout=120)
        before, began = machine.resident(), time.perf_counter()
        alerts = soup.register_many("SELECT key, v, n FROM r WHERE key = :key AND v > :least", rules.table)
        report.add(f"register {count:,} rules", time.perf_counter() - began, "s", "<= 60" if count == FULL else "")
        since = verify(soup, alerts, rules)
        tables = [rows_of(number, pace.rows, scale.keys) for number in range(1, pace.pushes + 1)]
        expected = {number: rules.expected(rows) for number, rows in enumerate(tables, 1)}
        due: dict[int, float] = {}
        pusher = threading.Thread(target=_push, args=(soup, pace, tables, due))
        pusher.start()
        late, told = _follow(alerts.changes(since=since, timeout=PATIENCE), due, expected, pace)
        pusher.join()
        grown = (machine.resident() - before) / 1e9
    shutil.rmtree(root)
    fresh = Freshness.of(late) if sum(told.values()) >= sum(expected.values()) else NEVER
    assert fresh is NEVER or told == expected, "some matches were not told, or told twice"
    report.add(f"memory for {count:,} rules", grown, "GB", "<= 1" if count == FULL else "")
    report.add(f"matches told of {pace.rows * pace.pushes:,} rows, {count:,} rules", sum(told.values()), "")
    report.add(f"from push to a match in hand, {count:,} rules, p50", fresh.p50, "s")
    report.add(f"from push to a match in hand, {count:,} rules, p99", fresh.p99, "s", "<= 2" if count == FULL else "")
    return fresh


def verify(soup: tureen.Soup, alerts: tureen.QueryTemplate, rules: Rules) -> str:
    """Check that some rows are told to exactly those rules that numpy says; return where to go on."""
    since = alerts[0].invoke().position
    # Rows made to measure: on a rule's key and near its threshold, so that few rules too have matches to check.
    some = rules.table.take(pa.array(np.random.default_rng(0).integers(0, len(rules.table), CHECKED)))
    values = some.column("least").to_numpy() + np.tile([-0.01, 0.0, 0.01, 5.0], CHECKED // 4)
    rows = rows_of(0, CHECKED, 1).set_column(0, "key", some.column("key")).set_column(1, "v", pa.array(values))
    pairs = list(zip(rows.column("key").to_pylist(), rows.column("v").to_pylist(), strict=True))
    right = sorted((int(rule), value) for key, value in pairs for rule in rules.matched(key, value))
    soup.wait(soup.push("r", rows), timeout=120)
    told = list(islice(alerts.changes(since=since, timeout=PATIENCE), len(right)))
    found = sorted((int(change.query.rpartition(".")[2]), change.row["v"]) for change in told)
    assert found == right, "matches are not those that numpy finds"
    return str(told[-1].position)


def _push(soup: tureen.Soup, pace: Pace, tables: Sequence[pa.Table], due: dict[int, float]) -> None:
    def push(number: int, moment: float) -> None:
        due[number] = moment
        soup.push("r", tables[number - 1])

    pace.play(push)


def _follow(
    changes: Iterator[Change], due: Mapping[int, float], expected: Mapping[int, int], pace: Pace
) -> tuple[list[float], dict[int, int]]:
    """How late each match was, after the warm-up, and how many there were of each push."""
    late, told, left = [], dict.fromkeys(expected, 0), sum(expected.values())
    deadline = time.perf_counter() + pace.seconds + PATIENCE
    for change in changes if left else ():
        number, now = change.row["n"], time.perf_counter()
        told[number] += 1
        if number > pace.warm:
            late.append(now - due[number])
        left -= 1
        if not left or now > deadline:
            break
    return late, told
