"""How many dense selections are held: queries of PSoup §5.2.1, registered one by one, invoked while rows arrive.

Freshness is from a row's push to the answer that holds it. Answers are right before cells are written (what is owed is
evaluated when asked for), so they alone would not tell that the pipeline falls behind. What is still owed after the
stretch must therefore be paid in less time than the stretch itself took, else the queries are not held.
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
from benchmarks.ceiling import LIMIT, Freshness, Pace, walk
from benchmarks.pots import STREAM, QueryPots, Standing
from benchmarks.report import Report
from benchmarks.scale import Scale
from benchmarks.throughput import verify
from benchmarks.workload import truth, tuples
from tureen.errors import WaitTimeout

ASKED = 16
"""So many of the queries are invoked, in turns."""
PATIENCE = 20.0


def measure(root: Path, report: Report, pots: QueryPots, scale: Scale) -> None:
    """Walk the number of queries up, for each way of keeping their results."""
    for way in ("materialised", "auto"):
        ceiling = walk(
            lambda count, way=way: hold(root / "dense", way, count, report, pots, scale),  # type: ignore[misc]
            LIMIT,
            first=scale.first_dense,
            most=scale.most_dense,
            steps=scale.steps,
        )
        report.reach(f"dense {way}", ceiling.held)
        over = "not reached" if ceiling.broken is None else f"{ceiling.broken:,}"
        report.note(f"{ceiling.held:,} dense selections held, {way}; the least number that was not: {over}")


def hold(root: Path, way: str, count: int, report: Report, pots: QueryPots, scale: Scale) -> float:
    """The 99th percentile of the freshness with so many queries; infinite where the pipeline falls behind."""
    pace = Pace.of(scale)
    standing = pots.copy(way, count, root)
    before = machine.resident()
    with tureen.open(root, mode="write") as soup:
        soup.start(wait=120)
        first = tuples(pace.rows, 0)
        soup.wait(soup.push(STREAM, first), timeout=120)
        verify(soup, standing, first, published=False)
        parts = [tuples(pace.rows, number) for number in range(1, pace.pushes + 1)]
        fresh = Freshness.of(_watch(soup, _asked(soup, standing, first), parts, pace))
        grown = (machine.resident() - before) / 1e9
        began = time.perf_counter()
        soup.settle()
        owed = time.perf_counter() - began
        verify(soup, standing, pa.concat_tables([first, *parts]), published=False)
    shutil.rmtree(root)
    what = f"{count:,} queries, {way}"
    report.add(f"from push to an answer that holds it, {what}, p50", fresh.p50, "s")
    report.add(f"from push to an answer that holds it, {what}, p99", fresh.p99, "s")
    report.add(f"to pay what was owed after {pace.seconds:.0f} s, {what}", owed, "s")
    report.add(f"memory, {what}", grown, "GB")
    return fresh.p99 if owed < pace.seconds else math.inf


def _asked(soup: tureen.Soup, standing: Standing, rows: pa.Table) -> list[tureen.StandingQuery]:
    """Some of the queries, spread over all of them, that some of these rows match."""
    pairs = list(zip(standing.wanted, standing.handles, strict=True))
    matching = (handle for where, handle in pairs[:: max(1, len(pairs) // (8 * ASKED))] if truth(rows, where).any())
    return [soup.query(handle) for handle, _ in zip(matching, range(ASKED), strict=False)]


def _watch(soup: tureen.Soup, asked: list[tureen.StandingQuery], parts: list[pa.Table], pace: Pace) -> list[float]:
    """Push, and after each push invoke one of the queries until its answer holds it; the delays after the warm-up.

    None of them if one takes far too long.
    """
    pushed: queue.Queue[tuple[int, float, str]] = queue.Queue()

    def push(number: int, due: float) -> None:
        pushed.put((number, due, soup.push(STREAM, parts[number - 1])))

    pusher = threading.Thread(target=pace.play, args=(push,))
    pusher.start()
    late: list[float] = []
    handles = cycle(asked)
    try:
        for _ in range(pace.pushes):
            number, due, at = pushed.get(timeout=PATIENCE)
            next(handles).invoke(wait_for=at, timeout=PATIENCE)
            if number > pace.warm:
                late.append(time.perf_counter() - due)
    except (WaitTimeout, queue.Empty):
        late = []
    pusher.join()
    return late
