"""The open pages of `benchmarks/pages.py`, in a process of their own, so that their clients delay no other client.

Reads a request as a line of JSON from standard input, opens all connections, prints a line, and when another line comes
sends requests for some seconds; then prints their number.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from dataclasses import dataclass

from benchmarks.service import Socket


@dataclass(frozen=True)
class Polling:
    """What a number of pages do."""

    url: str
    token: str
    handles: list[str]
    pages: int
    seconds: float
    is_plain: bool
    """Whether all requests are for `/healthz`: as many, as cheap as can be."""


async def run(polling: Polling) -> int:
    """Send the requests of all pages; their number."""
    sockets = [await Socket.open(polling.url, polling.token) for _ in range(polling.pages)]
    print("connected", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    pages = [_page(polling, socket, number) for number, socket in enumerate(sockets)]
    return sum(await asyncio.gather(*pages))


async def _page(polling: Polling, socket: Socket, number: int) -> int:
    """The requests of one page: of three kinds, by its number."""
    until, sent, tag = time.perf_counter() + polling.seconds, 0, ""
    pause = (2.0, 0.7, 2.0)[number % 3]
    await asyncio.sleep(pause * number / polling.pages)
    while not sent or time.perf_counter() < until:
        if number % 3 == 1:
            path = f"/v1/queries/{polling.handles[number % len(polling.handles)]}/result?limit=500"
            tag = await _poll(polling, socket, path, 1, tag)
            sent += 1
        else:
            paths = [f"/v1/overview?after={time.time() - 2}"]
            paths = paths if number % 3 == 0 else ["/v1/streams?limit=1000", "/v1/status"]
            for path in paths:
                await _poll(polling, socket, path, 2)
            sent += len(paths)
        await asyncio.sleep(pause)
    return sent


async def _poll(polling: Polling, socket: Socket, path: str, max_age: int, tag: str = "") -> str:
    """Send a request with the headers of a page; the tag of what the page has now."""
    if polling.is_plain:
        status, _ = await socket.ask("GET", "/healthz")
        assert status == 200, status
        return ""
    headers = f"Cache-Control: max-age={max_age}\r\n" + (f"If-None-Match: {tag}\r\n" if tag else "")
    response = await socket.exchange("GET", path, headers)
    assert response.status == 200 or (response.status == 304 and tag), (path, response.status)
    sent = re.search(rb"(?i)\r\netag: ([^\r]*)", response.head)
    return "" if sent is None else sent.group(1).decode()


if __name__ == "__main__":
    print(asyncio.run(run(Polling(**json.loads(sys.stdin.readline())))), flush=True)
