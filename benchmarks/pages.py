"""(s) Open pages: how much fifty of them slow down the invocations of a server under load.

A page is simulated by the requests that it sends: an overview every two seconds, an answer with its tag every 0.7 s, or
the list of streams with the status every two seconds. Rounds with and without pages alternate on one server.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from pathlib import Path

import httpx

from benchmarks.report import Report
from benchmarks.service import QUERIES, SCHEMA, Load, Socket, register, run_load, serving

PAGES = 50
ROUND_SECONDS = 20.0
ROUNDS = 3


def measure(root: Path, report: Report, *, rounds: int = ROUNDS, seconds: float = ROUND_SECONDS) -> None:
    """Start a server and run the load of `service`, with pages in every other round."""
    with serving(root / "pages") as (process, url, token):
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=120) as http:
            while http.get("/healthz").json().get("pipeline") == "starting":
                time.sleep(0.2)
            http.post("/v1/streams", json={"name": "s", "schema": SCHEMA, "time": "ts", "retain": "5 minutes"})
            handles = [register(http, number) for number in range(QUERIES)]

        async def run(pages: int) -> Load:
            until = time.perf_counter() + seconds
            opened = [_page(url, token, handles, number, until) for number in range(pages)]
            pages_done = asyncio.gather(*opened)
            load = await run_load(url, token, handles, process.pid, seconds)
            await pages_done
            return load

        asyncio.run(run(PAGES))
        without, beside = [], []
        for _ in range(rounds):
            without.append(_late(asyncio.run(run(0))))
            beside.append(_late(asyncio.run(run(PAGES))))
    report.add("invocation, p99, no page open", statistics.median(without), "ms")
    report.add(f"invocation, p99, {PAGES} pages open", statistics.median(beside), "ms")
    report.reach("pages", statistics.median(beside) / statistics.median(without))


def _late(load: Load) -> float:
    assert set(load.statuses) == {200}, load.statuses
    return 1000 * statistics.quantiles(load.latencies, n=100)[98]


async def _page(url: str, token: str, handles: list[str], number: int, until: float) -> None:
    """The requests of one page: of three kinds, by its number."""
    socket = await Socket.open(url, token)
    pause = (2.0, 0.7, 2.0)[number % 3]
    await asyncio.sleep(pause * number / PAGES)
    while time.perf_counter() < until:
        if number % 3 == 0:
            paths = [f"/v1/overview?after={time.time() - 2}"]
        elif number % 3 == 1:
            paths = [f"/v1/queries/{handles[number]}/result?limit=500"]
        else:
            paths = ["/v1/streams?limit=1000", "/v1/status"]
        for path in paths:
            status, _ = await socket.ask("GET", path)
            assert status == 200, (path, status)
        await asyncio.sleep(pause)
