"""A pot that every test uses twice: opened in this process, and through a client of its server.

The tests run once more with a pot that was opened and is used without fast paths.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import tureen
from tests.fast_path_switch import without_fast_paths
from tests.service.running import RunningServer, run_server_without_fast_path, serve_new_pot

AnySoup = tureen.AnySoup

BASE = datetime(2026, 1, 1, tzinfo=UTC)


FAST, PLAIN = "fast", "plain"

OVER_HTTP = {"router", "sql", "command", "process"}
"""Parameters of tests that call the server as `connect` and `http` do; these suffice without fast paths."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out the tests of `OVER_HTTP` without fast paths."""
    items[:] = [
        item
        for item in items
        if not (isinstance(item, pytest.Function) and hasattr(item, "callspec") and is_repeated(item.callspec.params))
    ]


def is_repeated(parameters: dict[str, object]) -> bool:
    """Whether a test with these parameters is left out."""
    return parameters.get("served_pot") == PLAIN and not OVER_HTTP.isdisjoint(map(str, parameters.values()))


@pytest.fixture(scope="session")
def plain_pot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A served pot, created while fast paths are turned off."""
    with serve_new_pot(tmp_path_factory.mktemp("plain") / "pot") as server:
        yield server


@pytest.fixture(scope="module", params=[FAST, PLAIN])
def served_pot(request: pytest.FixtureRequest, fast_pot: RunningServer) -> Iterator[RunningServer]:
    """The pot with fast paths, and one without, which are turned off while its tests run."""
    if request.param == FAST:
        yield fast_pot
    else:
        with without_fast_paths():
            yield request.getfixturevalue("plain_pot")


@pytest.fixture(scope="module", params=["open", "connect"])
def soup(request: pytest.FixtureRequest, served_pot: RunningServer) -> Iterator[AnySoup]:
    """The pot as returned by `open`, and as returned by `connect`."""
    if request.param == "open":
        yield served_pot.soup
    else:
        with tureen.connect(served_pot.url, served_pot.tokens["admin"]) as client:
            yield client


@pytest.fixture(scope="module")
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
