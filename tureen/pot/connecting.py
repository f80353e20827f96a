"""Connections to a pot's catalog, also in a directory that cannot be written.

In WAL mode SQLite creates files beside the database even to read it. Where it cannot, as on a read-only mount, a
database that was closed properly, which has no WAL, must be opened as immutable.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

LOCK_TIMEOUT = 30.0
"""Seconds that a connection waits for a lock."""


def connect(path: Path) -> sqlite3.Connection:
    """A connection to a database file."""
    return sqlite3.connect(_address(path), uri=True, timeout=LOCK_TIMEOUT, check_same_thread=False)


def is_immutable(path: Path) -> bool:
    """Whether the database is opened as immutable: its directory is not writable, and it was closed properly."""
    return not os.access(path.parent, os.W_OK) and not has_wal(path)


def _address(path: Path) -> str:
    uri = path.absolute().as_uri()
    if os.access(path.parent, os.W_OK):
        return uri
    return f"{uri}?mode=ro&immutable=1" if is_immutable(path) else f"{uri}?mode=ro"


def has_wal(path: Path) -> bool:
    """Whether there are commits that are not in the database file yet."""
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size > 0
    except FileNotFoundError:
        return False
