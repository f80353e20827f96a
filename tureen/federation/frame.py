"""Frames: the rows of a flow on the wire, each with how far the flow is.

A frame is two lengths, a header in JSON, the punctuations in JSON, and the rows as an Arrow record batch message, both
of them compressed if that makes them smaller. Both sides know the columns. Everything is bounded, because a peer may
send anything.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from tureen.closed.section import PlacedPattern
from tureen.errors import PeerFailed, TureenError
from tureen.federation.frame_punctuations import decode_punctuations, encode_punctuations
from tureen.pot.home_progress import LARGEST_ID
from tureen.schema import ARRIVAL, HOME_ID, Column, Schema

MEDIA_TYPE = "application/vnd.tureen.flow"

FRAME_ROWS = 65_536
"""The most rows of a frame."""

FRAME_BYTES = 1 << 28
"""The most bytes of the rows of a frame, compressed or not."""

HEADER_BYTES = 1 << 16

LATEST_TIME = 1 << 60
"""The microseconds of a time, before or after 1970, are fewer."""

COMPRESSED_FROM = 512
"""Smaller rows are not compressed."""

_LENGTHS = struct.Struct("<II")
_CODEC = "zstd"


@dataclass(frozen=True)
class FlowFrame:
    """Rows of a flow, and how far it is."""

    next_id: int
    """All tuples of the flow with smaller ids at the home have been sent."""
    last_time: int | None = None
    """The highest time of all tuples up to there, selected or not; None if it is not known yet."""
    rows: pa.RecordBatch | None = None
    current: bool = False
    """Whether the sender has nothing more at the moment."""
    away: str | None = None
    """Why the sender does not have everything itself; None if it has."""
    size: int = 0
    """The bytes on the wire."""
    punctuations: tuple[PlacedPattern, ...] = ()
    """Those of the stream that are about columns of the flow, with their places among the rows."""


def flow_schema(schema: Schema, columns: Iterable[str], partials: Iterable[Column] = ()) -> pa.Schema:
    """The columns of the rows of a flow: those of the stream, partial aggregates, and those that a replica needs.

    `schema` is that of the stream, without home ids.
    """
    fields = [schema.arrow.field(name) for name in columns]
    if schema.time is None:
        fields.append(schema.stored.field(ARRIVAL))
    fields += [pa.field(column.name, column.type.arrow) for column in partials]
    return pa.schema([*fields, pa.field(HOME_ID, pa.int64())])


def encode_frame(frame: FlowFrame) -> bytes:
    """A frame as bytes."""
    header: dict[str, object] = {"next": frame.next_id}
    if frame.last_time is not None:
        header["time"] = frame.last_time
    if frame.current:
        header["current"] = True
    if frame.away is not None:
        header["away"] = frame.away[:1000]
    patterns, body = b"", b""
    if frame.punctuations:
        patterns, size = _compressed(encode_punctuations(frame.punctuations))
        header["punctuations"] = [len(patterns), size]
    if frame.rows is not None and frame.rows.num_rows:
        body, size = _compressed(frame.rows.serialize().to_pybytes())
        if size is not None:
            header["size"] = size
    return _with_lengths(header, patterns + body)


def _compressed(content: bytes) -> tuple[bytes, int | None]:
    """The content, smaller if it can be, and then its own length."""
    if len(content) >= COMPRESSED_FROM:
        smaller = pa.Codec(_CODEC).compress(content, asbytes=True)
        if len(smaller) < len(content):
            return smaller, len(content)
    return content, None


def _decompressed(content: bytes, size: object) -> bytes:
    if size is None:
        return content
    length = _integer(size, 1, FRAME_BYTES)
    return bytes(pa.Codec(_CODEC).decompress(content, decompressed_size=length, asbytes=True))


def encode_error(error: TureenError) -> bytes:
    """The last frame of a flow that cannot go on."""
    return _with_lengths({"error": {"code": error.code, "message": error.message, "hint": error.hint}}, b"")


def _with_lengths(header: dict[str, object], body: bytes) -> bytes:
    text = json.dumps(header, separators=(",", ":")).encode()
    return _LENGTHS.pack(len(text), len(body)) + text + body


def decode_frames(
    chunks: Iterable[bytes], schema: pa.Schema, error_of: Callable[[dict[str, object]], TureenError]
) -> Iterator[FlowFrame]:
    """The frames in bytes as they arrive; raises PeerFailed for anything else, and the error that a peer sends."""
    buffer = bytearray()
    for chunk in chunks:
        buffer += chunk
        while len(buffer) >= _LENGTHS.size:
            header_length, body_length = _LENGTHS.unpack_from(buffer)
            if header_length > HEADER_BYTES or body_length > FRAME_BYTES:
                raise PeerFailed("a frame is larger than allowed")
            end = _LENGTHS.size + header_length + body_length
            if len(buffer) < end:
                break
            body = _LENGTHS.size + header_length
            header = _parsed(bytes(buffer[_LENGTHS.size : body]))
            error = header.get("error")
            if error is not None:
                raise error_of(error) if isinstance(error, dict) else PeerFailed("a frame is not valid")
            yield _frame(header, bytes(buffer[body:end]), schema, end)
            del buffer[:end]


def _parsed(text: bytes) -> dict[str, object]:
    try:
        header = json.loads(text)
    except ValueError:
        header = None
    if not isinstance(header, dict):
        raise PeerFailed("the header of a frame is not JSON")
    return header


def _frame(header: dict[str, object], body: bytes, schema: pa.Schema, size: int) -> FlowFrame:
    next_id = _integer(header.get("next"), 0, LARGEST_ID - 1)
    last_time, away = header.get("time"), header.get("away")
    if away is not None and not isinstance(away, str):
        raise PeerFailed("the header of a frame is not valid")
    time = None if last_time is None else _integer(last_time, -LATEST_TIME, LATEST_TIME)
    patterns, body = _without_punctuations(header.get("punctuations"), body)
    rows = _rows(header.get("size"), body, schema) if body else None
    punctuations = decode_punctuations(patterns, schema, 0 if rows is None else rows.num_rows) if patterns else ()
    return FlowFrame(next_id, time, rows, header.get("current") is True, away, size, punctuations)


def _without_punctuations(lengths: object, body: bytes) -> tuple[bytes, bytes]:
    """The punctuations at the beginning of the body of a frame, and the rest."""
    if lengths is None:
        return b"", body
    if not isinstance(lengths, list) or len(lengths) != 2:
        raise PeerFailed("the header of a frame is not valid")
    end = _integer(lengths[0], 1, len(body))
    try:
        return _decompressed(body[:end], lengths[1]), body[end:]
    except (pa.ArrowException, OSError) as error:
        raise PeerFailed("the punctuations of a frame cannot be read", detail=str(error)[:200]) from error


def _integer(value: object, least: int, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise PeerFailed("a number in the header of a frame is not valid")
    return value


def _rows(size: object, body: bytes, schema: pa.Schema) -> pa.RecordBatch:
    try:
        rows = pa.ipc.read_record_batch(pa.py_buffer(_decompressed(body, size)), schema)
        if rows.num_rows > FRAME_ROWS:
            raise PeerFailed("a frame has more rows than allowed")
        # Offsets of a hostile peer may point anywhere.
        rows.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise PeerFailed("the rows of a frame cannot be read", detail=str(error)[:200]) from error
    return rows
