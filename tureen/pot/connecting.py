"""Connections to a pot's catalog, which are used again, also in a directory that cannot be written.

In WAL mode SQLite creates files beside the database even to read it. Where it cannot, as on a read-only mount, a
database that was closed properly, which has no WAL, must be opened as immutable.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOCK_TIMEOUT = 30.0
"""Seconds that a connection waits for a lock."""

_KEPT_STATEMENTS = 512
"""The number of statements that a connection keeps prepared."""

_KEPT_CONNECTIONS = 5
"""The number of idle connections that a process keeps of a catalog."""

_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", f"busy_timeout={LOCK_TIMEOUT * 1000:.0f}")


class Connections:
    """The connections of a process to a catalog: each is used by one transaction at a time."""

    def __init__(self, path: Path) -> None:
        """Connect to that database when a transaction begins and no connection is idle."""
        self._path = path
        self._idle: list[sqlite3.Connection] = []
        self._owner = os.getpid()

    @contextmanager
    def transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        """A connection on which a transaction has begun; it is rolled back unless the block commits it."""
        connection, idle = self._take()
        try:
            connection.execute(begin)
            yield connection
        finally:
            try:
                connection.rollback()
            except BaseException:
                connection.close()
                raise
            if idle is self._idle and len(idle) < _KEPT_CONNECTIONS:
                idle.append(connection)
            else:
                connection.close()

    def close(self) -> None:
        """Close all idle connections now, and the others at the end of their transactions."""
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> tuple[sqlite3.Connection, list[sqlite3.Connection]]:
        """A connection, and the list to which it returns."""
        if self._owner != os.getpid():
            # A connection must not be used by a process that was forked from the one that opened it.
            self._idle, self._owner = [], os.getpid()
        idle = self._idle
        try:
            return idle.pop(), idle
        except IndexError:
            return _configured(self._path), idle


def _configured(path: Path) -> sqlite3.Connection:
    connection = connect(path)
    # Transactions begin and end explicitly.
    connection.isolation_level = None
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")
    return connection


def connect(path: Path) -> sqlite3.Connection:
    """A connection to a database file."""
    return sqlite3.connect(
        _address(path), uri=True, timeout=LOCK_TIMEOUT, check_same_thread=False, cached_statements=_KEPT_STATEMENTS
    )


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
