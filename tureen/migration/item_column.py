"""Format 8: the items of a stream have a path in XML documents."""

from __future__ import annotations

import sqlite3
from pathlib import Path


def add_items(root: Path, database: sqlite3.Connection) -> None:  # noqa: ARG001 - as the other parts
    """Add the column, with NULL for all streams."""
    database.execute("ALTER TABLE streams ADD COLUMN item TEXT")
