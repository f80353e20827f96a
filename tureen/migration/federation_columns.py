"""Format 8: streams of other servers, and the hidden streams with their tuples."""

from __future__ import annotations

import sqlite3
from pathlib import Path


def add_federation(root: Path, database: sqlite3.Connection) -> None:  # noqa: ARG001 - as the other parts
    """Add the columns, with NULL for all streams; new tables are created when the catalog is opened."""
    for column in ("home TEXT", "origin TEXT", "replica_of INTEGER"):
        database.execute(f"ALTER TABLE streams ADD COLUMN {column}")
