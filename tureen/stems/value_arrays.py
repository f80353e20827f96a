"""Arrow arrays of a few Python values, built without importing pandas; also in clients, which may not have numpy.

The first `pa.array` or `pa.scalar` of a process imports pandas if it is installed, to recognise its types. That takes
0.15 to 0.3 s, a large part of what a new process needs for its first answer (docs/decisions/0029).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any

import pyarrow as pa

from tureen.schema import Kind, Type

FEW = 1_000
"""The number of values up to which they are converted here; for more, `pa.array` is faster, also with the import."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def array_of(values: Sequence[Any], column_type: Type) -> pa.Array:
    """The values, which have the Python type of that kind or are None, as `pa.array` converts them.

    >>> array_of([7, None], Type(Kind.INT)).to_pylist()
    [7, None]
    """
    buffers_of = _BUFFERS.get(column_type.kind) if len(values) <= FEW else None
    if buffers_of is None:
        return pa.array(values, column_type.arrow)
    return pa.Array.from_buffers(column_type.arrow, len(values), [_validity(values), *buffers_of(values)])


def repeated_time(time: int, count: int) -> pa.Array:
    """A column of `count` equal timestamps, in microseconds."""
    return pa.Array.from_buffers(pa.timestamp("us", tz="UTC"), count, [None, pa.py_buffer(array("q", [time]) * count)])


def _validity(values: Sequence[Any]) -> pa.Buffer | None:
    """One bit for each value, the lowest first; None if no value is NULL."""
    if None not in values:
        return None
    bits = sum(1 << number for number, value in enumerate(values) if value is not None)
    return pa.py_buffer(bits.to_bytes((len(values) + 7) // 8, "little"))


def _numbers(code: str) -> Callable[[Sequence[Any]], list[pa.Buffer]]:
    """Numbers in the format that `array` has that letter for."""
    return lambda values: [pa.py_buffer(array(code, [0 if value is None else value for value in values]))]


def _timestamps(values: Sequence[Any]) -> list[pa.Buffer]:
    return _numbers("q")([None if value is None else (value - _EPOCH) // _MICROSECOND for value in values])


def _texts(values: Sequence[Any]) -> list[pa.Buffer]:
    encoded = [b"" if value is None else value.encode() for value in values]
    ends = accumulate(map(len, encoded), initial=0)
    return [pa.py_buffer(array("i", ends)), pa.py_buffer(b"".join(encoded))]


_BUFFERS: dict[Kind, Callable[[Sequence[Any]], list[pa.Buffer]]] = {
    Kind.TINYINT: _numbers("b"),
    Kind.SMALLINT: _numbers("h"),
    Kind.INT: _numbers("i"),
    Kind.BIGINT: _numbers("q"),
    Kind.DOUBLE: _numbers("d"),
    Kind.TIMESTAMP: _timestamps,
    Kind.STRING: _texts,
}
