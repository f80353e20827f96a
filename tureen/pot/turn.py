"""Whose turn it is to write the catalog.

SQLite lets whoever finds it locked sleep and try again, longer each time: under many small commits of one process,
those of another would come too late. Here they wait for the lock itself, and are woken.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Turn:
    """One writer at a time, of all threads and processes; a process that dies has had its turn."""

    def __init__(self, path: Path) -> None:
        """Use that file, which is made where there is none."""
        self._lock = threading.Lock()
        self._file: int | None = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Wait for the turn, and keep it for the block."""
        with self._lock:
            if self._file is None:
                raise ValueError("the catalog is closed")
            fcntl.flock(self._file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None
