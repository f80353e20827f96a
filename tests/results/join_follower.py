"""A follower of a join that compares what it reads with what it computes alone, and tuples to be joined."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from tureen.position import Position
from tureen.results.invoke import Invoker
from tureen.testing.manual_engine import ManualEngine

BASE = datetime(2026, 1, 1, tzinfo=UTC)


COLUMNS = "k INT, x INT, s STRING, ts TIMESTAMP"


def joined_tuple(number: int, keys: int = 3) -> dict[str, Any]:
    """Tuples whose times are not in the order of arrival."""
    key = None if number % 11 == 10 else number % keys
    at = BASE + timedelta(seconds=number - 4 * (number % 2))
    return {"k": key, "x": number % 5, "s": str(number % 2), "ts": at}


class ComparedFollower:
    """Reads from the operator, and compares with what it computes alone."""

    def __init__(self, engine: ManualEngine, handle: str, since: str | None = None) -> None:
        self.engine, self.handle = engine, handle
        self.followed = engine.invoker.follow(handle)
        self.start = since or engine.invoker.new_rows(handle, None).position()
        self.position = Position.parse(self.start)
        self.rows: Counter[str] = Counter()

    def read(self) -> int:
        """Read and compare the new rows; their number."""
        new = self.engine.invoker.new_rows(self.handle, self.position, self.followed)
        alone = self.engine.invoker.new_rows(self.handle, self.position)
        assert new.rows.to_pylist() == alone.rows.to_pylist(), self.handle
        assert [new.position(index) for index in range(len(new))] == [
            alone.position(index) for index in range(len(alone))
        ]
        assert new.position() == alone.position()
        self.position = Position.parse(new.position())
        self.rows.update(map(str, new.rows.to_pylist()))
        return len(new)

    def read_partly(self, rows: int) -> None:
        """Read again from the position of one of the new rows."""
        new = self.engine.invoker.new_rows(self.handle, self.position, self.followed)
        if rows < len(new):
            self.rows.update(map(str, new.rows.slice(0, rows + 1).to_pylist()))
            self.position = Position.parse(new.position(rows))

    def leave(self) -> None:
        """Follow no longer."""
        if self.followed is not None:
            self.engine.invoker.followers.remove(self.followed)

    def check_all(self) -> None:
        """Compare all rows that were read with those of a process that reads them at once."""
        self.read()
        rows = Invoker(self.engine.catalog).new_rows(self.handle, Position.parse(self.start)).rows
        assert self.rows == Counter(map(str, rows.to_pylist()))
