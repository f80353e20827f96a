"""(s) Open pages: how much fifty of them slow down the invocations of a server under load.

A page is simulated by the requests that it sends (`benchmarks/page_polls.py`): an overview every two seconds, an answer
with its tag every 0.7 s, or the list of streams with the status every two seconds. Rounds of three kinds alternate on
one server: without pages, with pages, and with as many requests of the cheapest kind instead. What the last ones cost
is the floor: the cost of any further client on the same cores. The p99 of equal rounds differs too; its spread without
pages tells how much of a difference means nothing.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import httpx

from benchmarks import machine
from benchmarks.page_polls import Polling
from benchmarks.report import Report
from benchmarks.service import QUERIES, SCHEMA, register, run_load, serving

PAGES = 50
ROUND_SECONDS = 10.0
ROUNDS = 8
NONE, OPEN, PLAIN = KINDS = ("no page open", f"{PAGES} pages open", "as many requests for /healthz")


class Round(NamedTuple):
    """What a round has measured."""

    p50: float
    p99: float
    """Of invocations, in ms."""
    processor: float
    """Of the server's process, in percent of a core."""
    invocations: int
    polls: int


def measure(root: Path, report: Report, *, rounds: int = ROUNDS, seconds: float = ROUND_SECONDS) -> None:
    """Start a server and run the load of `service` in rounds of each kind."""
    with serving(root / "pages") as (process, url, token):
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=120) as http:
            while http.get("/healthz").json().get("pipeline") == "starting":
                time.sleep(0.2)
            http.post("/v1/streams", json={"name": "s", "schema": SCHEMA, "time": "ts", "retain": "5 minutes"})
            handles = [register(http, number) for number in range(QUERIES)]

        def run(kind: str) -> Round:
            polling = Polling(url, token, handles, 0 if kind == NONE else PAGES, seconds, kind == PLAIN)
            return _run(polling, process.pid)

        run(OPEN)
        # The order turns, so that no kind always follows the same one.
        cycles = [{kind: run(kind) for kind in KINDS[cycle % 3 :] + KINDS[: cycle % 3]} for cycle in range(rounds)]
    for kind in KINDS:
        _report(report, kind, [cycle[kind] for cycle in cycles])
    for kind, other in ((PLAIN, NONE), (OPEN, PLAIN)):
        ratio = statistics.median(cycle[kind].p99 / cycle[other].p99 for cycle in cycles)
        report.add(f"invocation, p99, {kind} / {other}, median of {rounds} ratios", ratio, "times")
    # Rounds of one cycle had the same machine.
    report.reach("pages", statistics.median(cycle[OPEN].p99 / cycle[NONE].p99 for cycle in cycles))


def _report(report: Report, kind: str, of_kind: list[Round]) -> None:
    late = [each.p99 for each in of_kind]
    report.add(f"invocation, p50, {kind}", statistics.median(each.p50 for each in of_kind), "ms")
    report.add(f"invocation, p99, {kind}", statistics.median(late), "ms")
    report.add(f"invocation, p99, {kind}, least of {len(late)} rounds", min(late), "ms")
    report.add(f"invocation, p99, {kind}, most of {len(late)} rounds", max(late), "ms")
    report.add(f"invocations of a round, {kind}", statistics.median(each.invocations for each in of_kind), "")
    report.add(f"requests of pages in a round, {kind}", statistics.median(each.polls for each in of_kind), "")
    used = statistics.median(each.processor for each in of_kind)
    report.add(f"processor time of the server's process, {kind}", used, "% of a core")


def _run(polling: Polling, server: int) -> Round:
    with _pages(polling) as pages:
        began, used = time.perf_counter(), machine.process_seconds(server)
        load = asyncio.run(run_load(polling.url, polling.token, polling.handles, server, polling.seconds))
        share = (machine.process_seconds(server) - used) / (time.perf_counter() - began)
        assert pages.stdout is not None
        polls = int(pages.stdout.readline())
    assert set(load.statuses) == {200}, load.statuses
    cuts = statistics.quantiles(load.latencies, n=100)
    return Round(1000 * cuts[49], 1000 * cuts[98], 100 * share, len(load.latencies), polls)


@contextmanager
def _pages(polling: Polling) -> Iterator[subprocess.Popen[str]]:
    """Pages that begin now; the process prints the number of their requests at the end."""
    command = [sys.executable, "-m", "benchmarks.page_polls"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(asdict(polling)) + "\n")
            process.stdin.flush()
            assert process.stdout.readline(), "the pages did not start"
            process.stdin.write("begin\n")
            process.stdin.flush()
            yield process
        finally:
            process.kill()
