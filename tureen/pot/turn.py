"""Whose turn it is to write the catalog.

SQLite lets whoever finds it locked sleep and try again, longer each time: under many small commits of one process,
those of another would come too late. Here they look again at once. This is about fairness alone, and SQLite's own lock
about correctness: who waited too long goes on without a turn.
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

from tureen.pot.files import private

LOOK_AGAIN = 0.0002
LONGEST = 2.0
"""Seconds after which a turn is no longer waited for: whoever has it may have been stopped."""


class Turn:
    """One writer at a time, of all threads and processes; a process that dies has had its turn."""

    def __init__(self, path: Path) -> None:
        """Use that file, which is made at the first turn."""
        self._path = path
        # One that may be taken again: a write within a write is SQLite's to refuse.
        self._lock = threading.RLock()
        self._file: int | None = None
        self._close: weakref.finalize[..., Turn] | None = None

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Wait for the turn, and keep it for the block."""
        with self._lock:
            try:
                self._wait(self._opened())
                yield
            finally:
                if self._file is not None:
                    fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._close is not None:
                self._close()
            self._file = self._close = None

    def _opened(self) -> int:
        if self._file is None:
            self._file = private(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
            self._close = weakref.finalize(self, os.close, self._file)
        return self._file

    def _wait(self, file: int) -> None:
        until = time.monotonic() + LONGEST
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > until:
                    return
                time.sleep(LOOK_AGAIN)
            else:
                return
