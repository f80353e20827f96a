"""Format 8: streams can keep what is needed, and inputs of queries say what they need."""

from __future__ import annotations

import sqlite3
from pathlib import Path

_STATEMENTS = (
    "ALTER TABLE streams ADD COLUMN keeps_needed BOOLEAN DEFAULT 0 NOT NULL",
    "ALTER TABLE streams ADD COLUMN freed_before BIGINT",
    "ALTER TABLE query_inputs ADD COLUMN needs TEXT",
    "CREATE INDEX query_inputs_by_need ON query_inputs (stream_id, needs) WHERE needs IS NOT NULL",
)


def add_needs(root: Path, database: sqlite3.Connection) -> None:  # noqa: ARG001 - as the other parts
    """Add the columns; no stream keeps only what is needed yet."""
    for statement in _STATEMENTS:
        database.execute(statement)
