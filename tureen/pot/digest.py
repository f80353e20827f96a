"""The checksum of a closed catalog: SQLite itself does not notice a changed value.

It lies in a file beside the database, which is written when the process that feeds the pot closes it, and removed
before anything else is written. So where it is there, the database must match it; after a crash there is none.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

from xxhash import xxh3_64

from tureen.errors import DamagedFile
from tureen.pot.files import private, sync_directory

_CHUNK = 1 << 20
_HEX = 16

_lock = threading.Lock()
_descriptors: dict[tuple[int, int], int] = {}
"""An open descriptor of each database whose checksum was computed, never closed.

POSIX drops all locks that a process has on a file when it closes any descriptor of it, and SQLite's connections would
lose theirs.
"""


class Digest:
    """The checksum of one database file."""

    def __init__(self, database: Path) -> None:
        """Look beside that file."""
        self._database = database
        self._path = database.with_suffix(".digest")

    def check(self) -> None:
        """Raise DamagedFile where the database is not as it was closed."""
        written = self._read()
        if written is None or written == _checksum(self._database):
            return
        # A process that writes has removed the digest before: if it is still there, nobody wrote meanwhile.
        if self._read() == written:
            error = DamagedFile.of(self._database, "its checksum is not the one that it was closed with")
            error.hint = "restore a backup; 'tureen verify --repair' accepts it as it is, if SQLite can read all of it"
            raise error

    def write(self) -> None:
        """Note the checksum of the database, which nobody may be writing to."""
        partial = self._path.with_suffix(".digest.partial")
        with open(partial, "w", opener=private) as file:
            file.write(_checksum(self._database))
            file.flush()
            os.fsync(file.fileno())
        partial.rename(self._path)
        sync_directory(self._path.parent)

    def remove(self) -> None:
        """Forget the checksum, before the database is written to."""
        try:
            self._path.unlink()
        except FileNotFoundError:
            return
        # It must not be there again after a loss of power.
        sync_directory(self._path.parent)

    def _read(self) -> str | None:
        """What was written, or None where that is no checksum."""
        try:
            text = self._path.read_text(errors="replace")
        except FileNotFoundError:
            return None
        return text if len(text) == _HEX else None


def _checksum(path: Path) -> str:
    checksum, offset = xxh3_64(), 0
    with _lock:
        file = _opened(path)
        while chunk := os.pread(file, _CHUNK, offset):
            checksum.update(chunk)
            offset += len(chunk)
    return checksum.hexdigest()


def _opened(path: Path) -> int:
    about = os.stat(path)
    key = (about.st_dev, about.st_ino)
    if key not in _descriptors:
        _descriptors[key] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    return _descriptors[key]
