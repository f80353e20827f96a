"""Arrow columns, cast into a stream's types where nothing is lost, and checked for what cannot be kept."""

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
"""How many digits a DECIMAL can hold."""

LARGEST_FLOAT = float.fromhex("0x1.fffffep+127")
"""What a FLOAT can hold; beyond it a number would silently become infinite."""


def exactly(precision: int, scale: int) -> Callable[[Decimal], Decimal]:
    """What brings a number to a scale, and raises an ArithmeticError where that would lose a digit.

    Arrow is shown no other numbers: it takes those with a far exponent for zero, or crashes.

    >>> exactly(5, 2)(Decimal("1E+1"))
    Decimal('10.00')
    """
    context = Context(prec=precision, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[InvalidOperation, Inexact])
    unit = Decimal((0, (1,), -scale))
    return lambda number: context.quantize(number, unit)


def checked(column: Column, values: pa.Array) -> pa.Array:
    """Arrow values that every later step can rely on: whole UTF-8, and times that people can name."""
    if not bool(pc.all(fit(column, values), min_count=0).as_py()):
        number = pc.index(fit(column, values), False).as_py()
        raise InvalidRows(f"row {number}: column '{column.name}' holds {UNFIT[column.type.kind]}")
    return values


UNFIT = {
    Kind.STRING: "text that is not UTF-8",
    Kind.DATE: "a date beyond the years 1 to 9999",
    Kind.TIMESTAMP: "a time beyond the years 1 to 9999",
}


def fit(column: Column, values: pa.Array) -> pa.Array:
    """Which values can be kept; NULL can."""
    kind = column.type.kind
    if kind is Kind.STRING:
        try:
            values.validate(full=True)
        except pa.ArrowInvalid:
            return pa.array([_is_text(one.as_buffer()) for one in values])
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
    """Arrow values in the column's own type, where nothing is lost by that."""
    target, found = column.type.arrow, values.type
    if found.equals(target):
        return values
    if pa.types.is_dictionary(found):
        return cast_column(column, values.cast(found.value_type))
    if pa.types.is_null(found) or _fits(column.type.kind, found):
        try:
            if pa.types.is_timestamp(found) and found.tz is None:
                # A time without a zone means UTC.
                values = values.cast(pa.timestamp(found.unit, tz="UTC"))
            if pa.types.is_integer(found) and pa.types.is_decimal(target):
                values = values.cast(pa.decimal128(38, 0))
            cast = values.cast(target)
            if column.type.kind is Kind.FLOAT and pc.sum(pc.is_inf(cast)) != pc.sum(
                pc.is_inf(values.cast(pa.float64()))
            ):
                raise InvalidRows(f"column '{column.name}' is FLOAT, and a value does not fit")
            return cast
        except pa.ArrowException as error:
            raise InvalidRows(
                f"column '{column.name}' is {column.type.sql}, and a value does not fit", detail=str(error)
            ) from error
    raise InvalidRows(f"column '{column.name}' is {column.type.sql}, not {found}", hint="cast it first")


def _fits(kind: Kind, found: pa.DataType) -> bool:
    """Whether values of an Arrow type may stand for a kind, each checked as it is cast."""
    is_integer, is_float = pa.types.is_integer(found), pa.types.is_floating(found)
    match kind:
        case Kind.TINYINT | Kind.SMALLINT | Kind.INT | Kind.BIGINT:
            return bool(is_integer)
        case Kind.FLOAT | Kind.DOUBLE:
            return bool(is_integer or is_float)
        case Kind.DECIMAL:
            return bool(is_integer or pa.types.is_decimal(found))
        case Kind.STRING:
            return bool(pa.types.is_string(found) or pa.types.is_large_string(found) or pa.types.is_string_view(found))
        case Kind.DATE:
            return bool(pa.types.is_date(found))
        case Kind.TIMESTAMP:
            return bool(pa.types.is_timestamp(found))
        case _:
            return bool(pa.types.is_boolean(found))
