"""Rows in any usual format, converted to one Arrow batch of a stream's columns, or rejected with the reason."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tureen.abstract_clock import check_times
from tureen.errors import InvalidRows, nearest
from tureen.schema import INTEGRAL, Column, Kind, Schema, Type
from tureen.stems.casts import LARGEST_DECIMAL, LARGEST_FLOAT, cast_column, check_values, exact_quantizer
from tureen.stems.value_arrays import array_of

_RANGE = {Kind.TINYINT: 1 << 7, Kind.SMALLINT: 1 << 15, Kind.INT: 1 << 31, Kind.BIGINT: 1 << 63}

# Python types that Arrow converts as they are, by kind; all others are converted value by value.
_PLAIN: dict[Kind, frozenset[type]] = {
    Kind.BOOLEAN: frozenset({bool, type(None)}),
    Kind.STRING: frozenset({str, type(None)}),
    Kind.DOUBLE: frozenset({float, type(None)}),
}


def to_batch(schema: Schema, rows: Any) -> pa.RecordBatch:
    """One record batch with the stream's columns, in its order and types.

    `rows` may be a list of dicts, an Arrow table or batch, or a pandas or polars DataFrame.
    Names are case-insensitive, a missing name is NULL, an unknown name is an error.
    """
    if isinstance(rows, pa.RecordBatch):
        table = pa.Table.from_batches([rows])
    elif isinstance(rows, pa.Table):
        table = rows
    elif hasattr(rows, "to_arrow") or hasattr(rows, "iloc"):
        # Values of an object column are Python objects: they are converted like those of dicts.
        return check_times(schema, _from_table(schema, from_frame(rows), by_value=True))
    elif isinstance(rows, Mapping | str | bytes) or not isinstance(rows, Iterable):
        raise InvalidRows(
            f"rows must be a list of dicts, an Arrow table, or a DataFrame, got {type(rows).__name__}",
            hint="a single row is a list of one dict",
        )
    else:
        return check_times(schema, _from_dicts(schema, list(rows)))
    return check_times(schema, _from_table(schema, table))


@cache
def _zeros() -> dict[int, pa.Scalar]:
    """A value of each type to replace NULL; which one does not matter, as long as it is always the same.

    Created on first use: Arrow imports pandas for its first scalar, which is slow.
    """
    columns = Schema.parse(
        "a BOOLEAN, b TINYINT, c SMALLINT, d INT, e BIGINT, f FLOAT, g DOUBLE, h STRING, i DATE, j TIMESTAMP"
    ).columns
    values = (False, 0, 0, 0, 0, 0.0, 0.0, "", date(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC))
    return {
        column.type.arrow.id: pa.scalar(value, column.type.arrow) for column, value in zip(columns, values, strict=True)
    }


def content_digest(batch: pa.RecordBatch) -> bytes:
    """A fingerprint of the rows, the same for all input formats; the bytes under a NULL do not count."""
    arrays: list[pa.Array] = []
    for column in batch.columns:
        valid = column.is_valid()
        decimal = pa.types.is_decimal(column.type)
        zero = pa.scalar(Decimal(0), column.type) if decimal else _zeros()[column.type.id]
        arrays += [valid, pc.if_else(valid, column, zero)]
    normalized = pa.record_batch(arrays, names=[str(number) for number in range(len(arrays))])
    return hashlib.blake2b(normalized.serialize(), digest_size=16).digest()


def from_frame(frame: Any) -> pa.Table:
    """The Arrow table of a pandas or polars DataFrame."""
    try:
        table = frame.to_arrow() if hasattr(frame, "to_arrow") else pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, ValueError, TypeError, AttributeError) as error:
        raise InvalidRows(f"the {type(frame).__name__} cannot be read as rows", detail=str(error)) from error
    if not isinstance(table, pa.Table):
        raise InvalidRows(f"rows must be a DataFrame, got {type(frame).__name__}")
    return table


def _from_dicts(schema: Schema, rows: Sequence[Any]) -> pa.RecordBatch:
    keys: dict[str, str] = {}
    for row_index, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InvalidRows(f"row {row_index} must be a dict, got {type(row).__name__}")
        for key in row.keys() - keys.keys():
            column = schema.find(key) if isinstance(key, str) else None
            if column is None:
                raise InvalidRows(f"row {row_index}: unknown column '{key}'", hint=nearest(str(key), schema.names))
            keys[key] = column.name
    spellings: dict[str, list[str]] = {}
    for key, name in keys.items():
        spellings.setdefault(name, []).append(key)
    arrays = []
    for column in schema.columns:
        names = spellings.get(column.name, [])
        if len(names) > 1:
            values = [_single_value(column, row_index, row, names) for row_index, row in enumerate(rows)]
        else:
            key = names[0] if names else column.name
            values = [row.get(key) for row in rows]
        arrays.append(_array(column, values))
    return pa.record_batch(arrays, schema=schema.arrow)


def _single_value(column: Column, row_index: int, row: Mapping[str, Any], names: Sequence[str]) -> Any:
    present = [key for key in names if key in row]
    if len(present) > 1:
        raise InvalidRows(f"row {row_index}: duplicate column '{column.name}': {' and '.join(present)}")
    return row[present[0]] if present else None


def _array(column: Column, values: list[Any]) -> pa.Array:
    kind = column.type.kind
    plain = _PLAIN.get(kind)
    if plain is None or not set(map(type, values)) <= plain:
        convert = _decimal(column.type) if kind is Kind.DECIMAL else _CONVERT[kind]
        values = [
            None if value is None else _converted(column, row_index, value, convert)
            for row_index, value in enumerate(values)
        ]
    try:
        return array_of(values, column.type)
    except (pa.ArrowException, OverflowError, ValueError, TypeError) as error:
        for row_index, value in enumerate(values):
            try:
                pa.array([value], type=column.type.arrow)
            except (pa.ArrowException, OverflowError, ValueError, TypeError):
                raise _type_error(column, row_index, value) from None
        raise InvalidRows(f"column '{column.name}' cannot be read", detail=str(error)) from error


def convert_values(column: Column, values: list[Any]) -> list[Any]:
    """Values as the Python values that a column of the stream has; none of them is None."""
    return list(_array(column, values).to_pylist())


def _converted(column: Column, row_index: int, value: Any, convert: Callable[[Any], Any]) -> Any:
    try:
        # A numpy scalar, as its Python value.
        value = value.item() if hasattr(value, "item") and not isinstance(value, str) else value
        result = convert(value)
    except (ValueError, TypeError, ArithmeticError):
        raise _type_error(column, row_index, value) from None
    limit = _RANGE.get(column.type.kind)
    if limit is not None and not -limit <= result < limit:
        raise _type_error(column, row_index, value)
    return result


def _type_error(column: Column, row_index: int, value: Any) -> InvalidRows:
    try:
        text = repr(value)[:60]
    except ValueError:
        # Python does not print integers of thousands of digits.
        text = "a number of too many digits"
    return InvalidRows(
        f"row {row_index}: column '{column.name}' is {column.type.sql}, not {text}",
        detail="no row was accepted",
    )


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise TypeError


def _integer(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, Decimal):
        return int(_WHOLE(value))
    if isinstance(value, float) and value == int(value):
        return int(value)
    raise TypeError


_WHOLE = exact_quantizer(LARGEST_DECIMAL, 0)


def _float(value: Any) -> float:
    if isinstance(value, float | int | Decimal) and not isinstance(value, bool):
        number = float(value)
        if math.isinf(number) and value != number:
            raise OverflowError
        return number
    # JSON has no numbers for these.
    if value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    raise TypeError


def _float32(value: Any) -> float:
    number = _float(value)
    if math.isfinite(number) and abs(number) > LARGEST_FLOAT:
        raise OverflowError
    return number


def _decimal(target: Type) -> Callable[[Any], Decimal]:
    exact = exact_quantizer(target.precision, target.scale)
    return lambda value: exact(_number(value))


def _number(value: Any) -> Decimal:
    if isinstance(value, Decimal | int | str) and not isinstance(value, bool):
        return Decimal(value)
    if isinstance(value, float):
        # The shortest text of a float is most likely what was written.
        return Decimal(repr(value))
    raise TypeError


def _string(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise TypeError


def _date(value: Any) -> date:
    if isinstance(value, datetime):
        raise TypeError
    if isinstance(value, date):
        return value
    if isinstance(value, str):
        return date.fromisoformat(value.strip())
    raise TypeError


def _timestamp(value: Any) -> datetime:
    if isinstance(value, str):
        value = datetime.fromisoformat(value.strip())
    if not isinstance(value, datetime):
        raise TypeError
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


_CONVERT: dict[Kind, Callable[[Any], Any]] = {
    Kind.BOOLEAN: _boolean,
    **dict.fromkeys(INTEGRAL, _integer),
    Kind.FLOAT: _float32,
    Kind.DOUBLE: _float,
    Kind.STRING: _string,
    Kind.DATE: _date,
    Kind.TIMESTAMP: _timestamp,
}


def _from_table(schema: Schema, table: pa.Table, *, by_value: bool = False) -> pa.RecordBatch:
    """A table in the stream's types; with `by_value`, columns that cannot be cast are converted value by value."""
    by_name: dict[str, pa.ChunkedArray] = {}
    for name, values in zip(table.column_names, table.columns, strict=True):
        column = schema.find(name)
        if column is None:
            raise InvalidRows(f"unknown column '{name}'", hint=nearest(name, schema.names))
        if column.name in by_name:
            raise InvalidRows(f"duplicate column '{column.name}'")
        by_name[column.name] = values
    arrays = []
    for column in schema.columns:
        values = by_name.get(column.name)
        if values is None:
            arrays.append(pa.nulls(table.num_rows, column.type.arrow))
        else:
            arrays.append(check_values(column, _cast(column, values, by_value).combine_chunks()))
    batches = pa.Table.from_arrays(arrays, schema=schema.arrow).combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=schema.arrow)


def _cast(column: Column, values: pa.ChunkedArray, by_value: bool) -> pa.ChunkedArray:
    try:
        return cast_column(column, values)
    except InvalidRows:
        if not by_value:
            raise
        return pa.chunked_array([_array(column, values.to_pylist())])
