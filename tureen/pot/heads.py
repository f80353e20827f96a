"""The directories and ends of the inbox's logs; with few imports, because Spark's source imports it."""

from __future__ import annotations

import os
import struct
import threading
import time
import zlib
from pathlib import Path

from tureen.pot.files import make_private_directory, open_private

_COUNT = struct.Struct("<q8x")
_HEAD = struct.Struct("<qI4x")
_SLOT = _HEAD.size


class Heads:
    """The durable end of each stream's log, in a file that the Spark source polls.

    Slot 0 counts the changes; slot `n` holds the end of stream n's log, with a checksum. The file is written after the
    log was synchronised and is not synchronised itself: after a crash it tells the next engine which pushes have
    returned, after a power failure possibly fewer of them.
    """

    def __init__(self, inbox: Path) -> None:
        """Open the heads of that inbox."""
        make_private_directory(inbox)
        self._file = open_private(inbox / "heads", os.O_RDWR | os.O_CREAT)
        self._lock = threading.Lock()

    def publish(self, stream: int, end: int) -> None:
        """Publish the offset up to which a stream's log is durable; 0 removes the stream."""
        with self._lock:
            os.pwrite(self._file, _HEAD.pack(end, _checksum(stream, end)), _SLOT * stream)
            os.pwrite(self._file, _COUNT.pack(self._changes() + 1), 0)

    def ends(self) -> dict[int, int]:
        """The end of each stream's log; slots with a wrong checksum are skipped."""
        return _ends(os.pread(self._file, os.fstat(self._file).st_size, 0))

    def wait(self, seen: int, seconds: float) -> int:
        """Wait for a change since the count `seen`, at most `seconds`; return the count of changes."""
        deadline = time.monotonic() + seconds
        while (changes := self._changes()) == seen and time.monotonic() < deadline:
            time.sleep(0.002)
        return changes

    def _changes(self) -> int:
        data = os.pread(self._file, _SLOT, 0)
        return int(_COUNT.unpack(data)[0]) if len(data) == _SLOT else 0

    def sync(self) -> None:
        """Make the published ends durable."""
        os.fsync(self._file)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def acknowledged_ends(root: Path) -> dict[int, int]:
    """The end of each stream's log, read without creating the file."""
    path = root / "inbox" / "heads"
    return _ends(path.read_bytes()) if path.exists() else {}


def _ends(data: bytes) -> dict[int, int]:
    ends = {}
    for stream in range(1, len(data) // _SLOT):
        end, checksum = _HEAD.unpack_from(data, _SLOT * stream)
        if end > 0 and checksum == _checksum(stream, end):
            ends[stream] = end
    return ends


def _checksum(stream: int, end: int) -> int:
    return zlib.crc32(struct.pack("<qq", stream, end))


def log_directory(root: Path, stream: int) -> Path:
    """The directory of a stream's log."""
    return root / "inbox" / str(stream)
