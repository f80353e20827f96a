"""The durable log of one stream's pushes: segments of checked records.

A place in the log is a byte count from its beginning, over all segments: segment `<base>.log` holds
the places from `base` to the next segment's base. Records are padded to 64 bytes, so that the Arrow
payload can be used where it lies.

Reading accounts for every byte between two places: what is not a whole record is a damaged stretch, from where the
records before it end to where the next one begins. Only behind the last record of a log that has no known end is what
is not whole taken for a push that a crash cut off, which nobody was told of.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tureen.errors import StorageFailed
from tureen.faults import crash_point
from tureen.pot.files import make_private, private, storage_failed, sync_directory
from tureen.pot.record import Entry, Located, encode, find_next, read

SEGMENT_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Reference:
    """A stretch of whole records within one segment: what Spark hands to a task."""

    stream: int
    path: str
    base: int
    start: int
    end: int
    rows: int


def segments(directory: Path) -> list[tuple[int, Path]]:
    """The segments of a log as (base, path), in order."""
    return sorted((int(path.stem), path) for path in directory.glob("*.log") if path.stem.isdecimal())


def scan(directory: Path, start: int | None, end: int | None = None, *, check: bool = False) -> Iterator[Located]:
    """The records and damaged stretches between two places; with `check` the rows' checksums are verified.

    A start of None is where the first segment begins.
    """
    for base, path, begin, limit in _stretches(directory, start, end):
        yield from scan_segment(path, base, begin, limit, check=check)


def refer(
    stream: int, directory: Path, start: int, end: int, budget: int | None, chunk: int
) -> tuple[list[Reference], int]:
    """References to the records from a place on, each of about `chunk` rows, and where they end.

    They end at `end`, or after the record that fills the budget of rows: a push is never split.
    """
    found: list[Reference] = []
    total = 0
    for base, path, first, limit in _stretches(directory, start, end):
        for record in scan_segment(path, base, first, limit):
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


def _stretches(directory: Path, start: int | None, end: int | None) -> Iterator[tuple[int, Path, int, int | None]]:
    """The segments that reach into an interval, each with the part of the interval that it accounts for.

    What lies before the first of them is lost, and accounted for by it; without any, by a file that is not there.
    """
    found = segments(directory)
    begin = start
    for number, (base, path) in enumerate(found):
        limit = found[number + 1][0] if number + 1 < len(found) else end
        if end is not None and limit is not None:
            limit = min(limit, end)
        begin = base if begin is None else begin
        if limit is None or limit > begin:
            yield base, path, begin, limit
            begin = max(begin, base) if limit is None else limit
    if not found and start is not None and end is not None and start < end:
        yield start, directory / _name(start), start, end


def scan_segment(path: Path | str, base: int, start: int, end: int | None, *, check: bool = False) -> Iterator[Located]:
    """The records and damaged stretches of one segment; without an end, what is torn behind its last one is left out.

    What a reference points at is removed only after it was taken, so a file that is missing is damage too.
    """
    data = _mapped(Path(path))
    limit = base + len(data) if end is None else min(base + len(data), end)
    place = start
    if start < base:
        place = base if end is None else min(base, end)
        yield Located(start, place, 0, None)
    while place < limit:
        record = read(data, base, place, limit, check=check)
        if record is None:
            following = find_next(data, base, place + 1, limit)
            if following is None:
                break
            record = Located(place, following, 0, None)
        yield record
        place = record.end
    if end is not None and place < end:
        yield Located(place, end, 0, None)


class LogWriter:
    """The one writer of a log."""

    def __init__(self, directory: Path, taken: int, acknowledged: int = 0) -> None:
        """Find the end of what is whole.

        The pot has everything before `taken`, and pushes before `acknowledged` have returned: a part of them that is
        not whole is damaged, and nothing is written in its place.
        """
        make_private(directory)
        self.directory = directory
        whole = max(taken, acknowledged)
        for base, path in segments(directory)[-1:]:
            # A damaged record with whole ones behind it stays inside: it was acknowledged and is reported.
            ends = [record.end for record in scan_segment(path, base, base, None, check=True) if record.entry]
            whole = max([whole, base, *ends])
        self.end = whole
        self._file: int | None = None
        self._base = whole
        self._broken = False
        self._ended = False

    def append(self, entries: Sequence[Entry]) -> list[int]:
        """Make records durable and return the place where each ends."""
        if self._broken:
            raise StorageFailed("the inbox could not be written earlier", hint="close the pot and open it again")
        if self._file is None or self._ended or self.end - self._base >= SEGMENT_BYTES:
            self._roll()
        assert self._file is not None
        pieces: list[bytes | memoryview] = []
        ends = [self.end]
        for entry in entries:
            record, end = encode(entry, ends[-1])
            pieces += record
            ends.append(end)
        try:
            crash_point("push.before_write")
            _write_all(self._file, b"".join(pieces), self.end - self._base)
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
        self.end = ends[-1]
        return ends[1:]

    def end_segment(self, least: int) -> None:
        """Let the next record begin a new segment, if this one has so many bytes: only a whole one can be trimmed."""
        self._ended = self.end - self._base >= least

    @property
    def _path(self) -> Path:
        return self.directory / _name(self._base)

    def _roll(self) -> None:
        self.close()
        self._base, self._ended = self.end, False
        try:
            # A segment of that name can only be one without a whole record or an acknowledged one.
            self._file = private(self._path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
            sync_directory(self.directory)
        except OSError as error:
            raise storage_failed(self._path, error) from error

    def close(self) -> None:
        """Let go of the open segment."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _name(base: int) -> str:
    return f"{base:018d}.log"


def _mapped(path: Path) -> memoryview:
    with suppress(FileNotFoundError), open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    return memoryview(b"")


def _write_all(descriptor: int, data: bytes, place: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, place)
        view, place = view[written:], place + written
