"""A record of the log: a header of 64 bytes, then key and payload, each padded to 64 bytes.

The header has a checksum of its own, so that its lengths can be trusted where the body is damaged, and the record's
place in the log, so that a copy of a record within another record's rows is never taken for one. A reader that finds
damage looks for the next header and goes on from there.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from typing import NamedTuple

ALIGN = 64

_HEADER = struct.Struct("<4sIIIIIq16sq8x")
"""Magic, checksum of all that follows in the header, checksum of the body, length of the payload, rows, length of the
key, arrival, digest, place."""
_MAGIC = b"TUR2"
_COVERED = 8
"""Where the part of the header begins that its checksum covers."""

_FIRST_HEADER = struct.Struct("<4sIIIqI16s")
_FIRST_MAGIC = b"TURP"
"""Of the first format, which is still read: one checksum for all, so that its lengths are not trusted without."""

_COMMON = b"TUR"


class Entry(NamedTuple):
    """One push: its rows as an Arrow record batch message, when they came, and its key."""

    payload: bytes | memoryview
    rows: int
    arrival: int
    digest: bytes
    key: str = ""


class Located(NamedTuple):
    """A record's place in the log, or a damaged stretch of it: then `entry` is None."""

    start: int
    end: int
    rows: int
    entry: Entry | None


def encode(entry: Entry, start: int) -> tuple[list[bytes | memoryview], int]:
    """The pieces of a record that begins at that place in the log, and where it ends."""
    key = entry.key.encode()
    body = [key, bytes(_padding(len(key))), entry.payload, bytes(_padding(len(entry.payload)))]
    checksum = 0
    for piece in body:
        checksum = zlib.crc32(piece, checksum)
    fields = (checksum, len(entry.payload), entry.rows, len(key), entry.arrival, entry.digest, start)
    unsigned = _HEADER.pack(_MAGIC, 0, *fields)
    header = _MAGIC + zlib.crc32(unsigned[_COVERED:]).to_bytes(4, "little") + unsigned[_COVERED:]
    return [header, *body], start + ALIGN + sum(map(len, body))


def read(data: memoryview, base: int, start: int, limit: int, *, check: bool) -> Located | None:
    """The record at a place, or None if there is no header of one that ends before the limit.

    `data` holds the log from `base` on. With `check` a damaged body is found, and the record has no entry then.
    """
    place = start - base
    if place + ALIGN > limit - base:
        return None
    magic, sum_of_header, checksum, length, rows, key_length, arrival, digest, written = _HEADER.unpack_from(
        data, place
    )
    if magic != _MAGIC:
        return _read_first(data, base, start, limit) if magic == _FIRST_MAGIC else None
    if written != start or sum_of_header != zlib.crc32(data[place + _COVERED : place + ALIGN]):
        return None
    body = place + ALIGN
    payload = body + (key_length + ALIGN - 1 & -ALIGN)
    after = payload + (length + ALIGN - 1 & -ALIGN)
    if base + after > limit:
        return None
    if check and checksum != zlib.crc32(data[body:after]):
        return Located(start, base + after, rows, None)
    key = str(data[body : body + key_length], errors="replace") if key_length else ""
    return Located(start, base + after, rows, Entry(data[payload : payload + length], rows, arrival, digest, key))


def find_next(data: memoryview, base: int, start: int, limit: int) -> int | None:
    """The place of the first record from a place on, or None."""
    held: bytes | mmap.mmap = data.obj  # type: ignore[assignment]
    place = start - base
    while (place := held.find(_COMMON, place, limit - base)) >= 0:
        if place % ALIGN == 0 and read(data, base, base + place, limit, check=False) is not None:
            return base + place
        place += 1
    return None


def _read_first(data: memoryview, base: int, start: int, limit: int) -> Located | None:
    """A record of the first format, if it is whole."""
    place = start - base
    _, checksum, length, rows, arrival, key_length, digest = _FIRST_HEADER.unpack_from(data, place)
    body = place + ALIGN
    payload = body + (key_length + ALIGN - 1 & -ALIGN)
    after = payload + (length + ALIGN - 1 & -ALIGN)
    fields = (length, rows, arrival, key_length, digest)
    if base + after > limit or checksum != zlib.crc32(data[body:after], zlib.crc32(repr(fields).encode())):
        return None
    key = str(data[body : body + key_length], errors="replace")
    return Located(start, base + after, rows, Entry(data[payload : payload + length], rows, arrival, digest, key))


def _padding(length: int) -> int:
    return -length % ALIGN
