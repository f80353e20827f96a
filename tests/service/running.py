"""A server in a thread of the tests' process, on a free port, with a few tokens; and ways to talk to it."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

import tureen
from tureen.pot.catalog import Catalog, micros_now
from tureen.pot.tokens import create_token
from tureen.service.server import Server, bind, make_server
from tureen.service.settings import Settings
from tureen.service.state import Service

PRINCIPALS = {
    "admin": ("local", ["admin"]),
    "read": ("local", ["read"]),
    "write": ("local", ["write"]),
    "both": ("local", ["read", "write"]),
    "other": ("somebody else", ["read", "write"]),
}
"""The tokens of the tests: principal and scopes."""


@dataclass(frozen=True)
class Running:
    """A server that answers."""

    url: str
    soup: tureen.Soup
    service: Service
    server: Server
    tokens: dict[str, str]

    def client(self, token: str | None = "admin") -> httpx.Client:
        """A client with one of the tokens, or without."""
        headers = {} if token is None else {"Authorization": f"Bearer {self.tokens.get(token, token)}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60)


def make_tokens(soup: tureen.Soup) -> dict[str, str]:
    """The tokens of `PRINCIPALS`, by their names."""
    catalog = Catalog(soup.path)
    try:
        with catalog.write() as tx:
            return {
                name: create_token(tx, principal, scopes, now=micros_now())[1]
                for name, (principal, scopes) in PRINCIPALS.items()
            }
    finally:
        catalog.close()


@contextmanager
def running(soup: tureen.Soup, **settings: Any) -> Iterator[Running]:
    """Serve a pot for a while."""
    wanted = Settings(**{"port": 0, "log_requests": False, **settings})
    address = bind(wanted)
    server, service = make_server(soup, wanted)
    thread = threading.Thread(target=_serve, args=(server, address), name="tests-server")
    thread.start()
    try:
        url = f"http://127.0.0.1:{address.getsockname()[1]}"
        yield Running(url, soup, service, server, make_tokens(soup))
    finally:
        service.stop_following()
        server.should_exit = True
        thread.join()
        service.close()


def _serve(server: Server, address: socket.socket) -> None:
    with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
        runner.run(server.serve(sockets=[address]))


@dataclass(frozen=True)
class Event:
    """A server-sent event."""

    id: str | None
    kind: str
    data: str


def events(response: httpx.Response) -> Iterator[Event]:
    """The events of a stream, as they come; comments are left out."""
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        if not line:
            if "data" in fields:
                yield Event(fields.get("id"), fields["event"], fields["data"])
            fields = {}
        elif not line.startswith(":"):
            key, _, value = line.partition(": ")
            fields[key] = value
