"""Format 5 to 6: a stream can be derived from a query."""

from __future__ import annotations

import sqlite3
from pathlib import Path


def add_derived_streams(root: Path, database: sqlite3.Connection) -> None:  # noqa: ARG001 - as the other steps
    """Add the columns, with NULL for all streams."""
    for column in ("query_id", "derived_to"):
        database.execute(f"ALTER TABLE streams ADD COLUMN {column} VARCHAR")
