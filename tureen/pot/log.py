"""The durable log of one stream's pushes: segments of records with checksums.

An offset in the log counts bytes from its beginning, over all segments: segment `<base>.log` holds the offsets from
`base` to the next segment's base. Records are padded to 64 bytes, so that the Arrow payload can be used without a copy.

Reading accounts for every byte between two offsets: what is not an intact record is a damaged interval, from the end of
the previous record to the start of the next. Only after the last record of a log without a known end are such bytes
ignored: they are a push that a crash interrupted and that was not acknowledged.
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
from tureen.pot.files import make_private_directory, open_private, storage_failed, sync_directory
from tureen.pot.record import Entry, LogRecord, encode, find_next, read

SEGMENT_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Reference:
    """A range of complete records in one segment, which Spark hands to a task."""

    stream: int
    path: str
    base: int
    start: int
    end: int
    rows: int


def segments(directory: Path) -> list[tuple[int, Path]]:
    """The segments of a log as (base, path), in order."""
    try:
        # Not `glob`, which takes as long as the rest of an answer from one new row.
        names = os.listdir(directory)
    except FileNotFoundError:
        return []
    bases = ((name.removesuffix(".log"), name) for name in names if name.endswith(".log"))
    return sorted((int(base), directory / name) for base, name in bases if base.isdecimal())


def scan(directory: Path, start: int | None, end: int | None = None, *, check: bool = False) -> Iterator[LogRecord]:
    """The records and damaged intervals between two offsets; with `check`, the rows' checksums are verified.

    A start of None means the first segment's.
    """
    for base, path, first, limit in _segment_ranges(directory, start, end):
        yield from scan_segment(path, base, first, limit, check=check)


def refer(
    stream: int, directory: Path, start: int, end: int, budget: int | None, chunk: int
) -> tuple[list[Reference], int]:
    """References to the records from `start` on, each of about `chunk` rows, and the end of the last.

    They end at `end`, or after the record that fills the budget of rows: a push is never split.
    """
    references: list[Reference] = []
    total = 0
    for base, path, first, limit in _segment_ranges(directory, start, end):
        for record in scan_segment(path, base, first, limit):
            if references and references[-1].path == str(path) and references[-1].rows < chunk:
                last = references.pop()
                begin, rows = last.start, last.rows + record.rows
            else:
                begin, rows = record.start, record.rows
            references.append(Reference(stream, str(path), base, begin, record.end, rows))
            total += record.rows
            if budget is not None and total >= budget:
                return references, record.end
    return references, end


def _segment_ranges(directory: Path, start: int | None, end: int | None) -> Iterator[tuple[int, Path, int, int | None]]:
    """The segments that overlap an interval, each with the part of the interval that it accounts for.

    Bytes before the first of them are lost, and the first accounts for them; without segments, a missing file does.
    """
    all_segments = segments(directory)
    begin = start
    for number, (base, path) in enumerate(all_segments):
        limit = all_segments[number + 1][0] if number + 1 < len(all_segments) else end
        if end is not None and limit is not None:
            limit = min(limit, end)
        begin = base if begin is None else begin
        if limit is None or limit > begin:
            yield base, path, begin, limit
            begin = max(begin, base) if limit is None else limit
    if not all_segments and start is not None and end is not None and start < end:
        yield start, directory / _name(start), start, end


def scan_segment(
    path: Path | str, base: int, start: int, end: int | None, *, check: bool = False
) -> Iterator[LogRecord]:
    """The records and damaged intervals of one segment; without an end, a torn push after its last record is ignored.

    Segments are removed only after their rows are in runs, so a missing file is damage too.
    """
    data = _mapped(Path(path))
    limit = base + len(data) if end is None else min(base + len(data), end)
    offset = start
    if start < base:
        offset = base if end is None else min(base, end)
        yield LogRecord(start, offset, 0, None)
    while offset < limit:
        record = read(data, base, offset, limit, check=check)
        if record is None:
            next_record = find_next(data, base, offset + 1, limit)
            if next_record is None:
                break
            record = LogRecord(offset, next_record, 0, None)
        yield record
        offset = record.end
    if end is not None and offset < end:
        yield LogRecord(offset, end, 0, None)


class LogWriter:
    """The only writer of a log."""

    def __init__(self, directory: Path, taken: int, acknowledged: int = 0) -> None:
        """Find the end of the intact records.

        Everything before `taken` is in runs, and pushes before `acknowledged` have returned: what is not intact there
        is damaged, and is not overwritten.
        """
        make_private_directory(directory)
        self.directory = directory
        end = max(taken, acknowledged)
        for base, path in segments(directory)[-1:]:
            # A damaged record before an intact one is part of the log: it was acknowledged, and is reported.
            ends = [record.end for record in scan_segment(path, base, base, None, check=True) if record.entry]
            end = max([end, base, *ends])
        self.end = end
        self._file: int | None = None
        self._base = end
        self._broken = False
        self._ended = False

    def append(self, entries: Sequence[Entry]) -> list[int]:
        """Make records durable and return the end of each."""
        if self._broken:
            raise StorageFailed("an earlier write to the inbox failed", hint="close the pot and open it again")
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
            # After a failed fsync the contents of the disk are unknown: this log is not written again.
            self._broken = True
            raise storage_failed(self._path, error) from error
        crash_point("push.after_sync")
        self.end = ends[-1]
        return ends[1:]

    def end_segment(self, min_bytes: int) -> None:
        """Let the next record begin a new segment if this one has `min_bytes`; only ended segments can be trimmed."""
        self._ended = self.end - self._base >= min_bytes

    @property
    def _path(self) -> Path:
        return self.directory / _name(self._base)

    def _roll(self) -> None:
        self.close()
        self._base, self._ended = self.end, False
        try:
            # An existing segment of that name has no intact and no acknowledged record.
            self._file = open_private(self._path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
            sync_directory(self.directory)
        except OSError as error:
            raise storage_failed(self._path, error) from error

    def close(self) -> None:
        """Close the open segment."""
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


def _write_all(descriptor: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written
