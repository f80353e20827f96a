"""(h) The service under load: 64 clients invoke over 1,000 queries while 10,000 rows/s arrive, all over HTTP.

The server is a separate process. The clients use plain sockets, so that their own cost is small. A response counts when
it is complete. Freshness is the time from a push's acknowledgement until the server says that answers have its rows.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import secrets
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np
import pyarrow as pa

from benchmarks import machine
from benchmarks.report import Report

CLIENTS = 64
QUERIES = 1_000
RATE = 10_000
PUSH_EVERY = 0.1
SECONDS = float(os.environ.get("TUREEN_BENCH_SECONDS", "60"))
"""The duration of the load."""

WARM_SECONDS = 10.0
"""The duration of the same load before, while Java compiles and queries are loaded for the first time."""

PAUSE = float(os.environ.get("TUREEN_BENCH_PAUSE", "0.1"))
"""The pause of a client between requests, in seconds."""

SCHEMA = "a INT, b INT, c INT, d INT, ts TIMESTAMP"
WINDOW = "BEGIN NOW - 10 SECONDS END NOW"
ARROW = "application/vnd.apache.arrow.stream"


class Load:
    """The measurements of the clients."""

    def __init__(self) -> None:
        """Start without measurements."""
        self.latencies: list[float] = []
        self.statuses: dict[int, int] = {}
        self.delays: list[float] = []
        self.rows = 0
        self.memory: list[int] = []
        """Memory of the server's process at the start and after each third of the time."""


@contextmanager
def serving(pot: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """A server in a separate process: the process, its URL and a token."""
    command = [sys.executable, "-m", "tureen.service", "--pot", str(pot), "--port", "0", "--master", "local[2]"]
    process = subprocess.Popen([*command, *options, "--log-level", "warning"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        url = process.stdout.readline().rpartition(" ")[2].strip()
        process.stdout.readline()
        yield process, url, process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()


def measure(root: Path, report: Report) -> None:
    """Start a server, register queries, run the load and report."""
    with serving(root / "service") as (process, url, token):
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=url, headers=headers, timeout=120) as http:
            while http.get("/healthz").status_code != 200:
                time.sleep(0.2)
            http.post("/v1/streams", json={"name": "s", "schema": SCHEMA, "time": "ts", "retain": "5 minutes"})
            began = time.perf_counter()
            handles = [register(http, number) for number in range(QUERIES)]
            report.add(f"register {QUERIES:,} queries, one after another", time.perf_counter() - began, "s")
            _alone(http, url, token, handles, report)
            first_load = asyncio.run(run_load(url, token, handles, process.pid, WARM_SECONDS))
            late = 1000 * statistics.quantiles(first_load.latencies, n=100)[98]
            report.add(f"invocation, p99, in the first {WARM_SECONDS:.0f} s of a fresh server", late, "ms")
            _report(report, asyncio.run(run_load(url, token, handles, process.pid, SECONDS)))
            health = http.get("/healthz").status_code
            metrics = http.get("/metrics").text
    assert health == 200, "the server is not healthy after the load"
    assert not re.search(r'route="/v1[^}]*status="5\d\d"', metrics), "the server returned errors"


def register(http: httpx.Client, number: int) -> str:
    """Register a query; its handle."""
    # Selective, like alerts: about 25 of the 100,000 rows in the window.
    low = number // 256 * 16
    sql = f"SELECT a, b, ts FROM s WHERE a = {number % 256} AND b BETWEEN {low} AND {low + 15} {WINDOW}"
    return str(http.post("/v1/queries", json={"sql": sql}).json()["id"])


def _alone(http: httpx.Client, url: str, token: str, handles: list[str], report: Report) -> None:
    """A single client on an idle server: correct answers, and the minimum latency."""
    _verify(http, handles)
    latencies: list[float] = []

    async def ask() -> None:
        load = Load()
        await _client(url, token, handles[:50], load, time.perf_counter() + 3, 0.0)
        latencies.extend(load.latencies)

    asyncio.run(ask())
    report.reach("http", 1000 * statistics.median(latencies))


def _verify(http: httpx.Client, handles: list[str]) -> None:
    """Push rows and compare every twentieth answer with numpy's."""
    table = rows_of(20_000)
    pushed = http.post("/v1/streams/s/rows", content=stream_of(table), headers={"Content-Type": ARROW}).json()
    http.get("/v1/wait", params={"position": pushed["position"], "timeout": 120})
    now = str(table.column("ts")[0].as_py().isoformat())
    a, b = table.column("a").to_numpy(), table.column("b").to_numpy()
    for number in range(0, len(handles), 20):
        low = number // 256 * 16
        matches = (a == number % 256) & (b >= low) & (b <= low + 15)
        rows = http.get(f"/v1/queries/{handles[number]}/result", params={"now": now}).json()["rows"]
        pairs = sorted((row["a"], row["b"]) for row in rows)
        assert pairs == sorted(zip(a[matches].tolist(), b[matches].tolist(), strict=True)), "a wrong answer"


def _report(report: Report, load: Load) -> None:
    errors = sum(count for status, count in load.statuses.items() if status != 200)
    cuts = statistics.quantiles(load.latencies, n=100)
    report.add("rows arrived", load.rows / SECONDS, "rows/s")
    report.add("invocations", len(load.latencies) / SECONDS, "per second")
    report.add("errors", errors, "", "<= 0")
    report.add("invocation, p50", 1000 * cuts[49], "ms")
    report.add("invocation, p99", 1000 * cuts[98], "ms", "<= 50")
    report.add("from a push to answers with its rows, p50", 1000 * statistics.median(load.delays), "ms")
    late = statistics.quantiles(load.delays, n=100)[98]
    report.add("from a push to answers with its rows, p99", 1000 * late, "ms", "<= 100")
    for when, memory in zip(
        ("at the start", "after a third", "after two thirds", "at the end"), load.memory, strict=True
    ):
        report.add(f"memory of the server's process {when}", memory / 1e6, "MB")


async def run_load(url: str, token: str, handles: list[str], server: int, seconds: float) -> Load:
    """Run all clients, the pusher, and the observers of freshness and memory."""
    load, until = Load(), time.perf_counter() + seconds
    pushed: asyncio.Queue[tuple[str, float]] = asyncio.Queue()
    clients = [_client(url, token, handles[number::CLIENTS], load, until, PAUSE) for number in range(CLIENTS)]
    watching = (_watch(url, token, load, until, pushed), _weigh(server, load, seconds))
    await asyncio.gather(_push(url, token, load, until, pushed), *watching, *clients)
    return load


async def _weigh(server: int, load: Load, seconds: float) -> None:
    load.memory.append(machine.resident(server))
    for _ in range(3):
        await asyncio.sleep(seconds / 3)
        load.memory.append(machine.resident(server))


class Exchange(NamedTuple):
    """A response."""

    status: int
    head: bytes
    body: bytes


class Socket:
    """An HTTP connection with as little overhead as possible."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
        """Use an open connection."""
        self._reader, self._writer, self._token = reader, writer, token

    @classmethod
    async def open(cls, url: str, token: str) -> Socket:
        """Connect."""
        host, _, port = url.removeprefix("http://").partition(":")
        return cls(*await asyncio.open_connection(host, int(port), limit=1 << 24), token)

    async def ask(self, method: str, path: str, body: bytes = b"", kind: str = "application/json") -> tuple[int, bytes]:
        """Send a request and read the whole response."""
        headers = f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n" if body else ""
        response = await self.exchange(method, path, headers, body)
        return response.status, response.body

    async def exchange(self, method: str, path: str, headers: str = "", body: bytes = b"") -> Exchange:
        """Send a request with more headers, and read the whole response."""
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self._token}\r\n{headers}"
        self._writer.write(head.encode() + b"\r\n" + body)
        top = await self._reader.readuntil(b"\r\n\r\n")
        status = int(top[9:12])
        if status == 304:
            return Exchange(status, top, b"")
        length = re.search(rb"content-length: (\d+)", top)
        if length is not None:
            return Exchange(status, top, await self._reader.readexactly(int(length.group(1))))
        return Exchange(status, top, await self._chunks())

    async def _chunks(self) -> bytes:
        content = b""
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            content += (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readuntil(b"\r\n")
        return content


async def _client(url: str, token: str, handles: list[str], load: Load, until: float, pause: float) -> None:
    socket, number = await Socket.open(url, token), secrets.randbelow(len(handles))
    await asyncio.sleep(pause * secrets.randbelow(100) / 100)
    while time.perf_counter() < until:
        number += 1
        began = time.perf_counter()
        status, _ = await socket.ask("GET", f"/v1/queries/{handles[number % len(handles)]}/result")
        load.latencies.append(time.perf_counter() - began)
        load.statuses[status] = load.statuses.get(status, 0) + 1
        await asyncio.sleep(pause)


async def _push(url: str, token: str, load: Load, until: float, pushed: asyncio.Queue[tuple[str, float]]) -> None:
    socket, count = await Socket.open(url, token), int(RATE * PUSH_EVERY)
    due = time.perf_counter()
    while time.perf_counter() < until:
        status, body = await socket.ask("POST", "/v1/streams/s/rows", stream_of(rows_of(count)), ARROW)
        counted_status = 200 if status == 202 else status
        load.statuses[counted_status] = load.statuses.get(counted_status, 0) + 1
        load.rows += count
        pushed.put_nowait((json.loads(body)["position"], time.perf_counter()))
        due += PUSH_EVERY
        await asyncio.sleep(max(0.0, due - time.perf_counter()))


async def _watch(url: str, token: str, load: Load, until: float, pushed: asyncio.Queue[tuple[str, float]]) -> None:
    """Wait for one push after another, and measure the time until answers have its rows."""
    socket = await Socket.open(url, token)
    while time.perf_counter() < until:
        try:
            position, at = await asyncio.wait_for(pushed.get(), 1)
        except TimeoutError:
            continue
        status, _ = await socket.ask("GET", f"/v1/wait?position={position}&timeout=60")
        load.statuses[status] = load.statuses.get(status, 0) + 1
        load.delays.append(time.perf_counter() - at)


def rows_of(count: int) -> pa.Table:
    """Random rows with the current time."""
    chance = np.random.default_rng()
    columns: dict[str, Any] = {name: pa.array(chance.integers(0, 256, count, dtype=np.int32)) for name in "abcd"}
    return pa.table(columns | {"ts": pa.array(np.full(count, time.time_ns() // 1000), pa.timestamp("us", tz="UTC"))})


def stream_of(table: pa.Table) -> bytes:
    """A table as an Arrow stream."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()
