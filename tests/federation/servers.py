"""Servers in one process that federate over HTTP, without Spark: answers read their rows from the inbox."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

import tureen
from tests.service.running import RunningServer, run_server
from tureen.pipeline import engine
from tureen.pot.catalog import Catalog, micros_now
from tureen.pot.tokens import create_token

NEVER = 1e6


@contextmanager
def run_servers(root: Path, *names: str, **overrides: Any) -> Iterator[list[RunningServer]]:
    """Servers of these names, on pots in a directory, which may exist already; with settings."""
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setattr(engine, "SPARK_DELAY", NEVER)
        servers = []
        for name in names:
            soup = stack.enter_context(tureen.open(root / name))
            servers.append(stack.enter_context(run_server(soup, name=name, heartbeat=0.2, **overrides)))
        yield servers


def peer_token(server: RunningServer, peer: str) -> str:
    """A token with which a peer may call a server."""
    with Catalog(server.soup.path) as catalog, catalog.write() as tx:
        return create_token(tx, peer, ["peer"], now=micros_now())[1]


def connect(server: RunningServer) -> tureen.Client:
    """A client with an admin's token."""
    return tureen.connect(server.url, server.tokens["admin"])
