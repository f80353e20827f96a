"""(r) Followed groups: from a push to the changes of ten thousand averages, and of ten thousand limits of averages.

Rows arrive at a steady rate and leave the window at the same rate. Each push also has a row of a group of its own,
whose change tells when the follower got what the push changed. In the end, the answer to which all changes were
applied is compared with the answer of an invocation at the same NOW.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

import tureen
from benchmarks.ceiling import Delays
from benchmarks.report import Report
from benchmarks.scale import QUICK, Scale
from tureen.position import Position
from tureen.results.answer import Change
from tureen.testing.group_followers import AppliedAnswer, AppliedChange
from tureen.window import from_micros

WINDOW_SECONDS = 30
MARKERS = 1_000_000
"""The keys of the groups of single pushes start here."""
LIMITS = 10_000
"""The number of limits; the value of the group of a push is below the last of them only."""
SILENCE = 5.0
"""The seconds without a change after which a follower stops; the window is longer."""


def measure(root: Path, report: Report, scale: Scale) -> None:
    """Measure averages by group, and limits of averages."""
    groups = 100 if scale is QUICK else 10_000
    with tureen.open(root / "followed_groups", mode="write") as soup:
        soup.create_stream("s", "k INT, v DOUBLE, ts TIMESTAMP", time="ts")
        where = f"FROM s GROUP BY k BEGIN NOW - {WINDOW_SECONDS} SECONDS END NOW"
        _push(soup, _rows(scale.rate * WINDOW_SECONDS, groups, WINDOW_SECONDS))
        averages = soup.register(f"SELECT k, avg(v) AS a, count(*) AS n {where}")
        delays = _follow(soup, averages, averages.changes, ["k"], scale, groups)
        report.reach("followed groups", delays.p99)
        report.add(f"push to change, {groups:,} followed groups, p50", delays.p50, "s")
        report.add(f"push to change, {groups:,} followed groups, worst", delays.worst, "s")
        soup.drop_stream("s")
        soup.create_stream("s", "k INT, v DOUBLE, ts TIMESTAMP", time="ts")
        _push(soup, _rows(scale.rate * WINDOW_SECONDS, 100, WINDOW_SECONDS))
        limited = where.replace("GROUP BY k", "GROUP BY k HAVING avg(v) < :least")
        text = f"SELECT k, avg(v) AS a {limited}"
        limits = soup.register_many(text, [{"least": 100.0 * number / LIMITS} for number in range(LIMITS)])

        def turns(*, since: str, timeout: float) -> Iterator[Change]:
            return limits.changes(since=since, timeout=timeout, on="turn")

        delays = _follow(soup, limits[LIMITS // 2], turns, ["k"], scale, 100, f"{limits.id}.{LIMITS // 2}")
        report.reach("followed limits", delays.p99)
        report.add(f"push to change, {LIMITS:,} limits of 100 groups, p50", delays.p50, "s")


def _follow(
    soup: tureen.Soup,
    query: tureen.StandingQuery,
    follow: Callable[..., Iterator[Change]],
    keys: list[str],
    scale: Scale,
    groups: int,
    handle: str | None = None,
) -> Delays:
    """The delays of the changes of pushes, after the changes of a query were verified."""
    before = query.invoke()
    applied = AppliedAnswer(keys, before.table.to_pylist())
    seen: dict[int, float] = {}
    last = [before.position]
    is_over = threading.Event()
    read_changes: list[Change] = []

    def read() -> None:
        for change in follow(since=before.position, timeout=SILENCE):
            if change.row["k"] >= MARKERS and change.kind == "insert":
                seen.setdefault(change.row["k"] - MARKERS, time.perf_counter())
            read_changes.append(change)
            last[0] = change.position
            # After the last push, up to the end of a read.
            if is_over.is_set() and Position.parse(change.position).unread is None:
                return

    follower = threading.Thread(target=read)
    follower.start()
    pushed = _push_steadily(soup, scale, groups)
    while len(seen) < len(pushed) and follower.is_alive():
        time.sleep(0.05)
    is_over.set()
    follower.join()
    for change in read_changes:
        if handle is None:
            applied.apply(AppliedChange(change.kind, change.row, change.before))
        elif change.query == handle:
            key = applied.key(change.row)
            applied.rows.pop(key, None)
            if change.kind == "insert":
                applied.rows[key] = change.row
    _verify(query, applied, last[0], exact=handle is None)
    warm = int(scale.warm_seconds / scale.push_every)
    return Delays.of([seen[number] - began for number, began in list(enumerate(pushed))[warm:]])


def _verify(query: tureen.StandingQuery, applied: AppliedAnswer, position: str, *, exact: bool) -> None:
    """Raise unless the applied changes have led to the answer."""
    now = Position.parse(position).now
    assert now is not None
    rows = query.invoke(now=from_micros(now)).table.to_pylist()
    if exact:
        differences = applied.differences(rows)
        assert not differences, f"{len(differences)} of {len(rows)} groups differ: {differences[:3]}"
    else:
        assert {applied.key(row) for row in rows} == set(applied.rows)


def _push_steadily(soup: tureen.Soup, scale: Scale, groups: int) -> list[float]:
    """Push rows at a steady rate; when each push began."""
    size, began, moments = int(scale.rate * scale.push_every), time.perf_counter(), []
    for number in range(int((scale.warm_seconds + scale.seconds) / scale.push_every)):
        time.sleep(max(0.0, began + number * scale.push_every - time.perf_counter()))
        rows = _rows(size, groups, 0)
        marker = pa.table(
            {"k": [MARKERS + number], "v": [100 - 100 / LIMITS - 0.001], "ts": rows.column("ts").slice(0, 1)},
            rows.schema,
        )
        moments.append(time.perf_counter())
        _push(soup, pa.concat_tables([rows, marker]))
    return moments


def _push(soup: tureen.Soup, rows: pa.Table) -> None:
    soup.push("s", rows)


def _rows(size: int, groups: int, seconds: float) -> pa.Table:
    """Rows of random groups, with times in the last seconds."""
    random = np.random.default_rng(size)
    now = datetime.now(UTC)
    first = now - timedelta(seconds=seconds)
    span = int(seconds * 1e6)
    start = int(first.timestamp() * 1e6)
    times = start + (np.arange(size) * span // max(size, 1))
    return pa.table(
        {
            "k": pa.array(random.integers(0, groups, size), pa.int32()),
            "v": pa.array(random.uniform(0, 100, size)),
            "ts": pa.array(times.astype(np.int64)).cast(pa.timestamp("us", "UTC")),
        }
    )
