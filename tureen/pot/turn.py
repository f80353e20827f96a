"""The turn to write the catalog: a file lock that makes waiting for SQLite's lock fair.

A writer that finds SQLite locked sleeps and retries, longer each time: many small commits of one process would starve
another. Here a waiting writer polls at a short, constant interval. Turns and group commit together commit rows 0.6 s
late beside continuous registrations, instead of 5.7 s (docs/decisions/0023). SQLite's own lock ensures correctness: a
writer that has waited too long proceeds without the turn, and so do all writers of a process that has turned it off
(`tureen/fast_paths.py`).
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tureen.fast_paths import FastPath, is_enabled
from tureen.pot.files import open_private

POLL_INTERVAL = 0.0002
MAX_WAIT = 2.0
"""Seconds after which a writer proceeds without the turn: its holder may be suspended."""


class Turn:
    """One writer at a time, of all threads and processes; a process that dies releases it."""

    def __init__(self, path: Path) -> None:
        """Use that file, which is created at the first turn."""
        self._path = path
        self._enabled = is_enabled(FastPath.TURN)
        # Reentrant: SQLite rejects a write within a write.
        self._lock = threading.RLock()
        self._file: int | None = None
        self._close: weakref.finalize[..., Turn] | None = None

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Wait for the turn, and hold it during the block."""
        if not self._enabled:
            yield
            return
        with self._lock:
            try:
                self._wait(self._opened())
                yield
            finally:
                if self._file is not None:
                    fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._close is not None:
                self._close()
            self._file = self._close = None

    def _opened(self) -> int:
        if self._file is None:
            self._file = open_private(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
            self._close = weakref.finalize(self, os.close, self._file)
        return self._file

    def _wait(self, file: int) -> None:
        deadline = time.monotonic() + MAX_WAIT
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    return
                time.sleep(POLL_INTERVAL)
            else:
                return
