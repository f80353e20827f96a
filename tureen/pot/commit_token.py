"""A number that changes on every commit, by which caches see whether they are current.

SQLite has such a number of its own (`DataVersion`). Reading it takes microseconds; with the bell (`bell.py`) it is read
only after a commit. The number is the same with and without the bell.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path

from tureen.fast_paths import FastPath, is_enabled
from tureen.pot.bell import Bell
from tureen.pot.connecting import connect, is_immutable

CHECK_INTERVAL = 0.05
"""Seconds between checks of SQLite's own counter: for commits that bypass `Catalog`, such as manual ones, and for a
bell that was deleted while the pot was open."""


class DataVersion:
    """SQLite's counter of the commits of all other connections, read through a connection that only reads."""

    def __init__(self, path: Path) -> None:
        """Connect to that database at the first read."""
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._is_immutable, self._reopened = False, 0

    def read(self) -> int:
        """The current value; not for two threads at the same time."""
        if self._connection is not None and self._is_immutable and not is_immutable(self._path):
            # A connection that was opened as immutable never reports a change.
            self.close()
            self._reopened += 1
        if self._connection is None:
            self._is_immutable = is_immutable(self._path)
            self._connection = connect(self._path)
        return int(self._connection.execute("PRAGMA data_version").fetchone()[0]) + (self._reopened << 32)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class CommitToken:
    """The number, for all threads of a process."""

    def __init__(self, path: Path, bell: Bell | None) -> None:
        """Read it from that database; with a bell, only after a commit."""
        self._version = DataVersion(path)
        self._bell = bell if is_enabled(FastPath.BELL) else None
        self._lock = threading.Lock()
        self._checked_at = 0.0
        self._known: tuple[bytes | None, int] = (None, 0)

    def read(self) -> int:
        """The number; with a bell, reading it takes less than a microsecond."""
        mark, version = self._known
        if self._bell is None or mark != self._bell.begun():
            with self._lock:
                return self._query()
        if time.monotonic() - self._checked_at > CHECK_INTERVAL and self._lock.acquire(blocking=False):
            try:
                return self._query()
            finally:
                self._lock.release()
        return version

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._version.close()

    def _query(self) -> int:
        mark = None if self._bell is None else self._bell.begun()
        settled = self._bell is not None and self._bell.visible() == mark
        version = self._version.read()
        # During a commit the version may change at any moment.
        self._known = (mark if settled else None, version)
        self._checked_at = time.monotonic()
        return version
