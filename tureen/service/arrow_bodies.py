"""Arrow streams as bodies: what they become when they are unpacked is counted before it is.

An Arrow stream is small for two reasons besides HTTP's own: its buffers may be compressed, and its columns may be
dictionaries. A compressed buffer begins with its unpacked length, and Arrow unpacks no more than that.
"""

from __future__ import annotations

import struct

import pyarrow as pa
import pyarrow.compute as pc

from tureen.errors import InvalidRows, TooLarge

# Fields of Arrow's flatbuffers, by their number: Message.fbs of the format.
_HEADER = 2
_DATA = 1
_BUFFERS, _COMPRESSION = 2, 3


def read_arrow(body: bytes, most: int) -> pa.Table:
    """The table of a stream, which may have so many bytes when it is unpacked."""
    try:
        if _packed_bytes(body) > most:
            raise _too_large(most)
        table = pa.ipc.open_stream(body).read_all()
        # Offsets that lead out of their buffers are refused here; nothing after this looks at them again.
        table.validate(full=True)
        if sum(_plain_bytes(chunk) for column in table.columns for chunk in column.chunks) > most:
            raise _too_large(most)
    except (pa.ArrowException, OSError, ValueError, MemoryError, struct.error) as error:
        raise InvalidRows("the body is no Arrow stream", detail=str(error)[:200]) from None
    return table


def _too_large(most: int) -> TooLarge:
    return TooLarge(f"the unpacked Arrow stream has more than {most:,} bytes", hint="send less at a time")


def _plain_bytes(chunk: pa.Array) -> int:
    """About how many bytes a column has without its dictionary."""
    if not pa.types.is_dictionary(chunk.type):
        return int(chunk.nbytes)
    values = chunk.dictionary
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        return int(pc.sum(pc.binary_length(values).take(chunk.indices)).as_py() or 0)
    return len(chunk) * int(values.nbytes) // max(len(values), 1)


def _packed_bytes(body: bytes) -> int:
    """How many bytes the compressed buffers of a stream say that they have."""
    total = 0
    for message in pa.ipc.MessageReader.open_stream(body):
        metadata = memoryview(message.metadata)
        header = _below(metadata, _below(metadata, 0), _HEADER)
        if message.type == "dictionary batch":
            header = _below(metadata, header, _DATA)
        if message.type in ("record batch", "dictionary batch") and _field(metadata, header, _COMPRESSION):
            total += _lengths(metadata, _below(metadata, header, _BUFFERS), memoryview(message.body))
    return total


def _lengths(metadata: memoryview, buffers: int, body: memoryview) -> int:
    """The unpacked lengths of all buffers; one of -1 is not packed."""
    (count,) = struct.unpack_from("<I", metadata, buffers)
    total = 0
    for offset, length in struct.iter_unpack("<qq", metadata[buffers + 4 : buffers + 4 + 16 * count]):
        if length:
            (unpacked,) = struct.unpack_from("<q", body, offset)
            total += length if unpacked < 0 else unpacked
    return total


def _field(metadata: memoryview, table: int, number: int) -> int:
    """Where a field of a flatbuffer's table is; 0 where the table does not have it."""
    (back,) = struct.unpack_from("<i", metadata, table)
    (size,) = struct.unpack_from("<H", metadata, table - back)
    if 4 + 2 * number >= size:
        return 0
    (offset,) = struct.unpack_from("<H", metadata, table - back + 4 + 2 * number)
    return table + offset if offset else 0


def _below(metadata: memoryview, table: int, number: int | None = None) -> int:
    """Where the table or vector is that a field, or the beginning of a flatbuffer, points to."""
    place = table if number is None else _field(metadata, table, number)
    (offset,) = struct.unpack_from("<I", metadata, place)
    return place + int(offset)
