"""Arrow streams as request bodies, with a limit on their decompressed size that is checked before decompression.

Besides HTTP's own compression, an Arrow stream can be much smaller than its content in two ways: compressed buffers
and dictionary columns. A compressed buffer begins with its decompressed length, and Arrow decompresses no more than
that.
"""

from __future__ import annotations

import struct

import pyarrow as pa
import pyarrow.compute as pc

from tureen.errors import InvalidRows, TooLarge

# Field numbers of Arrow's flatbuffers, from Message.fbs of the format.
_HEADER = 2
_DATA = 1
_BUFFERS, _COMPRESSION = 2, 3


def read_arrow(body: bytes, max_bytes: int) -> pa.Table:
    """Read the table of an Arrow stream that has at most `max_bytes` when decompressed."""
    try:
        if _compressed_content_bytes(body) > max_bytes:
            raise _too_large(max_bytes)
        table = pa.ipc.open_stream(body).read_all()
        # Reject offsets that point outside of their buffers: no later code checks them.
        table.validate(full=True)
        if sum(_plain_bytes(chunk) for column in table.columns for chunk in column.chunks) > max_bytes:
            raise _too_large(max_bytes)
    except (pa.ArrowException, OSError, ValueError, MemoryError, struct.error) as error:
        raise InvalidRows("the body is not a valid Arrow stream", detail=str(error)[:200]) from None
    return table


def _too_large(max_bytes: int) -> TooLarge:
    return TooLarge(
        f"the decompressed Arrow stream has more than {max_bytes:,} bytes", hint="send fewer rows per request"
    )


def _plain_bytes(chunk: pa.Array) -> int:
    """The approximate size of a chunk when its dictionary is expanded."""
    if not pa.types.is_dictionary(chunk.type):
        return int(chunk.nbytes)
    values = chunk.dictionary
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        return int(pc.sum(pc.binary_length(values).take(chunk.indices)).as_py() or 0)
    return len(chunk) * int(values.nbytes) // max(len(values), 1)


def _compressed_content_bytes(body: bytes) -> int:
    """The sum of the decompressed lengths that the compressed buffers of a stream declare."""
    total = 0
    for message in pa.ipc.MessageReader.open_stream(body):
        metadata = memoryview(message.metadata)
        header = _follow_field(metadata, _follow_offset(metadata, 0), _HEADER)
        if message.type == "dictionary batch":
            header = _follow_field(metadata, header, _DATA)
        if message.type in ("record batch", "dictionary batch") and _field_offset(metadata, header, _COMPRESSION):
            total += _declared_bytes(metadata, _follow_field(metadata, header, _BUFFERS), memoryview(message.body))
    return total


def _declared_bytes(metadata: memoryview, buffers: int, body: memoryview) -> int:
    """The decompressed length of all buffers; a buffer with the length -1 is stored uncompressed."""
    (count,) = struct.unpack_from("<I", metadata, buffers)
    total = 0
    for offset, length in struct.iter_unpack("<qq", metadata[buffers + 4 : buffers + 4 + 16 * count]):
        if length:
            (declared,) = struct.unpack_from("<q", body, offset)
            total += length if declared < 0 else declared
    return total


def _field_offset(metadata: memoryview, table: int, number: int) -> int:
    """The offset of a field of a flatbuffer table, or 0 if the table lacks the field."""
    (vtable_distance,) = struct.unpack_from("<i", metadata, table)
    (vtable_size,) = struct.unpack_from("<H", metadata, table - vtable_distance)
    if 4 + 2 * number >= vtable_size:
        return 0
    (offset,) = struct.unpack_from("<H", metadata, table - vtable_distance + 4 + 2 * number)
    return table + offset if offset else 0


def _follow_field(metadata: memoryview, table: int, number: int) -> int:
    """The offset of the table or vector that a field refers to."""
    return _follow_offset(metadata, _field_offset(metadata, table, number))


def _follow_offset(metadata: memoryview, offset: int) -> int:
    """The target of the relative offset that is stored at an offset."""
    (distance,) = struct.unpack_from("<I", metadata, offset)
    return offset + int(distance)
