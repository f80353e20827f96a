"""Patterns: punctuations whose values are checked, as codes.

A code is what a value is stored as: an integer, of which the order is that of the values, or a text of a STRING column.
DECIMALs are counted in units of their last digit, dates in days, timestamps in microseconds; the bits of a float are
rearranged.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

from tureen.schema import FRACTIONAL, Kind, Schema, Type

Code = int | str

_DOUBLE, _BITS = struct.Struct("<d"), struct.Struct("<q")
_NAN = 0x7FF0000000000001
"""Greater than the code of infinity by one."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = _EPOCH.toordinal()
_EXACT = Context(prec=100)
"""Has all digits of a DECIMAL: the default context rounds to 28."""
_SHOWN_VALUES = 5
"""The number of values of a list that a text shows."""


@dataclass(frozen=True, slots=True)
class ValueList:
    """The codes of one or more values, sorted and distinct."""

    codes: tuple[Code, ...]


@dataclass(frozen=True, slots=True)
class CodeRange:
    """The codes between two ends; None does not limit it. Integers have no open ends: these are the next integer."""

    low: Code | None = None
    high: Code | None = None
    low_open: bool = False
    high_open: bool = False


@dataclass(frozen=True, slots=True)
class Pattern:
    """What no later tuple matches: for some columns, in the order of the schema, values or an interval."""

    columns: tuple[tuple[str, ValueList | CodeRange], ...]

    def as_json(self) -> dict[str, Any]:
        """The pattern as it is stored: lists, and mappings for intervals."""
        return {
            name: list(part.codes)
            if isinstance(part, ValueList)
            else {"low": part.low, "high": part.high, "low_open": part.low_open, "high_open": part.high_open}
            for name, part in self.columns
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Pattern:
        """Read what `as_json` returns."""
        return cls(
            tuple(
                (name, ValueList(tuple(part)) if isinstance(part, list) else CodeRange(**part))
                for name, part in stored.items()
            )
        )

    def text(self, schema: Schema) -> str:
        """The pattern as a condition in SQL; a long list is cut.

        >>> schema = Schema.parse("item INT, ts TIMESTAMP")
        >>> Pattern((("item", ValueList((3, 4))), ("ts", CodeRange(high=0)))).text(schema)
        "item IN (3, 4) AND ts <= '1970-01-01T00:00:00+00:00'"
        """
        return " AND ".join(part_text(name, _type(schema, name), part) for name, part in self.columns)


def part_text(name: str, column_type: Type, part: ValueList | CodeRange) -> str:
    """The condition of one column."""
    if isinstance(part, CodeRange):
        ends = [
            f"{name} {'>' if part.low_open else '>='} {code_text(column_type, part.low)}"
            if part.low is not None
            else "",
            f"{name} {'<' if part.high_open else '<='} {code_text(column_type, part.high)}"
            if part.high is not None
            else "",
        ]
        return " AND ".join(filter(None, ends)) or f"{name} IS NOT NULL"
    texts = [code_text(column_type, code) for code in part.codes[:_SHOWN_VALUES]]
    if len(part.codes) == 1:
        return f"{name} = {texts[0]}"
    more = len(part.codes) - len(texts)
    return f"{name} IN ({', '.join(texts)}{f', and {more:,} more' if more else ''})"


def code_text(column_type: Type, code: Code) -> str:
    """The value of a code, as SQL and JSON write it.

    >>> code_text(Type.parse("DECIMAL(9,2)"), 150), code_text(Type.parse("DOUBLE"), float_code(-0.5))
    ('1.50', '-0.5')
    """
    if isinstance(code, str):
        quoted = code.replace("'", "''")
        return f"'{quoted if len(quoted) <= 100 else quoted[:97] + '...'}'"
    match column_type.kind:
        case Kind.BOOLEAN:
            return "true" if code else "false"
        case Kind.DECIMAL:
            return f"{code_decimal(code, column_type.scale):f}"
        case Kind.DATE:
            return f"'{date.fromordinal(code + _EPOCH_DAY).isoformat()}'"
        case Kind.TIMESTAMP:
            return f"'{moment(code).isoformat()}'"
        case kind if kind in FRACTIONAL:
            return str(code_float(code))
    return str(code)


def moment(micros: int) -> datetime:
    """The instant at a number of microseconds after the epoch."""
    return _EPOCH + timedelta(microseconds=micros)


def decimal_code(value: Decimal, scale: int) -> int:
    """The code of a number of a DECIMAL column: its units of the last digit.

    >>> decimal_code(Decimal("12345678901234567890123456789012345678"), 0) % 10
    8
    """
    return int(value.scaleb(scale, _EXACT))


def code_decimal(code: int, scale: int) -> Decimal:
    """The number of a code."""
    return Decimal(code).scaleb(-scale, _EXACT)


def float_code(value: float) -> int:
    """The code of a number of a FLOAT or DOUBLE column: NaN is the greatest, and the zeros are equal.

    >>> float_code(-1.0) < float_code(-0.0) == float_code(0.0) < float_code(float("inf")) < float_code(float("nan"))
    True
    """
    if value != value:
        return _NAN
    (bits,) = _BITS.unpack(_DOUBLE.pack(value + 0.0))
    return int(bits if bits >= 0 else bits ^ 0x7FFFFFFFFFFFFFFF)


def code_float(code: int) -> float:
    """The number of a code."""
    return float(_DOUBLE.unpack(_BITS.pack(code if code >= 0 else code ^ 0x7FFFFFFFFFFFFFFF))[0])


def _type(schema: Schema, name: str) -> Type:
    column = schema.find(name)
    assert column is not None, "patterns are checked against the schema"
    return column.type
