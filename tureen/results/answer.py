"""Answers, and their changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pyarrow as pa

from tureen.window import from_micros


class Bounds(NamedTuple):
    """The window of an answer, both ends included; None is unbounded."""

    begin: datetime | None
    end: datetime | None

    @classmethod
    def of(cls, begin: int | None, end: int | None) -> Bounds:
        """The bounds for two instants in microseconds."""
        return cls(_moment(begin), _moment(end))


@dataclass(frozen=True)
class Answer:
    """The rows of a query over its window at one NOW."""

    table: pa.Table
    window: Bounds
    position: str
    complete: bool
    """False if the window extends beyond the stream's retention."""

    def __len__(self) -> int:
        """The number of rows."""
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows as dicts."""
        return iter(self.table.to_pylist())

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame."""
        return self.table.to_pandas()


@dataclass(frozen=True, slots=True)
class Change:
    """A row that joined the answer of a query; resuming from its position returns the changes after it.

    A row of a group may also change or leave. After a "reset", which has no row, the changes are all rows of the
    answer: forget those before.
    """

    query: str
    row: dict[str, Any]
    """The row; if it left the answer, as it was."""
    position: str
    label: str | int | None = None
    """The label of the query, if it belongs to a template with labels."""
    kind: str = "insert"
    """One of "insert", "update", "delete" and "reset"."""
    before: dict[str, Any] | None = None
    """The row before it changed or left."""


def _moment(micros: int | None) -> datetime | None:
    if micros is None:
        return None
    try:
        return from_micros(micros)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) if micros > 0 else datetime.min.replace(tzinfo=UTC)
