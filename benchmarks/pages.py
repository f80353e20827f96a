"""(s) Open pages: how much fifty of them slow down the invocations of a server under load.

A page is simulated by the requests that it sends: an overview every two seconds, an answer with its tag every 0.7 s, or
the list of streams with the status every two seconds. Rounds with and without pages alternate on one server. The p99 of
equal rounds differs too: the spread of those without pages tells how much of a difference means nothing.
"""

from __future__ import annotations

import asyncio
import re
import statistics
import time
from pathlib import Path
from typing import NamedTuple

import httpx

from benchmarks import machine
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

        def measured(pages: int) -> Round:
            began, used = time.perf_counter(), machine.processor_seconds(process.pid)
            load = asyncio.run(run(pages))
            assert set(load.statuses) == {200}, load.statuses
            share = (machine.processor_seconds(process.pid) - used) / (time.perf_counter() - began)
            return Round(1000 * statistics.quantiles(load.latencies, n=100)[98], 100 * share)

        measured(PAGES)
        pairs = [(measured(0), measured(PAGES)) for _ in range(rounds)]
    for name, of_kind in zip(("no page open", f"{PAGES} pages open"), zip(*pairs, strict=True), strict=True):
        report.add(f"invocation, p99, {name}", statistics.median(each.p99 for each in of_kind), "ms")
        report.add(f"invocation, p99, {name}, least of {rounds} rounds", min(each.p99 for each in of_kind), "ms")
        report.add(f"invocation, p99, {name}, most of {rounds} rounds", max(each.p99 for each in of_kind), "ms")
        used = statistics.median(each.processor for each in of_kind)
        report.add(f"processor time of the server's process, {name}", used, "% of a core")
    # Rounds that follow each other had the same machine.
    report.reach("pages", statistics.median(beside.p99 / without.p99 for without, beside in pairs))


class Round(NamedTuple):
    """What a round has measured."""

    p99: float
    """Of invocations, in ms."""
    processor: float
    """Of the server's process, in percent of a core."""


async def _page(url: str, token: str, handles: list[str], number: int, until: float) -> None:
    """The requests of one page: of three kinds, by its number."""
    socket = await Socket.open(url, token)
    pause = (2.0, 0.7, 2.0)[number % 3]
    tag = ""
    await asyncio.sleep(pause * number / PAGES)
    while time.perf_counter() < until:
        if number % 3 == 0:
            await _poll(socket, f"/v1/overview?after={time.time() - 2}")
        elif number % 3 == 1:
            tag = await _poll(socket, f"/v1/queries/{handles[number]}/result?limit=500", tag)
        else:
            await _poll(socket, "/v1/streams?limit=1000")
            await _poll(socket, "/v1/status")
        await asyncio.sleep(pause)


async def _poll(socket: Socket, path: str, tag: str = "") -> str:
    """Send a request with the headers of a page; the tag of what the page has now."""
    headers = "Cache-Control: max-age=1\r\n" + (f"If-None-Match: {tag}\r\n" if tag else "")
    response = await socket.exchange("GET", path, headers)
    assert response.status == 200 or (response.status == 304 and tag), (path, response.status)
    sent = re.search(rb"(?i)\r\netag: ([^\r]*)", response.head)
    return "" if sent is None else sent.group(1).decode()
