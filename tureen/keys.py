r"""Keys: column values as numbers or bytes that compare as Spark compares the values.

A clause's constants are in the *key domain* of their column (`tureen.predicate`). Where many keys are compared at once,
in an index or between cut points, all but STRINGs and wide DECIMALs are 64-bit integers: the keys of BOOLEAN, whole
numbers, DATE, TIMESTAMP and DECIMAL are integers already, and a FLOAT or DOUBLE becomes the integer that sorts like it,
with NaN the largest and -0.0 equal to 0.0. A STRING is compared by its UTF-8 bytes. Every key has a next key, so the
end of any interval is a position before some key: `x <= 5` ends before 6, and `x <= 'ab'` before `'ab\0'`.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from tureen.predicate import Key

KeyColumns = tuple[tuple[str, str], ...]
"""The columns of a key index, each with the domain in which it is compared; in alphabetical order."""

LEAST_KEY = -(1 << 63)
GREATEST_KEY = (1 << 63) - 1
"""The range of integer keys."""

GREATEST_WIDE_KEY = (1 << 127) - 1
"""The greatest key of a DECIMAL past 18 digits, which is stored in 128 bits."""

NAN_KEY = 0x7FF8_0000_0000_0000
"""The greatest key of a FLOAT or DOUBLE."""

_MAGNITUDE = 0x7FFF_FFFF_FFFF_FFFF
_INFINITY = 0x7FF0_0000_0000_0000
_DOUBLE, _BITS = struct.Struct("<d"), struct.Struct("<q")


def key_of_bits(bits: int) -> int:
    """The key of a double, given its bits as a signed integer, for compiled loops.

    >>> key_of_bits(0x7FF0_0000_0000_0001) == NAN_KEY, key_of_bits(LEAST_KEY)
    (True, 0)
    """
    if (bits & _MAGNITUDE) > _INFINITY:
        return NAN_KEY
    if bits >= 0:
        return bits
    return (bits ^ _MAGNITUDE) + 1


def float_key(value: float) -> int:
    """The key of a float.

    >>> floats = [math.nan, 1.5, -0.0, -1.5, math.inf, -math.inf, 0.0]
    >>> sorted(floats, key=float_key)
    [-inf, -1.5, -0.0, 0.0, 1.5, inf, nan]
    """
    if value != value:
        return NAN_KEY
    bits: int = _BITS.unpack(_DOUBLE.pack(value))[0]
    return bits if bits >= 0 else (bits ^ _MAGNITUDE) + 1


def float_of_key(key: int) -> float:
    """The float that has a key; the inverse of `float_key`.

    >>> [float_of_key(float_key(value)) for value in (-1.5, -0.0, math.nan)]
    [-1.5, 0.0, nan]
    """
    value: float = _DOUBLE.unpack(_BITS.pack(key if key >= 0 else (key - 1) ^ _MAGNITUDE))[0]
    return value


def float_keys(values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The keys of an array of floats.

    >>> float_keys(np.array([-1.5, -0.0])).tolist() == [float_key(-1.5), float_key(0.0)]
    True
    """
    doubles = values.astype(np.float64)
    bits = doubles.view(np.int64)
    keys = np.where(bits >= 0, bits, (bits ^ np.int64(_MAGNITUDE)) + 1)
    keys[np.isnan(doubles)] = NAN_KEY
    return keys


def floats_of_keys(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The floats that have these keys; the inverse of `float_keys`.

    >>> floats_of_keys(float_keys(np.array([-1.5, -0.0, np.nan]))).tolist()
    [-1.5, 0.0, nan]
    """
    return np.where(keys >= 0, keys, (keys - 1) ^ np.int64(_MAGNITUDE)).view(np.float64)


def sort_key(key: Key) -> tuple[bool, Key]:
    """The sort key for keys of one column in Python, which orders strings as their UTF-8 bytes are ordered.

    >>> sorted([math.nan, 1.5, -math.inf], key=sort_key)
    [-inf, 1.5, nan]
    """
    return (True, 0.0) if key != key else (False, key)


def canonical_float(value: float) -> float:
    """The float with a single NaN object and a single zero, so that equal keys are equal objects and equal texts.

    >>> canonical_float(-0.0), canonical_float(float("nan")) is math.nan
    (0.0, True)
    """
    return math.nan if value != value else value + 0.0


def after_text(text: str) -> bytes:
    r"""The least key above that of a text, which is its UTF-8 bytes.

    >>> "ab".encode() < after_text("ab") <= "ab\0".encode() < "abc".encode()
    True
    """
    return text.encode() + b"\0"
