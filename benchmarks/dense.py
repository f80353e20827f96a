"""The maximum number of dense selections: queries of PSoup §5.2.1, registered one by one, invoked while rows arrive.

Freshness is the time from a row's push to an answer that contains it. Answers are correct even before cells are
written (owed cells are evaluated on demand), so freshness alone would hide a pipeline that falls behind. Therefore the
cells that are still owed at the end must be paid in less time than the pushes took.
"""

from __future__ import annotations

import math
import queue
import shutil
import threading
import time
from itertools import cycle
from pathlib import Path

import pyarrow as pa

import tureen
from benchmarks import machine
from benchmarks.ceiling import LIMIT, Delays, PushSchedule, walk
from benchmarks.pots import STREAM, QueryPots, RegisteredQueries
from benchmarks.report import Report
from benchmarks.scale import Scale
from benchmarks.taking import wait_until_taken
from benchmarks.throughput import verify
from benchmarks.workload import truth, tuples
from tureen.errors import WaitTimeout

SAMPLED = 16
"""The number of queries that are invoked, in turns."""
PATIENCE = 20.0


def measure(root: Path, report: Report, pots: QueryPots, scale: Scale) -> None:
    """Increase the number of queries, for each mode of materialization."""
    for mode in ("materialised", "auto"):
        ceiling = walk(
            lambda count, mode=mode: measure_queries(root / "dense", mode, count, report, pots, scale),  # type: ignore[misc]
            LIMIT,
            first=scale.first_dense,
            most=scale.most_dense,
            steps=scale.steps,
        )
        report.reach(f"dense {mode}", ceiling.sustained)
        over = "not reached" if ceiling.broken is None else f"{ceiling.broken:,}"
        report.note(f"{ceiling.sustained:,} dense selections held, {mode}; the least number that was not: {over}")


def measure_queries(root: Path, mode: str, count: int, report: Report, pots: QueryPots, scale: Scale) -> float:
    """The 99th percentile of the freshness with `count` queries; infinite if the pipeline falls behind."""
    schedule = PushSchedule.of(scale)
    registered = pots.copy(mode, count, root)
    before = machine.resident()
    with tureen.open(root, mode="write") as soup:
        soup.start(wait=120)
        first = tuples(schedule.rows, 0)
        wait_until_taken(soup, soup.push(STREAM, first), timeout=120)
        verify(soup, registered, first, published=False)
        parts = [tuples(schedule.rows, number) for number in range(1, schedule.pushes + 1)]
        delays = Delays.of(_watch(soup, _sample(soup, registered, first), parts, schedule))
        grown = (machine.resident() - before) / 1e9
        began = time.perf_counter()
        soup.settle()
        debt_seconds = time.perf_counter() - began
        verify(soup, registered, pa.concat_tables([first, *parts]), published=False)
    shutil.rmtree(root)
    label = f"{count:,} queries, {mode}"
    report.add(f"from push to an answer from the run that holds it, {label}, p50", delays.p50, "s")
    report.add(f"from push to an answer from the run that holds it, {label}, p99", delays.p99, "s")
    report.add(f"to pay what was owed after {schedule.seconds:.0f} s, {label}", debt_seconds, "s")
    report.add(f"memory, {label}", grown, "GB")
    return delays.p99 if debt_seconds < schedule.seconds else math.inf


def _sample(soup: tureen.Soup, registered: RegisteredQueries, rows: pa.Table) -> list[tureen.StandingQuery]:
    """A sample of the queries that match some of these rows."""
    pairs = list(zip(registered.wheres, registered.handles, strict=True))
    matching = (handle for where, handle in pairs[:: max(1, len(pairs) // (8 * SAMPLED))] if truth(rows, where).any())
    return [soup.query(handle) for handle, _ in zip(matching, range(SAMPLED), strict=False)]


def _watch(
    soup: tureen.Soup, queries: list[tureen.StandingQuery], parts: list[pa.Table], schedule: PushSchedule
) -> list[float]:
    """Push, and after each push wait until a run contains it and invoke a query; return the delays.

    Without those of the warm-up; empty if an invocation times out.
    """
    pushed: queue.Queue[tuple[int, float, str]] = queue.Queue()

    def push(number: int, due: float) -> None:
        pushed.put((number, due, soup.push(STREAM, parts[number - 1])))

    pusher = threading.Thread(target=schedule.play, args=(push,))
    pusher.start()
    delays: list[float] = []
    handles = cycle(queries)
    try:
        for _ in range(schedule.pushes):
            number, due, at = pushed.get(timeout=PATIENCE)
            wait_until_taken(soup, at, timeout=PATIENCE)
            next(handles).invoke()
            if number > schedule.warm:
                delays.append(time.perf_counter() - due)
    except (WaitTimeout, queue.Empty):
        delays = []
    pusher.join()
    return delays
