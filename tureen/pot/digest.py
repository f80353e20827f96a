"""The checksum of a closed catalog: SQLite itself does not notice a changed value.

It lies in a file beside the database, which is written when the process that feeds the pot closes it, and removed
before anything else is written. So where it is there, the database must match it; after a crash there is none.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

from xxhash import xxh3_64_hexdigest

from tureen.errors import DamagedFile
from tureen.pot.files import private, sync_directory


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
        with open(self._path, "w", opener=private) as file:
            file.write(_checksum(self._database))
            file.flush()
            os.fsync(file.fileno())
        sync_directory(self._path.parent)

    def remove(self) -> None:
        """Forget the checksum, before the database is written to."""
        self._path.unlink(missing_ok=True)

    def _read(self) -> str | None:
        try:
            return self._path.read_text(errors="replace")
        except FileNotFoundError:
            return None


def _checksum(path: Path) -> str:
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return ""
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return xxh3_64_hexdigest(data)
