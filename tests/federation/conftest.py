"""Servers in this process, and a twin that has everything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.federation.nodes import Nodes
from tests.federation.trades import NOW, TRADES
from tureen.testing.manual_engine import ManualClock, ManualEngine

LINKS = [("A", "B"), ("B", "C"), ("B", "D")]
"""The streams live at A; C and D know B alone."""


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    """Servers that receive the trades of A."""
    nodes = Nodes(tmp_path, ManualClock(NOW), LINKS)
    nodes["A"].engine.create_stream("trades", TRADES, "ts")
    nodes.share("trades", "A", "B", "C")
    nodes.share("trades", "B", "D")
    yield nodes
    nodes.close()


@pytest.fixture
def twin(tmp_path: Path) -> Iterator[ManualEngine]:
    """One server that has everything."""
    twin = ManualEngine(tmp_path / "twin", ManualClock(NOW))
    twin.create_stream("trades", TRADES, "ts")
    yield twin
    twin.close()
