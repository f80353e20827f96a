"""Latency of other clients while the server is attacked: an attack for each limit, and the p99 of the others.

The attacker is a separate process with the lowest priority, so that on a machine of few cores its own work does not
slow down the server. The measured clients invoke standing queries, as in `benchmarks/service.py`.
"""

from __future__ import annotations

import asyncio
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pyarrow as pa

from benchmarks.report import Report
from benchmarks.service import ARROW, Load, Socket, rows_of, serving, stream_of

SECONDS = float(os.environ.get("TUREEN_BENCH_SECONDS", "15"))
CLIENTS = 8
PAUSE = 0.02
ALLOWED_STATUSES = {400, 408, 409, 413, 429, 431, 503}
"""The statuses that an attacker may get; 5xx other than 503 would be a failure of the server."""


class Attack:
    """A client that hits a limit repeatedly, until its time is over."""

    def __init__(self, url: str, token: str, seconds: float) -> None:
        """Attack a server for a number of seconds."""
        address = urlsplit(url)
        self._address = (str(address.hostname), int(address.port or 80))
        self._token = token
        self._seconds, self._until = seconds, 0.0
        self.http = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=120)
        self.requests = 0

    def begin(self) -> None:
        """Tell the benchmark that the attack is under way."""
        self._until = time.monotonic() + self._seconds
        print("begun", flush=True)

    def running(self) -> bool:
        """Whether there is time left; counts the requests."""
        if not self._until:
            self.begin()
        self.requests += 1
        return time.monotonic() < self._until

    def connect(self) -> socket.socket:
        """Open a connection."""
        return socket.create_connection(self._address, timeout=30)

    def endless_header(self) -> None:
        """Headers without an end."""
        while self.running():
            with self.connect() as connection, suppress(OSError):
                connection.sendall(b"GET /v1/status HTTP/1.1\r\nX-Long: ")
                while time.monotonic() < self._until:
                    connection.sendall(b"a" * 65_536)

    def half_open(self) -> None:
        """1,500 requests whose headers do not end."""
        connections = []
        for _ in range(1_500):
            connections.append(self.connect())
            connections[-1].sendall(b"GET /v1/status HTTP/1.1\r\n")
        while self.running():
            time.sleep(0.1)
        for connection in connections:
            connection.close()

    def slow_body(self) -> None:
        """500 bodies that come a byte at a time."""
        head = (
            f"POST /v1/sql HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {self._token}\r\nContent-Length: 99999\r\n\r\n"
        )
        connections = [self.connect() for _ in range(500)]
        for connection in connections:
            connection.sendall(head.encode())
        while self.running():
            for connection in connections:
                with suppress(OSError):
                    connection.sendall(b"{")
            time.sleep(0.1)

    def long_text(self) -> None:
        """Expressions whose results would explode."""
        longer = "replace(rpad(cast(a AS STRING), 10000, 'xy'), 'x', rpad(cast(b AS STRING), 10000, 'ab'))"
        sql = f"SELECT length(replace({longer}, 'a', {longer})) AS n FROM s"
        handle = self.http.post("/v1/queries", json={"sql": sql}).json()["id"]
        while self.running():
            self._check_refused(self.http.get(f"/v1/queries/{handle}/result"))
        self.http.delete(f"/v1/queries/{handle}")

    def packed_arrow(self) -> None:
        """Small Arrow bodies that unpack to gigabytes."""
        zeros, sink = pa.array([0] * 1_000_000, pa.int32()), pa.BufferOutputStream()
        batch = pa.record_batch(dict.fromkeys("abcd", zeros))
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
            for _ in range(160):
                writer.write_batch(batch)
        body = sink.getvalue().to_pybytes()
        while self.running():
            self._check_refused(self.http.post("/v1/streams/s/rows", content=body, headers={"Content-Type": ARROW}))

    def long_list(self) -> None:
        """Registrations of lists of 100,000 numbers."""
        numbers = ", ".join(str(3 * number) for number in range(100_000))
        while self.running():
            created = self.http.post("/v1/queries", json={"sql": f"SELECT a FROM s WHERE a IN ({numbers})"})
            assert created.status_code == 201, created.text
            self.http.delete(f"/v1/queries/{created.json()['id']}")

    def nesting(self) -> None:
        """Conditions of 10,000 nested parentheses."""
        sql = f"SELECT a FROM s WHERE {'(' * 10_000}a = 1{')' * 10_000}"
        while self.running():
            self._check_refused(self.http.post("/v1/queries", json={"sql": sql}))

    def stalled_followers(self) -> None:
        """20 followers that do not read, of a stream that is pushed to."""
        handle = self.http.post("/v1/queries", json={"sql": "SELECT * FROM t"}).json()["id"]
        path = f"/v1/queries/{handle}/changes"
        head = f"GET {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {self._token}\r\n\r\n".encode()
        connections = [self.connect() for _ in range(20)]
        for connection in connections:
            # With a small receive buffer they stall soon; until then they are followers like others.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            connection.sendall(head)
        body = stream_of(rows_of(1_000))
        for _ in range(60):
            self.http.post("/v1/streams/t/rows", content=body, headers={"Content-Type": ARROW})
            time.sleep(0.1)
        self.begin()
        while self.running():
            self.http.post("/v1/streams/t/rows", content=body, headers={"Content-Type": ARROW})
            time.sleep(0.1)
        for connection in connections:
            connection.close()
        self.http.delete(f"/v1/queries/{handle}")

    @staticmethod
    def _check_refused(response: httpx.Response) -> None:
        assert response.status_code in ALLOWED_STATUSES, f"{response.status_code} {response.text[:200]}"


ATTACKS: dict[str, Callable[[Attack], None]] = {
    name: getattr(Attack, name)
    for name in (
        "endless_header",
        "half_open",
        "slow_body",
        "long_text",
        "packed_arrow",
        "long_list",
        "nesting",
        "stalled_followers",
    )
}


def measure(root: Path, report: Report) -> None:
    """The p99 of other clients without an attack, and during each attack."""
    with serving(root / "limits") as (_, url, token):
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=url, headers=headers, timeout=120) as http:
            while http.get("/healthz").status_code != 200:
                time.sleep(0.2)
            for name in ("s", "t"):
                http.post("/v1/streams", json={"name": name, "schema": "a INT, b INT, c INT, d INT, ts TIMESTAMP"})
            arrow = {"Content-Type": ARROW}
            pushed = http.post("/v1/streams/s/rows", content=stream_of(rows_of(20_000)), headers=arrow).json()
            http.get("/v1/wait", params={"position": pushed["position"], "timeout": 120})
            handles = [
                str(http.post("/v1/queries", json={"sql": f"SELECT a, b FROM s WHERE a = {number}"}).json()["id"])
                for number in range(100)
            ]
            _p99(url, token, handles)
            usual = _p99(url, token, handles)
            report.add(f"invocation, p99 of {CLIENTS} clients without an attack", usual, "ms")
            for name, attack in ATTACKS.items():
                during = _during(name, url, token, handles)
                report.add(f"the same during: {(attack.__doc__ or name).rstrip('.').lower()}", during, "ms")
            report.add("the same afterwards", _p99(url, token, handles), "ms")
            assert http.get("/healthz").status_code == 200, "the server is not ready after the attacks"


def _during(name: str, url: str, token: str, handles: list[str]) -> float:
    command = [sys.executable, "-m", "benchmarks.limits", url, token, name, str(SECONDS + 4)]
    attacker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert attacker.stdout is not None
    assert attacker.stdout.readline() == "begun\n"
    time.sleep(2)
    try:
        return _p99(url, token, handles)
    finally:
        assert attacker.wait(timeout=120) == 0, f"the attack {name} failed"


def _p99(url: str, token: str, handles: list[str]) -> float:
    """The p99 in milliseconds of clients with a connection each; every response must have status 200."""
    load = Load()

    async def client(number: int, until: float) -> None:
        connection = await Socket.open(url, token)
        while time.perf_counter() < until:
            number += 1
            began = time.perf_counter()
            status, _ = await connection.ask("GET", f"/v1/queries/{handles[number % len(handles)]}/result")
            load.latencies.append(time.perf_counter() - began)
            assert status == 200, status
            await asyncio.sleep(PAUSE)

    async def clients() -> None:
        until = time.perf_counter() + SECONDS
        await asyncio.gather(*(client(10 * number, until) for number in range(CLIENTS)))

    asyncio.run(clients())
    return 1000 * statistics.quantiles(load.latencies, n=100)[98]


def _attack(url: str, token: str, name: str, seconds: str) -> None:
    os.nice(19)
    attack = Attack(url, token, float(seconds))
    ATTACKS[name](attack)
    print(name, attack.requests, "attempts", file=sys.stderr)


if __name__ == "__main__":
    _attack(*sys.argv[1:])
