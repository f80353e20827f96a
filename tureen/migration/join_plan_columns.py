"""Format 7 to 8: a query can say how its join is computed while it is followed."""

from __future__ import annotations

import sqlite3
from pathlib import Path

_COLUMNS = {"plan": "VARCHAR", "jit": "BOOLEAN"}


def add_join_plans(root: Path, database: sqlite3.Connection) -> None:  # noqa: ARG001 - as the other steps
    """Add the columns that are missing; no query says anything."""
    existing = {row[1] for row in database.execute("PRAGMA table_info(queries)")}
    for name, kind in _COLUMNS.items():
        if name not in existing:
            database.execute(f"ALTER TABLE queries ADD COLUMN {name} {kind}")
