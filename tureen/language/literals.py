"""Number and string literals, with Spark's types and values."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

from tureen.errors import SqlError, article
from tureen.keys import canonical_float
from tureen.language.cast import to_float32
from tureen.language.source import Source
from tureen.language.tree import BIGINT, DOUBLE, FLOAT, INT, SMALLINT, TINYINT, Const
from tureen.language.types import MAX_PRECISION, integer_range
from tureen.schema import Kind, Type

_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)(e[+-]?\d{1,5})?(bd|[lsydf])?", re.IGNORECASE | re.ASCII)
_SUFFIXED = {"S": (SMALLINT,), "Y": (TINYINT,), "L": (BIGINT,)}
_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([0-3][0-7]{2})|(.))|(''|\"\")", re.DOTALL)


def read_number(source: Source, text: str, at: int, negative: bool = False) -> Const:
    """The constant of a number literal, with its suffix and the sign before it.

    >>> read_number(Source(""), "1.50", 0).type.sql
    'DECIMAL(3,2)'
    """
    match = _NUMBER.fullmatch(text)
    if not match:
        raise SqlError(f"'{text}' is not a number", location=source.location(at))
    digits, exponent, suffix = match.group(1), match.group(2) or "", (match.group(3) or "").upper()
    sign = "-" if negative else ""
    if suffix in ("D", "F") or (exponent and not suffix):
        return _floating(source, f"{sign}{digits}{exponent}", suffix, at)
    if suffix == "BD" or "." in digits:
        if suffix not in ("BD", ""):
            raise SqlError(f"'{text}' is not a number", location=source.location(at))
        return _decimal(source, f"{sign}{digits}{exponent}", at)
    return _integer(source, int(f"{sign}{digits}") if len(digits) <= 400 else 10**400, text, suffix, at)


def _floating(source: Source, text: str, suffix: str, at: int) -> Const:
    value = float(text)
    if suffix == "F":
        value = to_float32(value)
    if value in (float("inf"), float("-inf")):
        raise SqlError(
            f"the number '{text}' is too large",
            hint="write CAST('Infinity' AS DOUBLE) for infinity",
            location=source.location(at),
        )
    return Const(canonical_float(value), FLOAT if suffix == "F" else DOUBLE, at)


def _decimal(source: Source, text: str, at: int) -> Const:
    try:
        _, digits, exponent = Decimal(text).as_tuple()
    except InvalidOperation:
        raise SqlError(f"'{text}' is not a number", location=source.location(at)) from None
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    unscaled = int("".join(map(str, digits))) * (10**exponent if 0 < exponent < 100 else 1)
    precision = max(len(str(unscaled)), scale)
    if precision > MAX_PRECISION or exponent >= 100:
        raise SqlError(
            f"the number '{text}' has more than {MAX_PRECISION} digits",
            hint="write it as a DOUBLE, with an exponent or the suffix D",
            location=source.location(at),
        )
    value = -unscaled if text.startswith("-") else unscaled
    return Const(value, Type(Kind.DECIMAL, precision, scale), at)


def _integer(source: Source, value: int, text: str, suffix: str, at: int) -> Const:
    for integer_type in _SUFFIXED.get(suffix, (INT, BIGINT)):
        low, high = integer_range(integer_type.kind)
        if low <= value <= high:
            return Const(value, integer_type, at)
    if suffix in ("S", "Y"):
        raise SqlError(f"'{text}' is not {article(_SUFFIXED[suffix][0].sql)}", location=source.location(at))
    if suffix == "L" or abs(value) >= 10**MAX_PRECISION:
        raise SqlError(f"the number '{text}' is too large", location=source.location(at))
    return Const(value, Type(Kind.DECIMAL, len(str(abs(value))), 0), at)


def read_string(source: Source, raw: str, at: int) -> str:
    r"""The value of a string literal, given with its quotes.

    Backslash escapes are Spark's; `\%` and `\_` are left unchanged, for LIKE.

    >>> read_string(Source(""), r"'a\tb'", 0)
    'a\tb'
    """
    if raw[:1] in "rR":
        return raw[2:-1]
    quote, body = raw[:1], raw[1:-1]

    def unescape(match: re.Match[str]) -> str:
        short, long, octal, other, doubled = match.groups()
        if doubled:
            return quote if doubled[0] == quote else doubled
        if other:
            return f"\\{other}" if other in "%_" else _ESCAPES.get(other, other)
        return chr(int(octal, 8)) if octal else chr(int(short or long, 16))

    try:
        text = _ESCAPE.sub(unescape, body)
        # Two \u halves of a surrogate pair are one character; an unpaired half is an error.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16")
    except (ValueError, OverflowError):
        raise SqlError("the string contains an invalid character", location=source.location(at)) from None
    return text
