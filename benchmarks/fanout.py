"""Fan-out: thousands of connections that follow a few queries, and a connection that follows all of many queries.

The server is a separate process, and so are the followers, which push too: times are from the start of a push to the
arrival of its rows. Every follower must get every row of its query once, in order, before anything is reported. Memory
and threads are those of the server's process, before its followers come and after.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa

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
            request |= {"stalled_rows": STALLED_ROWS, "stalled_bytes": STALLED_BYTES}
            _followers(request, process.pid, report, scale)
            _stalled(request, report, scale)
            _feed(http, request, report, scale)


def _register(http: httpx.Client, sql: str) -> str:
    response = http.post("/v1/queries", json={"sql": sql, "materialize": False})
    response.raise_for_status()
    return str(response.json()["id"])


def _followers(request: dict[str, Any], server: int, report: Report, scale: Scale) -> None:
    memory, threads = {}, {}
    for count in (QUERIES, scale.followers):
        before = _memory(server)
        results = _run({**request, "followers": count}, server)
        memory[count], threads[count] = results["memory"] - before, results["threads"]
        first, middle, last = (1000 * statistics.median(results[key]) for key in ("first", "middle", "last"))
        name = f"{count:,} followers of {QUERIES} queries"
        report.add(f"from a push to the first of {name}, p50", first, "ms")
        report.add(f"from a push to half of {name}, p50", middle, "ms")
        report.add(f"from a push to the last of {name}, p50", last, "ms")
        report.add(f"connecting {name}", results["connected"], "s")
    report.reach("fan-out", last)
    report.reach("fan-out memory", memory[scale.followers] / scale.followers / 1e3)
    report.reach("fan-out threads", threads[scale.followers] - threads[QUERIES])


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
                results |= {"memory": _memory(server), "threads": _threads(server)}
        finally:
            # Until now, all stay connected.
            process.kill()
    return results


def _memory(pid: int) -> int:
    """The resident bytes of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _threads(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/task"))
