"""A server in a thread of the test process, on a free port, with tokens; and a parser of server-sent events."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

import tureen
from tests.fast_path_switch import without_fast_paths
from tureen.fast_paths import FastPath
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
    "peer": ("another server", ["peer"]),
}
"""The principal and scopes of each token."""


_WITHOUT_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Trusts no certificate: each client would read those of the system, which takes 20 ms."""


@dataclass(frozen=True)
class RunningServer:
    """A running server and its tokens."""

    url: str
    soup: tureen.Soup
    service: Service
    server: Server
    tokens: dict[str, str]

    def client(self, token: str | None = "admin") -> httpx.Client:
        """A client with a token, named as in `PRINCIPALS` or given as text, or without a token."""
        headers = {} if token is None else {"Authorization": f"Bearer {self.tokens.get(token, token)}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60, verify=_WITHOUT_TLS)


def make_tokens(soup: tureen.Soup) -> dict[str, str]:
    """Create the tokens of `PRINCIPALS`."""
    catalog = Catalog(soup.path)
    try:
        with catalog.write() as tx:
            return {
                name: create_token(tx, principal, scopes, now=micros_now())[1]
                for name, (principal, scopes) in PRINCIPALS.items()
            }
    finally:
        catalog.close()


def run_server(soup: tureen.Soup, **overrides: Any) -> AbstractContextManager[RunningServer]:
    """Serve a pot until the end of the context."""
    settings = Settings(**{"port": 0, "log_requests": False, **overrides})
    return _running(bind(settings), *make_server(soup, settings), soup)


@contextmanager
def serve_new_pot(path: Path) -> Iterator[RunningServer]:
    """Create a pot, start its engine and serve it until the end of the context."""
    with tureen.open(path, mode="write") as soup:
        soup.start(wait=120)
        with run_server(soup, heartbeat=0.2) as server:
            yield server


def run_server_without_fast_path(soup: tureen.Soup, **overrides: Any) -> AbstractContextManager[RunningServer]:
    """Serve a pot; FastAPI's router answers all invocations."""
    with without_fast_paths(FastPath.HTTP_FAST_PATH):
        return run_server(soup, **overrides)


@contextmanager
def _running(address: socket.socket, server: Server, service: Service, soup: tureen.Soup) -> Iterator[RunningServer]:
    thread = threading.Thread(target=_serve, args=(server, address), name="tests-server")
    thread.start()
    try:
        url = f"http://127.0.0.1:{address.getsockname()[1]}"
        yield RunningServer(url, soup, service, server, make_tokens(soup))
    finally:
        service.stop_following()
        server.should_exit = True
        thread.join()
        service.close()


def _serve(server: Server, address: socket.socket) -> None:
    with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
        runner.run(server.serve(sockets=[address]))


@dataclass(frozen=True)
class SentEvent:
    """A server-sent event."""

    id: str | None
    event_type: str
    data: str


def events(response: httpx.Response) -> Iterator[SentEvent]:
    """The events of a response as they arrive, without comments."""
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        if not line:
            if "data" in fields:
                yield SentEvent(fields.get("id"), fields["event"], fields["data"])
            fields = {}
        elif not line.startswith(":"):
            key, _, value = line.partition(": ")
            fields[key] = value
