"""Casting keys from one type to another, exactly as Spark's ANSI mode casts values."""

from __future__ import annotations

import math
import re
import struct
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from fractions import Fraction

from tureen.keys import canonical_float
from tureen.language.moments import DAY_MICROS, day_text, read_date, read_timestamp
from tureen.language.types import as_decimal, integer_range
from tureen.predicate import Key
from tureen.schema import FRACTIONAL, INTEGRAL, Kind, Type

_BLANK = "".join(map(chr, range(33))) + "\x7f"
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,5})?", re.ASCII)
_SPECIAL = {
    "nan": math.nan,
    "inf": math.inf,
    "+inf": math.inf,
    "-inf": -math.inf,
    "infinity": math.inf,
    "+infinity": math.inf,
    "-infinity": -math.inf,
}
_TRUTH = dict.fromkeys(("t", "true", "y", "yes", "1"), 1) | dict.fromkeys(("f", "false", "n", "no", "0"), 0)

_WIDE = Context(prec=400, rounding=ROUND_HALF_UP)


class CastFailed(Exception):
    """The value has no counterpart in the other type."""


def cast_key(value: Key, source: Type, target: Type) -> Key:
    """The key of `value` after CAST(value AS target); raises CastFailed.

    >>> cast_key(15, Type.parse("DECIMAL(2,1)"), Type.parse("DOUBLE"))
    1.5
    """
    if source == target:
        return value
    if isinstance(value, str):
        return _from_text(value, target)
    if target.kind is Kind.STRING:
        return _to_text(value, source)
    if isinstance(value, float):
        return _from_float(value, target)
    return _from_int(value, source, target)


def to_float32(value: float) -> float:
    """The nearest FLOAT, as a double."""
    try:
        rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return math.nan if rounded != rounded else rounded


def _from_int(value: int, source: Type, target: Type) -> Key:
    if source.kind is Kind.DATE or source.kind is Kind.TIMESTAMP:
        if target.kind is Kind.TIMESTAMP:
            return value * DAY_MICROS
        if target.kind is Kind.DATE:
            return value // DAY_MICROS
        raise CastFailed
    scale = source.scale
    if target.kind is Kind.BOOLEAN:
        return int(value != 0)
    if target.kind in INTEGRAL:
        whole = abs(value) // 10**scale
        return _checked(whole if value >= 0 else -whole, target)
    if target.kind in FRACTIONAL:
        number = value / 10**scale if scale else float(value)
        if target.kind is Kind.FLOAT:
            number = _nearest_float32(Fraction(value, 10**scale), to_float32(number))
        return canonical_float(number)
    if target.kind is Kind.DECIMAL:
        return _rescale(value, as_decimal(source).scale, target)
    raise CastFailed


def _nearest_float32(exact: Fraction, guess: float) -> float:
    """The FLOAT nearest to a number; the guess was rounded twice, first to DOUBLE, and may be off by one bit."""
    if not math.isfinite(guess):
        return guess
    (bits,) = struct.unpack("<I", struct.pack("<f", abs(guess)))
    patterns = (bits, bits + 1, max(bits - 1, 0))
    candidates = [(struct.unpack("<f", struct.pack("<I", pattern))[0], pattern & 1) for pattern in patterns]
    # A tie goes to the number whose last bit is even.
    finite = [(abs(Fraction(number) - abs(exact)), odd, number) for number, odd in candidates if math.isfinite(number)]
    return math.copysign(min(finite)[2], exact)


def _from_float(value: float, target: Type) -> Key:
    if target.kind is Kind.DOUBLE:
        return value
    if target.kind is Kind.FLOAT:
        return canonical_float(to_float32(value))
    if target.kind is Kind.BOOLEAN:
        return int(value != 0)
    if target.kind in INTEGRAL and math.isfinite(value):
        return _checked(math.trunc(value), target)
    raise CastFailed


def _from_text(text: str, target: Type) -> Key:
    trimmed = text.strip(_BLANK)
    key: Key | None = None
    if target.kind in INTEGRAL:
        key = _checked(int(trimmed), target) if _INTEGER.fullmatch(trimmed) and len(trimmed) < 40 else None
    elif target.kind in FRACTIONAL:
        key = _SPECIAL.get(trimmed.lower())
        if key is None and _NUMBER.fullmatch(trimmed[:-1] if trimmed[-1:] in tuple("dDfF") else trimmed):
            number = float(trimmed.rstrip("dDfF"))
            key = canonical_float(number if target.kind is Kind.DOUBLE else to_float32(number))
    elif target.kind is Kind.DECIMAL and _NUMBER.fullmatch(trimmed) and len(trimmed) < 200:
        try:
            exact = Decimal(trimmed).scaleb(target.scale, _WIDE).to_integral_value(ROUND_HALF_UP, _WIDE)
        except InvalidOperation:
            raise CastFailed from None
        if abs(exact) < 10**target.precision:
            key = int(exact)
    elif target.kind is Kind.BOOLEAN:
        key = _TRUTH.get(trimmed.lower())
    elif target.kind is Kind.DATE:
        key = read_date(text)
    elif target.kind is Kind.TIMESTAMP:
        key = read_timestamp(text)
    if key is None:
        raise CastFailed
    return key


def _to_text(value: int | float, source: Type) -> str:
    if source.kind in INTEGRAL:
        return str(value)
    if source.kind is Kind.BOOLEAN:
        return "true" if value else "false"
    if source.kind is Kind.DATE:
        return day_text(int(value))
    raise CastFailed


def _rescale(value: int, scale: int, target: Type) -> int:
    """Convert an unscaled integer to another scale, rounding halves away from zero."""
    if target.scale >= scale:
        rescaled = int(value * 10 ** (target.scale - scale))
    else:
        unit: int = 10 ** (scale - target.scale)
        whole, rest = divmod(abs(value), unit)
        whole += 2 * rest >= unit
        rescaled = whole if value >= 0 else -whole
    if abs(rescaled) >= 10**target.precision:
        raise CastFailed
    return rescaled


def _checked(value: int, target: Type) -> int:
    low, high = integer_range(target.kind)
    if not low <= value <= high:
        raise CastFailed
    return value
