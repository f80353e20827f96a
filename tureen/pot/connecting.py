"""How SQLite opens a pot's catalog: as usual, or without writing a byte where nothing can be written.

In WAL mode SQLite makes files beside the database even to read it. Where it cannot, as on a read-only mount, a database
that was closed well, which has no WAL, must be opened as one that does not change.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

PATIENCE = 30.0
"""For how many seconds a connection waits for a lock."""


def connect(path: Path) -> sqlite3.Connection:
    """A connection to the database in that file."""
    return sqlite3.connect(_address(path), uri=True, timeout=PATIENCE, check_same_thread=False)


def is_frozen(path: Path) -> bool:
    """Whether the database is opened as one that does not change: it cannot be written here, and was closed well."""
    return not os.access(path.parent, os.W_OK) and not has_wal(path)


def _address(path: Path) -> str:
    uri = path.absolute().as_uri()
    if os.access(path.parent, os.W_OK):
        return uri
    return f"{uri}?mode=ro&immutable=1" if is_frozen(path) else f"{uri}?mode=ro"


def has_wal(path: Path) -> bool:
    """Whether there are commits that are not in the database's own file yet."""
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size > 0
    except FileNotFoundError:
        return False
