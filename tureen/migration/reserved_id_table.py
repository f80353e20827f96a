"""Format 4 to 5: the ids of pending rows can be reserved."""

from __future__ import annotations

import sqlite3
from pathlib import Path

_STATEMENT = """
CREATE TABLE IF NOT EXISTS reserved_ids (
    stream_id INTEGER NOT NULL,
    "end" BIGINT NOT NULL,
    first_id BIGINT NOT NULL,
    PRIMARY KEY (stream_id, "end")
)
"""


def add_reserved_ids(root: Path, database: sqlite3.Connection) -> None:  # noqa: ARG001 - as the other steps
    """Create the table."""
    database.execute(_STATEMENT)
