"""Format 6 to 7: a stream can have punctuations, a unique key and a lateness."""

from __future__ import annotations

import sqlite3
from pathlib import Path

_COLUMNS = {
    "streams": {
        "unique_key": "TEXT",
        "lateness": "BIGINT",
        "punctuated": "BOOLEAN NOT NULL DEFAULT 0",
        "punctuation_count": "BIGINT NOT NULL DEFAULT 0",
    },
    "push_keys": {"rejected": "BIGINT NOT NULL DEFAULT 0"},
}


def add_punctuations(root: Path, database: sqlite3.Connection) -> None:  # noqa: ARG001 - as the other steps
    """Add the columns that are missing; no stream has punctuations."""
    for table, columns in _COLUMNS.items():
        existing = {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
        for name, kind in columns.items():
            if name not in existing:
                database.execute(f"ALTER TABLE {table} ADD COLUMN {name} {kind}")
