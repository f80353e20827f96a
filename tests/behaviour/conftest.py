"""A pot that every test uses twice: opened in this process, and through a client of its server."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import tureen
from tests.service.running import RunningServer, run_server_without_fast_path

AnySoup = tureen.AnySoup

BASE = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="session", params=["open", "connect"])
def soup(request: pytest.FixtureRequest, served_pot: RunningServer) -> Iterator[AnySoup]:
    """The pot as returned by `open`, and as returned by `connect`."""
    if request.param == "open":
        yield served_pot.soup
    else:
        with tureen.connect(served_pot.url, served_pot.tokens["admin"]) as client:
            yield client


@pytest.fixture(scope="session")
def routed_soup(served_pot: RunningServer) -> Iterator[tureen.Client]:
    """A client of a second server of the pot, without the fast path of invocations."""
    with (
        run_server_without_fast_path(served_pot.soup, heartbeat=0.2) as server,
        tureen.connect(server.url, server.tokens["admin"]) as client,
    ):
        yield client


_numbers = itertools.count()


@pytest.fixture
def fresh() -> Callable[[str], str]:
    """A function that returns unused names."""
    return lambda base: f"{base}_{next(_numbers)}"


@pytest.fixture
def trades(soup: AnySoup, fresh: Callable[[str], str]) -> str:
    """A stream of trades."""
    name = fresh("trades")
    soup.create_stream(name, "sym STRING, price DOUBLE, qty INT, ts TIMESTAMP", time="ts")
    return name


def rows(*trades: tuple[str, float, int], start: int = 0) -> list[dict[str, Any]]:
    """Rows of trades at intervals of a second, from `start` seconds after `BASE`."""
    return [
        {"sym": sym, "price": price, "qty": qty, "ts": BASE + timedelta(seconds=second)}
        for second, (sym, price, qty) in enumerate(trades, start)
    ]
