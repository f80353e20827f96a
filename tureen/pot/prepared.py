"""Statements of paths that must be quick, compiled once: SQLAlchemy takes ten times longer over one than SQLite."""

from __future__ import annotations

import sqlite3
from typing import Any

from sqlalchemy import ClauseElement, Connection
from sqlalchemy.dialects import sqlite

_DIALECT: Any = sqlite.dialect(paramstyle="qmark")


class Prepared:
    """A statement as SQLite takes it, and the order of its values."""

    def __init__(self, statement: ClauseElement, *columns: str) -> None:
        """Compile it; an INSERT names its columns."""
        compiled: Any = statement.compile(dialect=_DIALECT, column_keys=list(columns) or None)
        self._sql = str(compiled)
        self._names: tuple[str, ...] = tuple(compiled.positiontup)
        # A constant in the statement is a value that is always the same.
        self._fixed = {name: value for name, value in compiled.params.items() if value is not None}

    def run(self, tx: Connection, **values: Any) -> sqlite3.Cursor:
        """Run it in a transaction; its rows are plain tuples."""
        raw: Any = tx.connection.driver_connection
        given = {**self._fixed, **values}
        found: sqlite3.Cursor = raw.execute(self._sql, [given[name] for name in self._names])
        return found
