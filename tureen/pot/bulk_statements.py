"""Bulk statements: one SQL statement over many rows.

SQLite releases the interpreter's lock at every step, and reacquiring it among busy threads is slow. A statement over a
hundred rows is one step; a hundred statements are a hundred (docs/decisions/0016).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection

BATCH_ROWS = 128
"""Rows of one statement; more rows take several statements."""


class BulkStatement:
    """A statement whose text has {rows} where the rows of values go."""

    def __init__(self, text: str, width: int) -> None:
        """Take rows of `width` values each."""
        self._text = text
        self._row = f"({','.join('?' * width)})"

    def run(self, tx: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
        """Execute it for all rows."""
        for sql, values in self._statements(rows):
            _driver_connection(tx).execute(sql, values)

    def read(self, tx: Connection, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The result of a statement that returns one JSON array: fetching row by row would be a step each."""
        items: list[Any] = []
        for sql, values in self._statements(rows):
            items += json.loads(_driver_connection(tx).execute(sql, values).fetchone()[0])
        return items

    def _statements(self, rows: Sequence[tuple[Any, ...]]) -> Iterator[tuple[str, list[Any]]]:
        for start in range(0, len(rows), BATCH_ROWS):
            batch = rows[start : start + BATCH_ROWS]
            yield self._text.format(rows=",".join([self._row] * len(batch))), [value for row in batch for value in row]


def _driver_connection(tx: Connection) -> Any:
    """The driver's own connection: SQLAlchemy takes ten times longer over a statement than SQLite."""
    return tx.connection.driver_connection
