"""Tuples of streams that others are derived from, and answers as rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from tureen.testing.manual_engine import ManualEngine

BASE = datetime(2026, 1, 1, tzinfo=UTC)


SCHEMA = "k INT, v INT, ts TIMESTAMP"


def row(number: int) -> dict[str, Any]:
    """Tuples whose times are not in the order of arrival."""
    return {"k": number % 3, "v": number, "ts": BASE + timedelta(seconds=number - 4 * (number % 2))}


def answer(engine: ManualEngine, sql: str) -> list[dict[str, Any]]:
    return list(engine.invoker.answer_once(sql))


def counted(rows: Sequence[dict[str, Any]]) -> Counter[tuple[tuple[str, Any], ...]]:
    return Counter(tuple(sorted(each.items())) for each in rows)
