"""Two words in shared memory that change on every commit, so readers see cheaply that nothing changed.

Querying SQLite takes microseconds, but releases the interpreter's lock, which a thread may take milliseconds to
reacquire (docs/decisions/0018). Reading the words takes 0.25 µs, a query 4 µs; even with all other threads idle, an
invocation of 31 µs takes 42 µs without the bell. A process that has turned the bell off (`tureen/fast_paths.py`)
queries SQLite at every invocation. It still announces its commits, because other processes rely on that.

A writer stores a new mark in the first word before it commits, while it holds SQLite's write lock, and in the second
word after it has committed. If both words are equal, the commit of that mark is visible and no other has begun. A
reader that has queried SQLite then need not query it again while the first word stays the same: no commit becomes
visible before its mark does. A writer that dies between the two words leaves them unequal, and readers query SQLite
until the next commit.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tureen.errors import StorageFailed
from tureen.pot.files import open_private

WORD = 8


class Bell:
    """The two words, mapped by every process that has the pot open."""

    def __init__(self, path: Path) -> None:
        """Map a file, which is created if it does not exist; a process without write permission maps it read-only."""
        self._path, self._writable = path, True
        try:
            file, access = open_private(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC), mmap.ACCESS_WRITE
        except OSError:
            file, access = os.open(path, os.O_RDONLY | os.O_CLOEXEC), mmap.ACCESS_READ
            self._writable = False
        try:
            # Under a lock: another process may ring as soon as it has mapped the file, and must not be overwritten.
            fcntl.flock(file, fcntl.LOCK_EX)
            size = os.fstat(file).st_size
            if size < 2 * WORD:
                # Written, not truncated to length: storing to a page without a disk block fails on a full disk.
                os.pwrite(file, bytes(2 * WORD - size), size)
            # The mapping keeps the file open, and would keep the lock.
            fcntl.flock(file, fcntl.LOCK_UN)
            self._words = mmap.mmap(file, 2 * WORD, access=access)
        finally:
            os.close(file)

    @contextmanager
    def ringing(self) -> Iterator[None]:
        """Announce a commit before the block, and mark it as visible after the block."""
        if not self._writable:
            raise StorageFailed("the catalog could not be written", detail=f"no permission to write '{self._path}'")
        mark = secrets.token_bytes(WORD)
        self._words[:WORD] = mark
        try:
            yield
        finally:
            self._words[WORD:] = mark

    def begun(self) -> bytes:
        """The mark of the commit that began last."""
        return self._words[:WORD]

    def visible(self) -> bytes:
        """The mark of the commit that became visible last."""
        return self._words[WORD:]


def open_bell(path: Path) -> Bell | None:
    """The bell, or None if it cannot be created: then SQLite is queried each time."""
    try:
        return Bell(path)
    except OSError:
        return None
