"""A server, a way to it that can fail, and a stream."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

import tureen
from tests.client.proxy import Proxy, proxy
from tests.service.running import Running

_numbers = itertools.count()


@pytest.fixture
def door(served_pot: Running) -> Iterator[Proxy]:
    """A way to the server that can fail."""
    with proxy(served_pot.url) as found:
        yield found


@pytest.fixture
def client(served_pot: Running, door: Proxy) -> Iterator[tureen.Client]:
    """A client that goes that way."""
    with tureen.connect(door.url, served_pot.tokens["admin"], patience=20) as found:
        yield found


@pytest.fixture
def stream(served_pot: Running) -> str:
    """A stream of numbers."""
    name = f"numbers_{next(_numbers)}"
    served_pot.soup.create_stream(name, "n INT, at TIMESTAMP, d DECIMAL(9, 2)", time="at")
    return name
