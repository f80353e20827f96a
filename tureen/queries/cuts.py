"""Cut points: where an interval's ends cut the order of a column's values.

A cut point is a key (`tureen.keys`) and lies before the first value that is not below it. Every key has a next key, so
both open and closed ends of intervals are such cut points.
"""

from __future__ import annotations

from enum import Enum, IntEnum

import pyarrow as pa

from tureen.keys import (
    GREATEST_KEY,
    GREATEST_WIDE_KEY,
    NAN_KEY,
    after_text,
    float_key,
    float_of_key,
)
from tureen.predicate import Interval, Key


class Edge(Enum):
    """The cut points of every column: before all rows, after all rows that are not NULL, after all rows."""

    BOTTOM = 0
    TOP = 1
    END = 2


Cut = int | bytes | Edge
"""An encoded key, or an edge of the column."""


class Encoding(IntEnum):
    """How the keys of a column are stored in cut points; WIDE is a DECIMAL past 18 digits."""

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
    """The interval between two cut points; it has the same keys as the interval that `ends_of` encoded.

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
        return after_text(key) if after else key.encode()
    if encoding is Encoding.FLOAT:
        cut = float_key(float(key)) + after
        return cut if cut <= NAN_KEY else Edge.TOP
    assert isinstance(key, int)
    cut = key + after
    greatest = GREATEST_WIDE_KEY if encoding is Encoding.WIDE else GREATEST_KEY
    if cut > greatest:
        return Edge.TOP
    return cut if cut >= -greatest else Edge.BOTTOM


def _decoded(encoding: Encoding, cut: int | bytes) -> Key:
    if isinstance(cut, bytes):
        return cut.decode()
    return float_of_key(cut) if encoding is Encoding.FLOAT else cut
