"""Pushes with punctuations, repeated by a process until it is killed."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tureen.closed.rules import Rules
from tureen.pot import log
from tureen.punctuation import Punctuation, Range
from tureen.testing.manual_engine import ManualEngine

BASE = datetime(2026, 1, 1, tzinfo=UTC)
RULES = {"s": Rules(), "u": Rules(("n",), 60_000_000)}
LATENESS = timedelta(seconds=60)


def row(n: int, k: int, second: int = 0) -> dict[str, Any]:
    """A row."""
    return {"n": n, "k": k, "ts": BASE + timedelta(seconds=second)}


PUSHES: list[list[Any]] = [
    [row(0, 0), Punctuation(k=0), row(1, 0), row(2, 1)],
    [row(2, 1), row(3, 2, 30), Punctuation(ts=Range(high=BASE - timedelta(days=1)))],
    [row(4, 0), row(5, 3, -90_000), row(6, 3, 100)],
    [Punctuation(k=[1, 2]), row(7, 1), row(8, 4, 20), row(9, 4, 130)],
    [row(3, 5, 150), row(10, 2, 150), Punctuation(n=11, k=6), row(11, 6, 150), row(12, 6, 150)],
]
"""Every push has rows that earlier ones close."""


def work(engine: ManualEngine) -> None:
    """Push everything, with keys; take and trim between the pushes."""
    for stream in RULES:
        for number, items in enumerate(PUSHES):
            engine.append(stream, items, key=f"push {number}")
            if number % 2:
                engine.take(stream)
                engine.inbox.trim()


def work_until_killed(root: Path, point: str) -> None:
    """Work as a process that is killed at a point."""
    log.SEGMENT_BYTES = 1
    engine = ManualEngine(root)
    (Path(os.environ["TUREEN_CRASH_DIR"]) / point).touch()
    work(engine)


def create_pot(root: Path) -> None:
    """Create the streams."""
    engine = ManualEngine(root)
    for stream, rules in RULES.items():
        engine.create_stream(stream, "n INT, k INT, ts TIMESTAMP", "ts", rules=rules)
    engine.close()
