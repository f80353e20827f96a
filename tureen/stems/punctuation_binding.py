"""Punctuations as users write them, checked against a schema: patterns of codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from tureen.closed.key_codes import has_order
from tureen.closed.pattern import Code, CodeRange, Pattern, ValueList, decimal_code, float_code
from tureen.errors import InvalidPunctuation, InvalidRows, nearest
from tureen.punctuation import Punctuation, Range, listed
from tureen.schema import FRACTIONAL, Column, Kind, Schema
from tureen.stems.intake import convert_values

_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)

MAX_VALUES = 10_000_000
"""The number of values that one punctuation may list."""


def bind_punctuation(schema: Schema, punctuation: Punctuation) -> Pattern:
    """The pattern of a punctuation; raises InvalidPunctuation if it does not fit the schema."""
    parts: dict[str, ValueList | CodeRange] = {}
    for name, part in punctuation.where.items():
        column = schema.find(name)
        if column is None:
            raise InvalidPunctuation(f"unknown column '{name}' in a punctuation", hint=nearest(name, schema.names))
        if column.name in parts:
            raise InvalidPunctuation(f"duplicate column '{column.name}' in a punctuation")
        parts[column.name] = _interval(column, part) if isinstance(part, Range) else _value_list(column, part)
    if not parts:
        raise InvalidPunctuation("a punctuation needs a pattern for at least one column", hint='such as {"item": 180}')
    return Pattern(tuple((name, parts[name]) for name in schema.names if name in parts))


def _value_list(column: Column, values: Any) -> ValueList:
    if isinstance(values, Mapping):
        raise InvalidPunctuation(f"column '{column.name}': a pattern must be a value, a list or a Range, got a dict")
    values = listed(values)
    if not values:
        raise InvalidPunctuation(f"column '{column.name}': the list of a punctuation is empty", hint="name a value")
    if len(values) > MAX_VALUES:
        raise InvalidPunctuation(f"a punctuation may list at most {MAX_VALUES:,} values, got {len(values):,}")
    return ValueList(tuple(sorted(set(_codes(column, values)))))


def _interval(column: Column, ends: Range) -> CodeRange:
    if column.type.kind is Kind.BOOLEAN:
        raise InvalidPunctuation(f"column '{column.name}' is BOOLEAN, which has no ranges", hint="use a value")
    low, high = (None if end is None else _codes(column, [end])[0] for end in (ends.low, ends.high))
    low_open, high_open = ends.low_open and low is not None, ends.high_open and high is not None
    if not isinstance(low, str) and not isinstance(high, str):
        low = low + 1 if low is not None and low_open else low
        high = high - 1 if high is not None and high_open else high
        low_open = high_open = False
    if low is not None and high is not None:
        is_empty = low > high or (low == high and (low_open or high_open))  # type: ignore[operator]
        if is_empty:
            raise InvalidPunctuation(
                f"column '{column.name}': the range from {ends.low!r} to {ends.high!r} is empty",
                hint="the low end must not be greater than the high end",
            )
    if has_order(column.type) and (low == _GREATEST + 1 or high == _LEAST - 1):
        raise InvalidPunctuation(
            f"column '{column.name}': the range {'above' if high is None else 'below'} "
            f"{ends.low if high is None else ends.high!r} is empty",
            hint=f"no {column.type.sql} is beyond that end",
        )
    return CodeRange(low, high, low_open, high_open)


def _codes(column: Column, values: Sequence[Any]) -> list[Code]:
    if any(value is None for value in values):
        raise InvalidPunctuation(
            f"column '{column.name}': NULL cannot be punctuated",
            hint="NULL equals no value; leave the column out to match any",
        )
    try:
        typed = convert_values(column, list(values))
    except InvalidRows as error:
        raise InvalidPunctuation(f"in a punctuation, {error.message.partition(': ')[2] or error.message}") from None
    match column.type.kind:
        case Kind.DECIMAL:
            return [decimal_code(value, column.type.scale) for value in typed]
        case Kind.DATE:
            return [value.toordinal() - _EPOCH.toordinal() for value in typed]
        case Kind.TIMESTAMP:
            return [(value - _EPOCH) // _MICROSECOND for value in typed]
        case kind if kind in FRACTIONAL:
            return [float_code(value) for value in typed]
        case Kind.BOOLEAN:
            return [int(value) for value in typed]
    return list(typed)
