"""The same pot twice: opened in this process, and served and connected to. Every test runs on both."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import tureen
from tests.service.running import Running

AnySoup = tureen.Soup | tureen.Client

BASE = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="session", params=["open", "connect"])
def soup(request: pytest.FixtureRequest, served_pot: Running) -> Iterator[AnySoup]:
    """The pot as `open` gives it, and as `connect` does."""
    if request.param == "open":
        yield served_pot.soup
    else:
        with tureen.connect(served_pot.url, served_pot.tokens["admin"]) as client:
            yield client


_numbers = itertools.count()


@pytest.fixture
def fresh() -> Callable[[str], str]:
    """Names that nobody has taken yet."""
    return lambda base: f"{base}_{next(_numbers)}"


@pytest.fixture
def trades(soup: AnySoup, fresh: Callable[[str], str]) -> str:
    """A stream of trades."""
    name = fresh("trades")
    soup.create_stream(name, "sym STRING, price DOUBLE, qty INT, ts TIMESTAMP", time="ts")
    return name


def rows(*given: tuple[str, float, int], start: int = 0) -> list[dict[str, Any]]:
    """Trades, a second apart, from so many seconds on."""
    return [
        {"sym": sym, "price": price, "qty": qty, "ts": BASE + timedelta(seconds=place)}
        for place, (sym, price, qty) in enumerate(given, start)
    ]
