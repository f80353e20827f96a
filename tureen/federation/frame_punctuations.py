"""The punctuations of a frame: patterns with their places among its rows, as JSON.

A peer may send anything, so every column, code and place is checked against the columns of the flow.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa

from tureen.closed.pattern import Code, CodeRange, Pattern, ValueList
from tureen.closed.section import PlacedPattern
from tureen.errors import PeerFailed
from tureen.schema import ARRIVAL, HOME_ID

_INTEGER = (-(1 << 63), (1 << 63) - 1)
_DECIMAL = (-(10**38) + 1, 10**38 - 1)
EARLIEST = -62_135_596_800_000_001
_MOMENT = (EARLIEST, 253_402_300_800_000_000)
_DAY = (-719_163, 2_932_897)
"""The instants and the days of the years 1 to 9999, and one more on each side: open ends are the next code."""


def encode_punctuations(placed: Sequence[PlacedPattern]) -> bytes:
    """Punctuations as bytes."""
    return json.dumps([[at, pattern.as_json()] for at, pattern in placed], separators=(",", ":")).encode()


def decode_punctuations(content: bytes, schema: pa.Schema, rows: int) -> tuple[PlacedPattern, ...]:
    """Read what `encode_punctuations` returns, of a frame with that many rows; raises PeerFailed for anything else."""
    try:
        entries = json.loads(content)
        placed = tuple(PlacedPattern(_checked_place(at, rows), _pattern(stored, schema)) for at, stored in entries)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise PeerFailed("the punctuations of a frame cannot be read", detail=str(error)[:200]) from error
    if any(first.at > second.at for first, second in pairwise(placed)):
        raise PeerFailed("the punctuations of a frame are not in order")
    return placed


def _checked_place(at: Any, rows: int) -> int:
    if not _is_integer(at) or not 0 <= at <= rows:
        raise ValueError("a punctuation is not among the rows")
    return int(at)


def _pattern(stored: Any, schema: pa.Schema) -> Pattern:
    if not isinstance(stored, dict) or not stored:
        raise ValueError("a punctuation has no columns")
    names = [name for name in schema.names if name in stored and name not in (ARRIVAL, HOME_ID)]
    if len(names) < len(stored):
        raise ValueError("a punctuation has columns that the flow lacks")
    return Pattern(tuple((name, _part(stored[name], _check_of(schema.field(name).type))) for name in names))


def _part(stored: Any, check: Callable[[Any], Code]) -> ValueList | CodeRange:
    if isinstance(stored, list):
        codes = {check(code) for code in stored}
        if not codes:
            raise ValueError("a punctuation has no values")
        return ValueList(tuple(sorted(codes)))
    low, high = (None if stored[end] is None else check(stored[end]) for end in ("low", "high"))
    low_open, high_open = stored["low_open"], stored["high_open"]
    if not isinstance(low_open, bool) or not isinstance(high_open, bool):
        raise TypeError("an end of a range is neither open nor closed")
    if low is not None and high is not None and low > high:  # type: ignore[operator]  # they have one type
        raise ValueError("a range of a punctuation is empty")
    return CodeRange(low, high, low_open, high_open)


def _check_of(kind: pa.DataType) -> Callable[[Any], Code]:
    """A function that raises for what is no code of a column."""
    if pa.types.is_string(kind):
        return _checked_text
    bounds = _INTEGER
    if pa.types.is_timestamp(kind):
        bounds = _MOMENT
    elif pa.types.is_date(kind):
        bounds = _DAY
    elif pa.types.is_decimal(kind) and kind.precision > 18:
        bounds = _DECIMAL

    def check(code: Any) -> Code:
        if not _is_integer(code) or not bounds[0] <= code <= bounds[1]:
            raise ValueError("a value of a punctuation does not fit its column")
        return int(code)

    return check


def _checked_text(code: Any) -> str:
    if not isinstance(code, str):
        raise TypeError("a value of a punctuation does not fit its column")
    code.encode()  # raises ValueError for half of a surrogate pair
    return code


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
