"""Format 8: rows of a stream can say that they are the last with their key."""

from __future__ import annotations

import sqlite3
from pathlib import Path


def add_punctuate(root: Path, database: sqlite3.Connection) -> None:  # noqa: ARG001 - as the other parts
    """Add the column, with NULL for all streams."""
    database.execute("ALTER TABLE streams ADD COLUMN punctuate TEXT")
