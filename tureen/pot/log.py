"""The durable log of one stream's pushes: segments of checked records.

A place in the log is a byte count from its beginning, over all segments: segment `<base>.log` holds
the places from `base` to the next segment's base. Records are padded to 64 bytes, so that the Arrow
payload can be used where it lies.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tureen.errors import StorageFailed
from tureen.faults import crash_point
from tureen.pot.files import storage_failed, sync_directory

SEGMENT_BYTES = 64 << 20

_HEADER = struct.Struct("<4sIIIqI16s")
_MAGIC = b"TURP"
_ALIGN = 64


@dataclass(frozen=True, slots=True)
class Entry:
    """One push: its rows as an Arrow record batch message, when they came, and its key."""

    payload: bytes | memoryview
    rows: int
    arrival: int
    digest: bytes
    key: str = ""


@dataclass(frozen=True, slots=True)
class Located:
    """A record's place in the log; `entry` is None where it is damaged."""

    start: int
    end: int
    rows: int
    entry: Entry | None


@dataclass(frozen=True, slots=True)
class Reference:
    """A stretch of whole records within one segment: what Spark hands to a task."""

    stream: int
    path: str
    base: int
    start: int
    end: int
    rows: int


def encode(entry: Entry) -> bytes:
    """A record: header, key and payload, each padded."""
    key = entry.key.encode()
    body = b"".join((key, bytes(_padding(len(key))), entry.payload, bytes(_padding(len(entry.payload)))))
    fields = (len(entry.payload), entry.rows, entry.arrival, len(key), entry.digest)
    header = _HEADER.pack(_MAGIC, _checksum(fields, body), *fields)
    return header + bytes(_padding(len(header))) + body


def segments(directory: Path) -> list[tuple[int, Path]]:
    """The segments of a log as (base, path), in order."""
    return sorted((int(path.stem), path) for path in directory.glob("*.log"))


def scan(directory: Path, start: int, end: int | None = None, *, check: bool = False) -> Iterator[Located]:
    """The records between two places; with `check` their sums are verified."""
    for base, path, limit in _stretches(directory, start, end):
        yield from scan_segment(path, base, max(base, start), limit, check=check)


def refer(
    stream: int, directory: Path, start: int, end: int, budget: int | None, chunk: int
) -> tuple[list[Reference], int]:
    """References to the records from a place on, each of about `chunk` rows, and where they end.

    They end at `end`, or after the record that fills the budget of rows: a push is never split.
    """
    found: list[Reference] = []
    total = 0
    for base, path, limit in _stretches(directory, start, end):
        for record in scan_segment(path, base, max(base, start), limit):
            if found and found[-1].path == str(path) and found[-1].rows < chunk:
                last = found.pop()
                begin, rows = last.start, last.rows + record.rows
            else:
                begin, rows = record.start, record.rows
            found.append(Reference(stream, str(path), base, begin, record.end, rows))
            total += record.rows
            if budget is not None and total >= budget:
                return found, record.end
    return found, end


def _stretches(directory: Path, start: int, end: int | None) -> Iterator[tuple[int, Path, int | None]]:
    """The segments that reach into an interval, each with the place where its records end."""
    found = segments(directory)
    for number, (base, path) in enumerate(found):
        limit = found[number + 1][0] if number + 1 < len(found) else end
        if end is not None and limit is not None:
            limit = min(limit, end)
        if limit is None or limit > max(base, start):
            yield base, path, limit


def scan_segment(path: Path | str, base: int, start: int, end: int | None, *, check: bool = False) -> Iterator[Located]:
    """The records of one segment between two places; what is torn at its very end is left out."""
    data = _mapped(Path(path))
    limit = len(data) if end is None else min(len(data), end - base)
    place = start - base
    while place + _ALIGN <= limit:
        magic, checksum, length, rows, arrival, key_length, digest = _HEADER.unpack_from(data, place)
        body = place + _ALIGN
        payload = body + key_length + _padding(key_length)
        after = payload + length + _padding(length)
        if magic != _MAGIC or after > limit:
            # The lengths cannot be trusted: what follows in this segment is lost, if anything does.
            if end is not None:
                yield Located(base + place, end, 0, None)
            return
        entry: Entry | None = None
        if not check or checksum == _checksum((length, rows, arrival, key_length, digest), data[body:after]):
            key = bytes(data[body : body + key_length]).decode(errors="replace")
            entry = Entry(data[payload : payload + length], rows, arrival, digest, key)
        yield Located(base + place, base + after, rows, entry)
        place = after
    if end is not None and place < end - base:
        yield Located(base + place, end, 0, None)


class LogWriter:
    """The one writer of a log."""

    def __init__(self, directory: Path, taken: int) -> None:
        """Find the end of what is whole; `taken` is how far the pot has it already."""
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        whole = taken
        for base, path in segments(directory)[-1:]:
            # A damaged record with whole ones behind it stays inside: it was acknowledged and is reported.
            ends = [one.end for one in scan_segment(path, base, base, None, check=True) if one.entry]
            whole = max([taken, base, *ends])
        self.end = whole
        self._file: int | None = None
        self._base = whole
        self._broken = False

    def append(self, entries: Sequence[Entry]) -> list[int]:
        """Make records durable and return the place where each ends."""
        if self._broken:
            raise StorageFailed("the inbox could not be written earlier", hint="close the pot and open it again")
        if self._file is None or self.end - self._base >= SEGMENT_BYTES:
            self._roll()
        assert self._file is not None
        records = [encode(entry) for entry in entries]
        try:
            crash_point("push.before_write")
            _write_all(self._file, b"".join(records), self.end - self._base)
        except OSError as error:
            os.ftruncate(self._file, self.end - self._base)
            raise storage_failed(self._path, error) from error
        try:
            crash_point("push.before_sync")
            os.fsync(self._file)
        except OSError as error:
            # After a failed fsync nobody knows what the disk holds: this log is not written to again.
            self._broken = True
            raise storage_failed(self._path, error) from error
        crash_point("push.after_sync")
        ends = []
        for record in records:
            self.end += len(record)
            ends.append(self.end)
        return ends

    @property
    def _path(self) -> Path:
        return self.directory / f"{self._base:018d}.log"

    def _roll(self) -> None:
        self.close()
        self._base = self.end
        try:
            # A segment of that name can only be one without a whole record.
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
            sync_directory(self.directory)
        except OSError as error:
            raise storage_failed(self._path, error) from error

    def close(self) -> None:
        """Let go of the open segment."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _mapped(path: Path) -> memoryview:
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _write_all(descriptor: int, data: bytes, place: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, place)
        view, place = view[written:], place + written


def _checksum(fields: tuple[object, ...], body: bytes | memoryview) -> int:
    return zlib.crc32(body, zlib.crc32(repr(fields).encode()))


def _padding(length: int) -> int:
    return -length % _ALIGN
