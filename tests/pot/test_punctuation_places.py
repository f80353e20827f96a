"""The places of punctuations among the tuples of a stream, pending and taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tureen.pot import log, punctuation_places
from tureen.punctuation import Punctuation
from tureen.testing.manual_engine import ManualEngine

PUSHES: list[list[Any]] = [
    [{"k": 0}, Punctuation(k=10), {"k": 1}, {"k": 10}, Punctuation(k=11)],
    [Punctuation(k=12)],
    [{"k": 11}, {"k": 2}, Punctuation(k=13)],
    [{"k": 3}, {"k": 4}],
    [{"k": 5}, Punctuation(k=14), Punctuation(k=15), {"k": 6}],
]
"""Ten and eleven are rejected, and have no ids."""

PLACES = [(1, 0, "k = 10"), (2, 1, "k = 11"), (2, 2, "k = 12"), (3, 3, "k = 13"), (6, 4, "k = 14"), (6, 5, "k = 15")]


def places(engine: ManualEngine, number: int = 0) -> list[tuple[int, int, str]]:
    state = engine.invoker.snapshot().streams[1]
    placed = state.punctuations(engine.catalog, number).decoded()
    return [(place.next_id, place.number, place.pattern.text(state.stream.schema)) for place in placed]


@pytest.fixture
def engine(tmp_path: Path) -> ManualEngine:
    opened = ManualEngine(tmp_path)
    opened.create_stream("s", "k INT")
    return opened


@pytest.mark.parametrize("taken", range(len(PUSHES) + 1))
def test_places_do_not_depend_on_what_is_taken(
    engine: ManualEngine, monkeypatch: pytest.MonkeyPatch, taken: int
) -> None:
    monkeypatch.setattr(log, "SEGMENT_BYTES", 1)
    for items in PUSHES:
        engine.append("s", items)
    assert places(engine) == PLACES
    for _ in range(taken):
        engine.take("s", 1)
        engine.inbox.trim()
    assert places(engine) == PLACES
    assert places(engine, 3) == PLACES[3:]
    engine.close()
    assert places(ManualEngine(engine.catalog.root)) == PLACES


def test_rows_of_sinks_come_between(engine: ManualEngine) -> None:
    engine.append("s", [{"k": 0}])
    engine.push("s", [{"k": 1}, {"k": 2}])
    engine.append("s", [{"k": 3}, Punctuation(k=10)])
    assert places(engine) == [(4, 0, "k = 10")]
    engine.take("s")
    assert places(engine) == [(4, 0, "k = 10")]


def test_catalog_keeps_the_newest(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(punctuation_places, "KEEP_BYTES", 35)
    for k in range(8):
        engine.append("s", [{"k": k}, Punctuation(k=k)])
        engine.take("s")
    assert places(engine) == [(k + 1, k, f"k = {k}") for k in (6, 7)]
