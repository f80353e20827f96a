"""Statements over many rows at once.

SQLite gives the interpreter up at every step, and among busy threads it takes long to come back. A statement over a
hundred rows is one step; a hundred statements are a hundred (docs/decisions/0016).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection

AT_A_TIME = 128
"""Rows in one statement; more are taken in several."""


class Many:
    """A statement whose text has {rows} where the rows of values go."""

    def __init__(self, text: str, width: int) -> None:
        """Take rows of so many values each."""
        self._text = text
        self._row = f"({','.join('?' * width)})"

    def run(self, tx: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
        """Do it for all rows."""
        for sql, values in self._statements(rows):
            _raw(tx).execute(sql, values)

    def read(self, tx: Connection, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
        """What a statement finds that answers with one JSON array, whatever it finds: a row each would be a step."""
        found: list[Any] = []
        for sql, values in self._statements(rows):
            found += json.loads(_raw(tx).execute(sql, values).fetchone()[0])
        return found

    def _statements(self, rows: Sequence[tuple[Any, ...]]) -> Iterator[tuple[str, list[Any]]]:
        for start in range(0, len(rows), AT_A_TIME):
            some = rows[start : start + AT_A_TIME]
            yield self._text.format(rows=",".join([self._row] * len(some))), [value for row in some for value in row]


def _raw(tx: Connection) -> Any:
    """The driver's own connection: around it, SQLAlchemy takes ten times longer over a statement than SQLite."""
    return tx.connection.driver_connection
