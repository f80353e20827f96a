"""The directories and ends of the inbox's logs; with few imports, because Spark's source imports it."""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tureen.faults import crash_point
from tureen.pot.files import make_private_directory, open_private

_COUNT = struct.Struct("<q8x")
_HEAD = struct.Struct("<qI4x")
_SLOT = _HEAD.size

_GROWTH = 4096
"""The file grows in steps of this size, so that readers seldom map it again."""

_POLL_SECONDS, _IDLE_SECONDS = 0.002, 0.02
"""The pauses between two looks for a push: while pushes follow each other, and in an idle pot."""

_STEADY_SECONDS = 0.1
"""After this time without a push, a pot is idle."""


class Heads:
    """The durable end of each stream's log, in a file that the Spark source and readers of pending rows poll.

    Slot 0 counts the pushes; slot `n` holds the end of stream n's log, with a checksum. The file is written after the
    log was synchronised and is not synchronised itself: after a crash it tells the next engine which pushes have
    returned, after a power failure possibly fewer of them.
    """

    def __init__(self, inbox: Path) -> None:
        """Open the heads of that inbox."""
        make_private_directory(inbox)
        self._file = open_private(inbox / "heads", os.O_RDWR | os.O_CREAT)
        self._lock = threading.Lock()
        self._grow(_SLOT)

    def _grow(self, size: int) -> None:
        current = os.fstat(self._file).st_size
        if current < size:
            os.pwrite(self._file, bytes((size // _GROWTH + 1) * _GROWTH - current), current)

    def publish(self, stream: int, end: int) -> int:
        """Publish the offset up to which a stream's log is durable; 0 removes the stream. Returns the count of pushes.

        The end is written before the count: a reader that knows the count reads this end or a later one.
        """
        with self._lock, self.held():
            self._grow(_SLOT * (stream + 1))
            os.pwrite(self._file, _HEAD.pack(end, _checksum(stream, end)), _SLOT * stream)
            crash_point("push.in_publish")
            pushes = self.pushes() + 1
            os.pwrite(self._file, _COUNT.pack(pushes), 0)
            return pushes

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let no process publish an end in the block."""
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def ends(self) -> dict[int, int]:
        """The end of each stream's log; slots with a wrong checksum are skipped."""
        return _ends(os.pread(self._file, os.fstat(self._file).st_size, 0))

    def wait(self, seen: int, seconds: float) -> int:
        """Wait for a push after the count `seen`, at most `seconds`; return the count of pushes."""
        began = time.monotonic()
        while (pushes := self.pushes()) == seen and (waited := time.monotonic() - began) < seconds:
            time.sleep(_POLL_SECONDS if waited < _STEADY_SECONDS else _IDLE_SECONDS)
        return pushes

    def pushes(self) -> int:
        """The count of pushes to all streams."""
        data = os.pread(self._file, _SLOT, 0)
        return int(_COUNT.unpack(data)[0]) if len(data) == _SLOT else 0

    def sync(self) -> None:
        """Make the published ends durable."""
        os.fsync(self._file)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class HeadsReader:
    """The heads as a reader sees them, mapped: reading a number takes less than a microsecond."""

    def __init__(self, inbox: Path) -> None:
        """Read the heads of that inbox, which may not exist yet."""
        self._path = inbox / "heads"
        self._map: mmap.mmap | None = None
        self._mapped_at = -1
        """The count of pushes when the file was mapped."""
        self.refresh()

    def refresh(self) -> None:
        """Map the file if it did not exist before; to be called after commits."""
        if self._map is None:
            self._remap()

    def pushes(self) -> int:
        """The count of pushes to all streams; 0 before the first."""
        return 0 if self._map is None else int(_COUNT.unpack_from(self._map)[0])

    def end(self, stream: int) -> int:
        """The end of a stream's log; 0 if nothing was pushed to it, or its head is damaged."""
        heads, offset = self._map, _SLOT * stream
        if heads is None or len(heads) < offset + _SLOT:
            if self._mapped_at == self.pushes():
                return 0
            self._remap()
            heads = self._map
            if heads is None or len(heads) < offset + _SLOT:
                return 0
        for _ in range(_TORN_READS):
            end, checksum = _HEAD.unpack_from(heads, offset)
            if checksum == _checksum(stream, end):
                return int(end)
        return 0

    def _remap(self) -> None:
        try:
            with open(self._path, "rb") as file:
                if os.fstat(file.fileno()).st_size < _SLOT:
                    return
                heads = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except FileNotFoundError:
            return
        self._mapped_at, self._map = int(_COUNT.unpack_from(heads)[0]), heads


@contextmanager
def pushes_held(root: Path) -> Iterator[dict[int, int]]:
    """Let no push return in the block; yields the end of each stream's log."""
    with closing(Heads(root / "inbox")) as heads, heads.held():
        yield heads.ends()


def acknowledged_ends(root: Path) -> dict[int, int]:
    """The end of each stream's log, read without creating the file."""
    path = root / "inbox" / "heads"
    return _ends(path.read_bytes()) if path.exists() else {}


_TORN_READS = 100
"""How often a head is read while its checksum does not match: it may be being written."""


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
