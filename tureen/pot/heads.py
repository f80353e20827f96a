"""Where the inbox's logs are and how far they go; light, since Spark's source imports it."""

from __future__ import annotations

import os
import struct
import threading
import time
from pathlib import Path


class Heads:
    """How far each stream's log is durable: a file that the Spark source looks at.

    Slot 0 counts the changes, slot `n` holds the end of stream n's log. It is made anew by
    every engine, so it needs no durability of its own.
    """

    def __init__(self, inbox: Path) -> None:
        """Look at the heads of that inbox."""
        inbox.mkdir(parents=True, exist_ok=True)
        self._file = os.open(inbox / "heads", os.O_RDWR | os.O_CREAT, 0o644)
        self._lock = threading.Lock()

    def publish(self, stream: int, end: int) -> None:
        """Say that a stream's log is durable up to a place."""
        with self._lock:
            os.pwrite(self._file, struct.pack("<q", end), 8 * stream)
            os.pwrite(self._file, struct.pack("<q", self._changes() + 1), 0)

    def ends(self) -> dict[int, int]:
        """The end of each stream's log."""
        data = os.pread(self._file, os.fstat(self._file).st_size, 0)
        values = struct.unpack_from(f"<{len(data) // 8}q", data)
        return {stream: end for stream, end in enumerate(values) if stream and end}

    def wait(self, seen: int, seconds: float) -> int:
        """Wait until there was a change since `seen`, or so many seconds; return the count of changes."""
        deadline = time.monotonic() + seconds
        while (changes := self._changes()) == seen and time.monotonic() < deadline:
            time.sleep(0.002)
        return changes

    def _changes(self) -> int:
        data = os.pread(self._file, 8, 0)
        return int(struct.unpack("<q", data)[0]) if len(data) == 8 else 0

    def clear(self) -> None:
        """Forget all ends."""
        os.ftruncate(self._file, 0)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)


def log_directory(root: Path, stream: int) -> Path:
    """Where a stream's log is."""
    return root / "inbox" / str(stream)
