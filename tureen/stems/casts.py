"""Casts of Arrow columns to a stream's types without loss, and checks for values that cannot be stored."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Inexact, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tureen.errors import InvalidRows
from tureen.schema import Column, Kind

LARGEST_DECIMAL = 38
"""The greatest precision of a DECIMAL."""

LARGEST_FLOAT = float.fromhex("0x1.fffffep+127")
"""The greatest finite FLOAT; a larger number would silently become infinite."""


def exact_quantizer(precision: int, scale: int) -> Callable[[Decimal], Decimal]:
    """A function that rescales a number, and raises an ArithmeticError where that would lose a digit.

    Arrow gets no other numbers: it reads those with an extreme exponent as zero, or crashes.

    >>> exact_quantizer(5, 2)(Decimal("1E+1"))
    Decimal('10.00')
    """
    context = Context(prec=precision, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[InvalidOperation, Inexact])
    unit = Decimal((0, (1,), -scale))
    return lambda number: context.quantize(number, unit)


def check_values(column: Column, values: pa.Array) -> pa.Array:
    """The values, if all of them can be stored; raises InvalidRows that names the first row that cannot."""
    if not bool(pc.all(storable(column, values), min_count=0).as_py()):
        row = pc.index(storable(column, values), False).as_py()
        raise InvalidRows(f"row {row}: column '{column.name}' holds {NOT_STORABLE[column.type.kind]}")
    return values


NOT_STORABLE = {
    Kind.STRING: "text that is not UTF-8",
    Kind.DATE: "a date beyond the years 1 to 9999",
    Kind.TIMESTAMP: "a time beyond the years 1 to 9999",
}


def storable(column: Column, values: pa.Array) -> pa.Array:
    """Which values can be stored: NULL, valid UTF-8, dates and times of the years 1 to 9999."""
    kind = column.type.kind
    if kind is Kind.STRING:
        try:
            values.validate(full=True)
        except pa.ArrowInvalid:
            return pa.array([_is_text(text.as_buffer()) for text in values])
    elif kind in _SPAN:
        low, high = (pa.scalar(end, column.type.arrow) for end in _SPAN[kind])
        within = pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))
        return pc.fill_null(within, True)
    return pa.repeat(True, len(values))


_SPAN: dict[Kind, tuple[Any, Any]] = {
    Kind.DATE: (date.min, date.max),
    Kind.TIMESTAMP: (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)),
}


def _is_text(value: pa.Buffer | None) -> bool:
    try:
        return value is None or bytes(value).decode() is not None
    except UnicodeDecodeError:
        return False


def cast_column(column: Column, values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Arrow values in the column's own type; raises InvalidRows where the cast would lose anything."""
    target, source = column.type.arrow, values.type
    if source.equals(target):
        return values
    if pa.types.is_dictionary(source):
        return cast_column(column, values.cast(source.value_type))
    if pa.types.is_null(source) or _is_castable(column.type.kind, source):
        try:
            if pa.types.is_timestamp(source) and source.tz is None:
                # A time without a zone means UTC.
                values = values.cast(pa.timestamp(source.unit, tz="UTC"))
            if pa.types.is_integer(source) and pa.types.is_decimal(target):
                values = values.cast(pa.decimal128(38, 0))
            result = values.cast(target)
            if column.type.kind is Kind.FLOAT and pc.sum(pc.is_inf(result)) != pc.sum(
                pc.is_inf(values.cast(pa.float64()))
            ):
                raise InvalidRows(f"column '{column.name}' is FLOAT, and a value does not fit")
            return result
        except pa.ArrowException as error:
            raise InvalidRows(
                f"column '{column.name}' is {column.type.sql}, and a value does not fit", detail=str(error)
            ) from error
    raise InvalidRows(f"column '{column.name}' is {column.type.sql}, not {source}", hint="cast it first")


def _is_castable(kind: Kind, source: pa.DataType) -> bool:
    """Whether values of an Arrow type may be cast to a kind, each checked as it is cast."""
    is_integer, is_float = pa.types.is_integer(source), pa.types.is_floating(source)
    match kind:
        case Kind.TINYINT | Kind.SMALLINT | Kind.INT | Kind.BIGINT:
            return bool(is_integer)
        case Kind.FLOAT | Kind.DOUBLE:
            return bool(is_integer or is_float)
        case Kind.DECIMAL:
            return bool(is_integer or pa.types.is_decimal(source))
        case Kind.STRING:
            return bool(
                pa.types.is_string(source) or pa.types.is_large_string(source) or pa.types.is_string_view(source)
            )
        case Kind.DATE:
            return bool(pa.types.is_date(source))
        case Kind.TIMESTAMP:
            return bool(pa.types.is_timestamp(source))
        case _:
            return bool(pa.types.is_boolean(source))
