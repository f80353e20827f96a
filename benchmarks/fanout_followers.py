"""The followers of `benchmarks/fanout.py`, in one process: thousands of sockets, each with an event stream.

Reads a request as a line of JSON from standard input, prints its measurements as a line of JSON, and keeps all
connections open until its input ends.
"""

from __future__ import annotations

import asyncio
import json
import re
import resource
import socket
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from benchmarks import machine
from benchmarks.service import Socket

TIMEOUT = 120.0
"""The most seconds for the rows of a push to arrive everywhere."""
AT_A_TIME = 64
"""The number of connections that are opened at a time."""
FEED_ROWS = 10
"""The number of rows of a push to the feed's stream."""
_ROW = re.compile(rb'"row":\{"q":(\d+),"n":(\d+)')


class FollowerConnection(asyncio.Protocol):
    """A connection with an event stream, and the rows that came."""

    def __init__(self, path: str, token: str) -> None:
        """Follow what is at a path."""
        self._path, self._token = path, token
        self.following: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.rows: list[tuple[int, int]] = []
        self.times: list[float] = []
        """When each row came."""
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the request."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        head = f"GET {self._path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self._token}\r\n\r\n"
        transport.write(head.encode())

    def data_received(self, data: bytes) -> None:
        """Note the rows that are complete."""
        content = self._rest + data
        if not self.following.done():
            if b"event: position" not in content:
                self._rest = content
                return
            self.following.set_result(None)
        end = content.rfind(b"\n\n") + 1
        complete, self._rest = content[:end], content[end:]
        if b"event: error" in complete:
            raise RuntimeError(complete.decode())
        rows = [(int(q), int(n)) for q, n in _ROW.findall(complete)]
        self.rows += rows
        self.times += [time.perf_counter()] * len(rows)

    def connection_lost(self, error: Exception | None) -> None:
        """Fail if it was not followed yet."""
        if not self.following.done():
            self.following.set_exception(error or ConnectionError(self._rest.decode(errors="replace")))


async def connect(request: dict[str, Any], paths: Sequence[str], *, small: bool = False) -> list[FollowerConnection]:
    """Open connections and wait until all follow; small ones have little room for what was not read."""
    host, _, port = request["url"].removeprefix("http://").partition(":")
    loop, connections = asyncio.get_running_loop(), list[FollowerConnection]()
    for start in range(0, len(paths), AT_A_TIME):
        group = []
        for path in paths[start : start + AT_A_TIME]:
            endpoint = socket.socket()
            if small:
                endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            endpoint.setblocking(False)
            await loop.sock_connect(endpoint, (host, int(port)))

            def follower(path: str = path) -> FollowerConnection:
                return FollowerConnection(path, request["token"])

            _, connection = await loop.create_connection(follower, sock=endpoint)
            group.append(connection)
        await asyncio.gather(*(connection.following for connection in group))
        connections += group
    return connections


async def push(pusher: Socket, stream: str, rows: Sequence[tuple[int, int]], filler: str = "") -> None:
    """Push rows."""
    now = datetime.now(UTC).isoformat()
    body = json.dumps([{"q": q, "n": n, "filler": filler, "ts": now} for q, n in rows]).encode()
    status, answer = await pusher.ask("POST", f"/v1/streams/{stream}/rows", body)
    assert status == 202, answer


async def arrived(connections: Sequence[FollowerConnection], counts: Sequence[int]) -> None:
    """Wait until each connection has a number of rows."""
    deadline = time.perf_counter() + TIMEOUT
    while any(len(connection.rows) < count for connection, count in zip(connections, counts, strict=True)):
        if time.perf_counter() > deadline:
            raise TimeoutError("the rows of a push did not arrive everywhere")
        await asyncio.sleep(0.002)


async def measure(request: dict[str, Any]) -> dict[str, Any]:
    """Follow, push, and wait for the rows, several times; verify what came."""
    handles, is_feed, rounds = request["handles"], request.get("feed", False), request["rounds"]
    began = time.perf_counter()
    paths = ["/v1/changes" if is_feed else f"/v1/queries/{handle}/changes" for handle in handles]
    connections = await connect(request, [paths[number % len(paths)] for number in range(request["followers"])])
    connected = time.perf_counter() - began
    stalled = await connect(request, paths[: request.get("stalled", 0)], small=True)
    pusher = await Socket.open(request["url"], request["token"])
    stream, numbers = ("t", range(FEED_ROWS)) if is_feed else ("s", range(len(handles)))
    for connection in stalled:
        connection.transport.pause_reading()
    missed = 0
    if request.get("bulk"):
        for number in range(request["stalled_rows"] // 100):
            each = 100 // len(numbers)
            rows = [(q, 1_000_000 + number) for q in numbers for _ in range(each)]
            await push(pusher, stream, rows, "x" * request["stalled_bytes"])
            missed += each
    per_push = 2 * len(numbers) if is_feed else 1
    await arrived(connections, [missed] * len(connections))
    firsts, middles, lasts = [], [], []
    used = 0.0
    for number in range(rounds + 1):
        if number == 1:
            used = machine.process_seconds(request["server"])
        began = time.perf_counter()
        await push(pusher, stream, [(q, number) for q in numbers])
        await arrived(connections, [missed + (number + 1) * per_push] * len(connections))
        times = sorted(connection.times[-1] - began for connection in connections)
        if number:  # the first is the warm-up
            firsts.append(times[0])
            middles.append(times[len(times) // 2])
            lasts.append(times[-1])
    used = machine.process_seconds(request["server"]) - used
    for connection in stalled:
        assert len(connection.rows) < missed, "a connection that does not read has got all rows"
        connection.transport.resume_reading()
    await arrived(stalled, [missed + rounds + 1] * len(stalled))
    _verify([*connections, *stalled], is_feed, rounds, missed)
    caught_up = sum(len(connection.rows) for connection in stalled)
    return {
        "connected": connected,
        "first": firsts,
        "middle": middles,
        "last": lasts,
        "used": used / rounds,
        "caught_up": caught_up,
    }


def _verify(connections: Sequence[FollowerConnection], is_feed: bool, rounds: int, missed: int) -> None:
    for connection in connections:
        numbers = [n for _, n in connection.rows[missed:]]
        if is_feed:
            expected = [(q, number) for number in range(rounds + 1) for q in range(FEED_ROWS) for _ in range(2)]
            assert sorted(connection.rows) == sorted(expected), "the feed has other rows than were pushed"
        else:
            assert numbers == list(range(rounds + 1)), "a follower has other rows than were pushed"
            assert len({q for q, _ in connection.rows}) == 1, "a follower has rows of another query"


async def main() -> None:
    """Serve one request."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    results = await measure(json.loads(sys.stdin.readline()))
    print(json.dumps(results), flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
