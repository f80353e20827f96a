"""A word in shared memory that changes with every commit, so that it costs nothing to see that there was none.

Asking SQLite takes microseconds, but gives up the interpreter for them; a thread that must have it back waits for
whoever took it. A process that dies between its commit and the bell has told nobody of that commit yet.
"""

from __future__ import annotations

import mmap
import os
import secrets
from pathlib import Path

WORD = 8


class Bell:
    """One word, mapped by every process that has the pot open."""

    def __init__(self, path: Path) -> None:
        """Map that file, which is made where there is none; who may not write there listens, if there is one."""
        try:
            file, access = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644), mmap.ACCESS_WRITE
        except OSError:
            file, access = os.open(path, os.O_RDONLY | os.O_CLOEXEC), mmap.ACCESS_READ
        try:
            if os.fstat(file).st_size < WORD:
                # Written and not only made longer: a page without its place on the disk cannot be written later.
                os.pwrite(file, bytes(WORD), 0)
            self._word = mmap.mmap(file, WORD, access=access)
        finally:
            os.close(file)

    def ring(self) -> None:
        """Say that something was committed: with another word each time, as several may ring at once."""
        self._word[:] = secrets.token_bytes(WORD)

    def word(self) -> int:
        """What stands there now."""
        return int.from_bytes(self._word[:])
