"""A stream of a few rows in the oracle, and the answers of queries over it, for tests with expected answers by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tureen.testing import Oracle, comparable

SECOND = 1_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Row = tuple[Any, ...]


def at(seconds: float) -> datetime:
    return EPOCH + timedelta(seconds=seconds)


def stream(columns: str, *rows: Row, **options: Any) -> Oracle:
    """An oracle at wall clock 100 s with a stream of these columns and a time: the last value, in seconds."""
    oracle = Oracle(clock=lambda: 100 * SECOND)
    oracle.create_stream("s", f"{columns}, ts TIMESTAMP", time="ts", **options)
    push(oracle, columns, *rows)
    return oracle


def push(oracle: Oracle, columns: str, *rows: Row) -> None:
    names = [part.split()[0] for part in columns.split(", ")]
    oracle.push("s", [{**dict(zip(names, row, strict=False)), "ts": at(row[-1])} for row in rows])


def answer(oracle: Oracle, sql: str, now: int | None = None) -> list[Row]:
    """The answer's rows as tuples; instants as seconds."""
    rows = oracle.register(sql).invoke(None if now is None else now * SECOND)
    return [tuple(_seconds(value) for value in row.values()) for row in rows]


def _seconds(value: Any) -> Any:
    return (value - EPOCH) / timedelta(seconds=1) if isinstance(value, datetime) else value


def exact(rows: list[Row]) -> Any:
    """Rows in a form in which NaN equals itself and -0.0 does not equal 0.0."""
    return comparable([{str(number): value for number, value in enumerate(row)} for row in rows])


def numbers(*values: Any, type_: str = "INT") -> Oracle:
    """A stream of values x, one per second from 0 s."""
    return stream(f"x {type_}", *((value, second) for second, value in enumerate(values)))
