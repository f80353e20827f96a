"""A plain event server, beside which `benchmarks/fanout.py` measures: it writes what was pushed to all connections.

Starlette with uvicorn, as the service, and nothing else: no storage, no queries, no access checks, no resumption. Each
connection has a queue; a push puts the encoded event of each row into the queues of all connections that follow it.
The paths and bodies are those of the service, so that the same followers measure both.
"""

from __future__ import annotations

import asyncio
import json
import resource
import socket
from collections.abc import AsyncIterator

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

QUERY_DIGITS = 32
"""The number of digits of a handle, as the service's have."""
POSITION = "1234567890abcdef.123.456789"
"""An id of an event, about as long as the service's."""


class Followers:
    """The queues of all connections, by what they follow."""

    def __init__(self) -> None:
        """Nobody follows yet."""
        self._queues: dict[str, set[asyncio.Queue[bytes]]] = {}

    async def follow(self, request: Request) -> Response:
        """An event stream."""
        return StreamingResponse(self._events(request.path_params["handle"]), media_type="text/event-stream")

    async def _events(self, handle: str) -> AsyncIterator[bytes]:
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        self._queues.setdefault(handle, set()).add(queue)
        yield _event("position", {})
        while True:
            yield await queue.get()

    async def push(self, request: Request) -> Response:
        """Send rows to those that follow them."""
        for row in await request.json():
            handle = handle_of(row["q"])
            data = {"query": handle, "kind": "insert", "row": {name: row[name] for name in ("q", "n", "filler")}}
            event = _event("change", data)
            for queue in self._queues.get(handle, ()):
                queue.put_nowait(event)
        return Response(status_code=202)


def handle_of(number: int) -> str:
    """What to follow for the rows with a number."""
    return f"{number:0{QUERY_DIGITS}x}"


def _event(event_type: str, data: object) -> bytes:
    text = json.dumps(data, separators=(",", ":"))
    return f"id: {POSITION}\nevent: {event_type}\ndata: {text}\n\n".encode()


def main() -> None:
    """Print the server's address and serve until the process ends."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    followers = Followers()
    routes = [
        Route("/v1/queries/{handle}/changes", followers.follow),
        Route("/v1/streams/{name}/rows", followers.push, methods=["POST"]),
    ]
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listener:
        print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        config = uvicorn.Config(Starlette(routes=routes), access_log=False, log_level="warning")
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
