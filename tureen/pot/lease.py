"""The engine's lease: one process at a time writes to a pot.

It is a file lock, which the operating system releases as soon as the process ends.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from tureen.errors import PotError, PotLocked
from tureen.pot.files import make_private_directory, open_private


class Lease:
    """The right to write to one pot, until released or until the process ends."""

    def __init__(self, root: Path) -> None:
        """Acquire the lease; raises PotLocked with the holder's process id, or PotError if the pot is not writable."""
        try:
            make_private_directory(root)
            self._descriptor = open_private(root / "lease", os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise PotError(f"the pot in '{root}' cannot be written", detail=error.strerror) from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._descriptor, 32, 0).decode() or "unknown"
            os.close(self._descriptor)
            raise PotLocked(
                f"the pot in '{root}' is being written by process {holder}",
                hint="one process writes to a pot; others may invoke its queries",
            ) from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Release the lease."""
        os.close(self._descriptor)
