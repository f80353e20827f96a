"""A record of the log: a header of 64 bytes, then key, payload and section, each padded to 64 bytes.

The payload has the accepted rows of a push. The section has its punctuations and its rejected rows
(`tureen/closed/section.py`); most pushes have none.

The header has a checksum of its own, so that its lengths can be trusted even if the body is damaged, and the record's
offset in the log, so that a copy of a record within another record's rows is never mistaken for a record. A reader that
finds damage searches for the next header and continues there.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from typing import NamedTuple

ALIGN = 64

_HEADER = struct.Struct("<4sIIIIIq16sqI4x")
"""Magic, checksum of all that follows in the header, checksum of the body, length of the payload, rows, length of the
key, arrival, digest, offset, length of the section (0 in records of versions without one)."""
_MAGIC = b"TUR2"
_COVERED = 8
"""The first byte of the header that its checksum covers."""

_FIRST_HEADER = struct.Struct("<4sIIIqI16s")
_FIRST_MAGIC = b"TURP"
"""The first format, which is still read: one checksum covers everything, so its lengths are trusted only after it."""

_COMMON = b"TUR"


class Entry(NamedTuple):
    """A push: its rows as an Arrow record batch message, their time of arrival, its key, and its section."""

    payload: bytes | memoryview
    rows: int
    arrival: int
    digest: bytes
    key: str = ""
    section: bytes | memoryview = b""


class LogRecord(NamedTuple):
    """A record with its interval of the log, or a damaged interval: then `entry` is None."""

    start: int
    end: int
    rows: int
    entry: Entry | None


def encode(entry: Entry, start: int) -> tuple[list[bytes | memoryview], int]:
    """The pieces of a record that begins at offset `start` of the log, and its end."""
    key = entry.key.encode()
    body = [key, bytes(_padding(len(key))), entry.payload, bytes(_padding(len(entry.payload)))]
    if entry.section:
        body += [entry.section, bytes(_padding(len(entry.section)))]
    checksum = 0
    for piece in body:
        checksum = zlib.crc32(piece, checksum)
    fields = (
        checksum,
        len(entry.payload),
        entry.rows,
        len(key),
        entry.arrival,
        entry.digest,
        start,
        len(entry.section),
    )
    unsigned = _HEADER.pack(_MAGIC, 0, *fields)
    header = _MAGIC + zlib.crc32(unsigned[_COVERED:]).to_bytes(4, "little") + unsigned[_COVERED:]
    return [header, *body], start + ALIGN + sum(map(len, body))


def read(data: memoryview, base: int, start: int, limit: int, *, check: bool) -> LogRecord | None:
    """The record at offset `start`, or None if there is no header, or its record extends beyond the limit.

    `data` holds the log from `base` on. With `check`, a record with a damaged body has no entry.
    """
    header = start - base
    if header + ALIGN > limit - base:
        return None
    magic, header_checksum, checksum, length, rows, key_length, arrival, digest, offset, section_length = (
        _HEADER.unpack_from(data, header)
    )
    if magic != _MAGIC:
        return _read_first_format(data, base, start, limit) if magic == _FIRST_MAGIC else None
    if offset != start or header_checksum != zlib.crc32(data[header + _COVERED : header + ALIGN]):
        return None
    body = header + ALIGN
    payload = body + (key_length + ALIGN - 1 & -ALIGN)
    section = payload + (length + ALIGN - 1 & -ALIGN)
    after = section + (section_length + ALIGN - 1 & -ALIGN)
    if base + after > limit:
        return None
    if check and checksum != zlib.crc32(data[body:after]):
        return LogRecord(start, base + after, rows, None)
    key = str(data[body : body + key_length], errors="replace") if key_length else ""
    rest: bytes | memoryview = data[section : section + section_length] if section_length else b""
    entry = Entry(data[payload : payload + length], rows, arrival, digest, key, rest)
    return LogRecord(start, base + after, rows, entry)


def find_next(data: memoryview, base: int, start: int, limit: int) -> int | None:
    """The offset of the first record from `start` on, or None."""
    segment: bytes | mmap.mmap = data.obj  # type: ignore[assignment]
    header = start - base
    while (header := segment.find(_COMMON, header, limit - base)) >= 0:
        if header % ALIGN == 0 and read(data, base, base + header, limit, check=False) is not None:
            return base + header
        header += 1
    return None


def _read_first_format(data: memoryview, base: int, start: int, limit: int) -> LogRecord | None:
    """A record of the first format, or None if it is not intact."""
    header = start - base
    _, checksum, length, rows, arrival, key_length, digest = _FIRST_HEADER.unpack_from(data, header)
    body = header + ALIGN
    payload = body + (key_length + ALIGN - 1 & -ALIGN)
    after = payload + (length + ALIGN - 1 & -ALIGN)
    fields = (length, rows, arrival, key_length, digest)
    if base + after > limit or checksum != zlib.crc32(data[body:after], zlib.crc32(repr(fields).encode())):
        return None
    key = str(data[body : body + key_length], errors="replace")
    return LogRecord(start, base + after, rows, Entry(data[payload : payload + length], rows, arrival, digest, key))


def _padding(length: int) -> int:
    return -length % ALIGN
