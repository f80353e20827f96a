"""Fan-out: thousands of connections that follow a few queries, and a connection that follows all of many queries.

The server is a separate process, and so are the followers, which push too: times are from the start of a push to the
arrival of its rows. Every follower must get every row of its query once, in order, before anything is reported. Memory
and threads are those of the server's process, before its followers come and after.

The goals are relative. A plain event server (`benchmarks/fanout_peer.py`) writes the same events to the same followers
in the same run: the service may take twice its processor time, time and memory, as much again for matching, reading,
checking access and resumption as for writing. The first of thousands must not wait for the last.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pyarrow as pa

from benchmarks import machine
from benchmarks.fanout_peer import handle_of
from benchmarks.report import Report
from benchmarks.scale import Scale
from benchmarks.service import ARROW, serving, stream_of

SCHEMA = "q INT, n INT, filler STRING, ts TIMESTAMP"
QUERIES = 8
"""The number of queries that followers share."""
STALLED_ROWS = 2_000
STALLED_BYTES = 10_000
"""The rows and bytes per row that are pushed while a follower does not read: more than its connection buffers."""


def measure(root: Path, report: Report, scale: Scale) -> None:
    """Measure followers of few queries, then a follower of all of many."""
    limits = ("--max-followers", str(scale.followers + 100), "--max-connections", str(scale.followers + 200))
    with serving(root / "fanout", *limits) as (process, url, token):
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=url, headers=headers, timeout=120) as http:
            while http.get("/healthz").status_code != 200:
                time.sleep(0.2)
            for stream in ("s", "t"):
                http.post("/v1/streams", json={"name": stream, "schema": SCHEMA, "time": "ts"}).raise_for_status()
            handles = [_register(http, f"SELECT q, n, filler FROM s WHERE q = {number}") for number in range(QUERIES)]
            request = {"url": url, "token": token, "handles": handles, "rounds": scale.fanout_rounds}
            request |= {"server": process.pid}
            request |= {"stalled_rows": STALLED_ROWS, "stalled_bytes": STALLED_BYTES}
            _followers(request, process.pid, report, scale)
            _stalled(request, report, scale)
            _feed(http, request, report, scale)


def _register(http: httpx.Client, sql: str) -> str:
    response = http.post("/v1/queries", json={"sql": sql, "materialize": False})
    response.raise_for_status()
    return str(response.json()["id"])


def _followers(request: dict[str, Any], server: int, report: Report, scale: Scale) -> None:
    few = _fan_out({**request, "followers": QUERIES}, server, report, "")
    many = _fan_out({**request, "followers": scale.followers}, server, report, "")
    with plain_server() as (process, url):
        handles = [handle_of(number) for number in range(QUERIES)]
        plain_request = {**request, "url": url, "handles": handles, "followers": scale.followers}
        plain = _fan_out(plain_request, process.pid, report, ", plain server")
    report.reach("fan-out", many.last / plain.last)
    report.reach("fan-out first", many.first / plain.first)
    report.reach("fan-out processor", many.processor / plain.processor)
    report.reach("fan-out memory", many.memory / plain.memory)
    report.reach("fan-out threads", many.threads - few.threads)


class FanOut(NamedTuple):
    """What a push to many followers took: medians."""

    first: float
    last: float
    processor: float
    """The processor time of the server's process."""
    memory: float
    """Bytes of the server's process for all followers."""
    threads: int


def _fan_out(request: dict[str, Any], server: int, report: Report, remark: str) -> FanOut:
    before = machine.resident(server)
    results = _run({**request, "server": server}, server)
    first, middle, last = (statistics.median(results[key]) for key in ("first", "middle", "last"))
    count = request["followers"]
    name = f"{count:,} followers of {QUERIES} queries{remark}"
    report.add(f"from a push to the first of {name}, p50", 1000 * first, "ms")
    report.add(f"from a push to half of {name}, p50", 1000 * middle, "ms")
    report.add(f"from a push to the last of {name}, p50", 1000 * last, "ms")
    report.add(f"processor time of the server for a push to {name}", 1000 * results["used"], "ms")
    memory = results["memory"] - before
    if count > QUERIES:  # of few, it would be that of the first requests
        report.add(f"memory of the server for each of {name}", memory / count / 1e3, "KB")
    report.add(f"connecting {name}", results["connected"], "s")
    return FanOut(first, last, results["used"], memory, results["threads"])


@contextmanager
def plain_server() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The plain event server in a process of its own, and its URL."""
    command = [sys.executable, "-m", "benchmarks.fanout_peer"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def _stalled(request: dict[str, Any], report: Report, scale: Scale) -> None:
    """A follower that stops reading keeps nobody waiting, and continues where it stopped."""
    count = max(QUERIES, scale.followers // 10)
    lasts = {}
    for stalled in (0, QUERIES):
        results = _run({**request, "followers": count, "stalled": stalled, "bulk": True}, None)
        lasts[stalled] = 1000 * statistics.median(results["last"])
        report.add(
            f"from a push to the last of {count:,} followers, {stalled} others do not read", lasts[stalled], "ms"
        )
    report.note(f"The followers that did not read then got the rows they had missed, {results['caught_up']:,} in all.")
    report.reach("fan-out stalled", lasts[QUERIES] / lasts[0])


def _feed(http: httpx.Client, request: dict[str, Any], report: Report, scale: Scale) -> None:
    """One connection follows all queries; a push concerns ten of them."""
    parameters = stream_of(pa.table({"q": pa.array(range(scale.feed_members), pa.int32())}))
    sql = {"sql": "SELECT q, n, filler FROM t WHERE q = :q"}
    http.post("/v1/templates", params=sql, content=parameters, headers={"Content-Type": ARROW}).raise_for_status()
    medians = []
    registered = 0
    for count in (scale.feed_queries // 10, scale.feed_queries):
        for number in range(registered, count):
            _register(http, f"SELECT q, n, filler FROM t WHERE q = {number}")
        registered = count
        results = _run({**request, "feed": True, "followers": 1}, None)
        medians.append(1000 * statistics.median(results["last"]))
        name = f"{count:,} queries and a template of {scale.feed_members:,}"
        report.add(f"from a push to its changes in a feed of {name}, p50", medians[-1], "ms")
    report.reach("feed", medians[-1])


def _run(request: dict[str, Any], server: int | None) -> dict[str, Any]:
    """Run the followers in a process of their own; with a server's process, also its memory and threads meanwhile."""
    command = [sys.executable, "-m", "benchmarks.fanout_followers"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            results: dict[str, Any] = json.loads(process.stdout.readline())
            if server is not None:
                results |= {"memory": machine.resident(server), "threads": machine.threads(server)}
        finally:
            # Until now, all stay connected.
            process.kill()
    return results
