"""A pot that the questions of a file are about."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.why.market import NOON, quote, trade
from tureen.soup.tables import Dimensions
from tureen.testing.manual_engine import ManualEngine
from tureen.window import to_micros


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManualEngine]:
    """Trades and quotes up to noon; some of them are pending, one has expired."""
    engine = ManualEngine(tmp_path_factory.mktemp("pot"), lambda: to_micros(NOON))
    engine.create_stream(
        "trades", "id INT, sym STRING, price DOUBLE, qty INT, ts TIMESTAMP", time="ts", retain="1 hour"
    )
    engine.create_stream("quotes", "id INT, sym STRING, bid DOUBLE, ts TIMESTAMP", time="ts")
    engine.push("trades", [trade(1, "IBM", 99.0, 3, 70), trade(2, "IBM", 99.0, 3, 5), trade(3, "IBM", None, 3, 4)])
    engine.append("trades", [trade(4, "SAP", 200.0, 0, 3), trade(5, "IBM", 150.0, 3, 20), trade(6, "IBM", 150.0, 3, 0)])
    engine.push("quotes", [quote(1, "IBM", 100.0, 2), quote(2, "SAP", 99.0, 1.5), quote(3, "SAP", 199.5, 1)])
    Dimensions(engine.catalog).create("limits", "sym STRING, most INT", [{"sym": "IBM", "most": 2}])
    yield engine
    engine.close()
