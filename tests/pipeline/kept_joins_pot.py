"""A pot with two streams that are joined, and whether kept results of their join are used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tureen.pipeline import arrival
from tureen.pot.kept_joins import join_status
from tureen.testing.manual_engine import ManualEngine

START = datetime(2026, 1, 1, tzinfo=UTC)


SQL = "SELECT a.n AS x, b.n AS y FROM a JOIN b ON a.k = b.k WHERE a.n < 90"


def rows(first: int, count: int, keys: int = 10, *, step: int = 1) -> list[dict[str, Any]]:
    return [
        {"n": number, "k": number % keys, "ts": START + timedelta(seconds=number * step)}
        for number in range(first, first + count)
    ]


def answer(engine: ManualEngine, handle: str) -> list[dict[str, Any]]:
    return list(engine.invoke(handle))


def kept(engine: ManualEngine, handle: str) -> dict[str, Any]:
    about: dict[str, Any] = engine.invoker.explain(handle)["kept_join"]
    return about


def check_kept(engine: ManualEngine, handles: Sequence[str], lazy: Sequence[str]) -> None:
    """Each query uses kept results, and answers as one that does not."""
    for handle, other in zip(handles, lazy, strict=True):
        assert kept(engine, handle)["used"]
        assert answer(engine, handle) == answer(engine, other)


def pairs(engine: ManualEngine, *texts: str) -> tuple[list[str], list[str]]:
    return (
        [engine.register(text, materialize=True) for text in texts],
        [engine.register(text, materialize=False) for text in texts],
    )


def status(engine: ManualEngine) -> dict[str, int]:
    with engine.catalog.read() as tx:
        return join_status(tx)


@contextmanager
def joined_pot(root: Path) -> Iterator[ManualEngine]:
    """The pot, with short runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrival, "TAIL_ROWS", 8)
        opened = ManualEngine(root)
        for name in "ab":
            opened.create_stream(name, "n INT, k INT, ts TIMESTAMP", time="ts", clock="stream")
        opened.push("a", rows(0, 30))
        opened.push("b", rows(0, 20))
        yield opened
        opened.close()
