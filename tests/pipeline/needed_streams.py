"""Streams that keep what is needed, in a pot without Spark, and what is pushed to them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tureen.closed.rules import Rules
from tureen.pot.streams import find_stream
from tureen.punctuation import Punctuation
from tureen.testing.manual_engine import ManualEngine
from tureen.window import from_micros

START = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = "k INT, ts TIMESTAMP"


def at(second: int) -> datetime:
    return START + timedelta(seconds=second)


def row(k: int, second: int) -> dict[str, object]:
    return {"k": k, "ts": at(second)}


def push(soup: ManualEngine, stream: str, *rows: dict[str, object] | Punctuation) -> None:
    """Push rows and punctuations, and take them into a run."""
    soup.append(stream, list(rows))
    soup.take(stream)


def push_ten_runs(soup: ManualEngine) -> None:
    """Push ten rows, five seconds apart, each of which becomes a run."""
    for second in range(0, 50, 5):
        push(soup, "s", row(second, second))


def derive_all(soup: ManualEngine) -> None:
    """Push what derived streams have to, and note their progress in the catalog."""
    soup.derive()
    soup.deriver.note_progress()


def freed_before(soup: ManualEngine, name: str = "s") -> datetime | None:
    with soup.catalog.read() as tx:
        freed = find_stream(tx, name).freed_before
    return None if freed is None else from_micros(freed)


def keys(soup: ManualEngine, handle: str) -> list[int]:
    return [int(row["k"]) for row in soup.invoke(handle)]


def needed_streams(soup: ManualEngine, *names: str, lateness: int | None = None) -> None:
    """Create streams that keep what is needed, with a lateness in seconds."""
    rules = Rules((), None if lateness is None else lateness * 1_000_000, None)
    for name in names:
        soup.create_stream(name, SCHEMA, time="ts", clock="stream", retain="needed", rules=rules)
