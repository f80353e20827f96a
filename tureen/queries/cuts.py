r"""Cut points: where an interval's ends cut the order of a column's values.

A cut point is a key, and stands before the first value that is not below it. That is enough for every end of
an interval, since each key domain has a next key: `x <= 5` ends before 6, `x <= 'ab'` before `'ab\0'`, and a
double is taken as the integer that sorts like it.
"""

from __future__ import annotations

import struct
from enum import Enum, IntEnum

import pyarrow as pa

from tureen.predicate import Interval, Key

_MAGNITUDE = 0x7FFF_FFFF_FFFF_FFFF
_MOST_WIDE = (1 << 127) - 1
_NAN = 0x7FF8_0000_0000_0000
_DOUBLE, _BITS = struct.Struct("<d"), struct.Struct("<q")


class Edge(Enum):
    """The cut points that every column has: before all rows, after all that are not NULL, after all rows."""

    BOTTOM = 0
    TOP = 1
    END = 2


Cut = int | bytes | Edge
"""An encoded key, or an edge of the column."""


class Encoding(IntEnum):
    """How the keys of a column are written in cut points; WIDE is a DECIMAL past 18 digits."""

    INTEGER = 0
    FLOAT = 1
    TEXT = 2
    WIDE = 3


def encoding_of(kind: pa.DataType) -> Encoding:
    """The encoding of a stored column's keys."""
    if pa.types.is_floating(kind):
        return Encoding.FLOAT
    if pa.types.is_string(kind):
        return Encoding.TEXT
    if pa.types.is_decimal(kind) and kind.precision > 18:
        return Encoding.WIDE
    return Encoding.INTEGER


def ends_of(encoding: Encoding, interval: Interval) -> tuple[Cut, Cut]:
    """The two cut points of an interval.

    >>> ends_of(Encoding.INTEGER, Interval(3, 5))
    (3, 6)
    """
    low: Cut = Edge.BOTTOM
    high: Cut = Edge.TOP
    if interval.low is not None:
        low = _encoded(encoding, interval.low, after=interval.low_open)
    if interval.high is not None:
        high = _encoded(encoding, interval.high, after=not interval.high_open)
    return low, high


def interval_of(encoding: Encoding, low: Cut, high: Cut) -> Interval:
    """An interval with these ends: it holds what the one they were made from holds.

    >>> interval_of(Encoding.INTEGER, 3, 6)
    Interval(low=3, high=6, low_open=False, high_open=True)
    """
    return Interval(
        None if isinstance(low, Edge) else _decoded(encoding, low),
        None if isinstance(high, Edge) else _decoded(encoding, high),
        low_open=False,
        high_open=not isinstance(high, Edge),
    )


def _encoded(encoding: Encoding, key: Key, after: bool) -> Cut:
    if encoding is Encoding.TEXT:
        assert isinstance(key, str)
        return key.encode() + b"\0" if after else key.encode()
    if encoding is Encoding.FLOAT:
        place = _place(float(key)) + after
        return place if place <= _NAN else Edge.TOP
    assert isinstance(key, int)
    place = key + after
    most = _MOST_WIDE if encoding is Encoding.WIDE else _MAGNITUDE
    if place > most:
        return Edge.TOP
    return place if place >= -most else Edge.BOTTOM


def _place(value: float) -> int:
    """A double as the integer that sorts as Spark sorts doubles: NaN largest, -0.0 as 0.0."""
    if value != value:
        return _NAN
    bits: int = _BITS.unpack(_DOUBLE.pack(value))[0]
    return bits if bits >= 0 else (bits ^ _MAGNITUDE) + 1


def _decoded(encoding: Encoding, cut: int | bytes) -> Key:
    if isinstance(cut, bytes):
        return cut.decode()
    if encoding is not Encoding.FLOAT:
        return cut
    bits = cut if cut >= 0 else (cut - 1) ^ _MAGNITUDE
    value: float = _DOUBLE.unpack(_BITS.pack(bits))[0]
    return value
