"""Two words in shared memory that change on every commit, so readers see cheaply that nothing changed.

Asking SQLite takes microseconds, but releases the interpreter, and a thread may wait milliseconds to get it back.

A writer puts a new mark into the first word before it commits, while it holds SQLite's write lock, and into the second
word after it has committed. Where both words are equal, the commit of that mark is visible and no other has begun.
Whoever has asked SQLite then need not ask again while the first word stays the same: no commit becomes visible before
its mark does. A writer that dies between the two words leaves them unequal, and readers ask SQLite until the next
commit.
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
from tureen.pot.files import private

WORD = 8


class Bell:
    """The two words, mapped by every process that has the pot open."""

    def __init__(self, path: Path) -> None:
        """Map that file, created where there is none; a process that may not write it maps it for reading."""
        self._path, self._writable = path, True
        try:
            file, access = private(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC), mmap.ACCESS_WRITE
        except OSError:
            file, access = os.open(path, os.O_RDONLY | os.O_CLOEXEC), mmap.ACCESS_READ
            self._writable = False
        try:
            # By one process at a time: another that comes after it may ring at once, and must not be overwritten.
            fcntl.flock(file, fcntl.LOCK_EX)
            size = os.fstat(file).st_size
            if size < 2 * WORD:
                # Written and not only made longer: a page without its block on a full disk cannot be written later.
                os.pwrite(file, bytes(2 * WORD - size), size)
            # The map keeps the file open, and would keep the lock.
            fcntl.flock(file, fcntl.LOCK_UN)
            self._words = mmap.mmap(file, 2 * WORD, access=access)
        finally:
            os.close(file)

    @contextmanager
    def ringing(self) -> Iterator[None]:
        """Announce a commit before the block, and say after it that the commit is visible, if there was one."""
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
