"""The checksum of a closed catalog, because SQLite itself does not detect a changed value.

It is in a file beside the database, which is written when the process that writes to the pot closes it, and removed
before the database is written again. So if the file exists, the database must match it; after a crash there is none.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

from xxhash import xxh3_64

from tureen.errors import DamagedFile
from tureen.pot.files import open_private, sync_directory

_CHUNK = 1 << 20
_HEX = 16

_lock = threading.Lock()
_descriptors: dict[tuple[int, int], int] = {}
"""An open descriptor of each database whose checksum was computed, never closed.

When a process closes any descriptor of a file, POSIX drops all locks that it has on the file, including SQLite's.
"""


class Digest:
    """The checksum file of a database."""

    def __init__(self, database: Path) -> None:
        """Use the checksum file beside that database."""
        self._database = database
        self._path = database.with_suffix(".digest")

    def check(self) -> None:
        """Raise DamagedFile if the database changed since it was closed."""
        written = self._read()
        if written is None or written == _checksum(self._database):
            return
        # A writer removes the digest first: if it still exists, nothing was written in the meantime.
        if self._read() == written:
            error = DamagedFile.of(self._database, "its checksum changed since it was closed")
            error.hint = "restore a backup; 'tureen verify --repair' accepts it as it is, if SQLite can read all of it"
            raise error

    def write(self) -> None:
        """Write the checksum of the database; the caller keeps other writers out."""
        partial = self._path.with_suffix(".digest.partial")
        with open(partial, "w", opener=open_private) as file:
            file.write(_checksum(self._database))
            file.flush()
            os.fsync(file.fileno())
        partial.rename(self._path)
        sync_directory(self._path.parent)

    def remove(self) -> None:
        """Remove the checksum, before the database is written."""
        try:
            self._path.unlink()
        except FileNotFoundError:
            return
        # It must not reappear after a power failure.
        sync_directory(self._path.parent)

    def _read(self) -> str | None:
        """The stored checksum, or None if there is no valid one."""
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
    status = os.stat(path)
    key = (status.st_dev, status.st_ino)
    if key not in _descriptors:
        _descriptors[key] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    return _descriptors[key]
