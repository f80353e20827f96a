"""A server, a proxy in front of it that can fail, and a stream."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

import tureen
from tests.client.proxy import Proxy, proxy
from tests.service.running import RunningServer

_numbers = itertools.count()


@pytest.fixture
def faulty(served_pot: RunningServer) -> Iterator[Proxy]:
    """A proxy in front of the server that can fail."""
    with proxy(served_pot.url) as faulty:
        yield faulty


@pytest.fixture
def client(served_pot: RunningServer, faulty: Proxy) -> Iterator[tureen.Client]:
    """A client that connects through the proxy."""
    with tureen.connect(faulty.url, served_pot.tokens["admin"], patience=20) as client:
        yield client


@pytest.fixture
def stream(served_pot: RunningServer) -> str:
    """A stream of numbers."""
    name = f"numbers_{next(_numbers)}"
    served_pot.soup.create_stream(name, "n INT, at TIMESTAMP, d DECIMAL(9, 2)", time="at")
    return name
