"""Rows as people have them, made into one Arrow batch of a stream's columns, or refused with the reason."""

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

from tureen.errors import InvalidRows, nearest
from tureen.schema import INTEGRAL, Column, Kind, Schema, Type
from tureen.stems.casts import LARGEST_DECIMAL, LARGEST_FLOAT, cast_column, checked, exactly

_RANGE = {Kind.TINYINT: 1 << 7, Kind.SMALLINT: 1 << 15, Kind.INT: 1 << 31, Kind.BIGINT: 1 << 63}

# Python types that Arrow takes as they are, by kind; anything else goes value by value.
_PLAIN: dict[Kind, frozenset[type]] = {
    Kind.BOOLEAN: frozenset({bool, type(None)}),
    Kind.STRING: frozenset({str, type(None)}),
    Kind.DOUBLE: frozenset({float, type(None)}),
}


def to_batch(schema: Schema, rows: Any) -> pa.RecordBatch:
    """One record batch with the stream's columns, in its order and types.

    `rows` may be a list of dicts, an Arrow table or batch, or a pandas or polars DataFrame.
    Names match in any case, a missing name is NULL, an unknown one is an error.
    """
    if isinstance(rows, pa.RecordBatch):
        table = pa.Table.from_batches([rows])
    elif isinstance(rows, pa.Table):
        table = rows
    elif hasattr(rows, "to_arrow") or hasattr(rows, "iloc"):
        # Values of an object column are Python's: they are taken as those of dicts are.
        return _checked_time(schema, _from_table(schema, from_frame(rows), by_value=True))
    elif isinstance(rows, Mapping | str | bytes) or not isinstance(rows, Iterable):
        raise InvalidRows(
            f"rows came as {type(rows).__name__}",
            hint="give a list of dicts, an Arrow table, or a DataFrame; one row is a list with one dict",
        )
    else:
        return _checked_time(schema, _from_dicts(schema, list(rows)))
    return _checked_time(schema, _from_table(schema, table))


@cache
def _zeros() -> dict[int, pa.Scalar]:
    """A value of each type to stand in for NULL; any will do, as long as it is always the same.

    Made when first needed: Arrow looks for pandas when it makes the first scalar, which takes long.
    """
    columns = Schema.parse(
        "a BOOLEAN, b TINYINT, c SMALLINT, d INT, e BIGINT, f FLOAT, g DOUBLE, h STRING, i DATE, j TIMESTAMP"
    ).columns
    values = (False, 0, 0, 0, 0, 0.0, 0.0, "", date(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC))
    return {
        column.type.arrow.id: pa.scalar(value, column.type.arrow) for column, value in zip(columns, values, strict=True)
    }


def content_digest(batch: pa.RecordBatch) -> bytes:
    """A fingerprint of the rows, whatever they came as: what lies under a NULL does not count."""
    arrays: list[pa.Array] = []
    for column in batch.columns:
        valid = column.is_valid()
        decimal = pa.types.is_decimal(column.type)
        zero = pa.scalar(Decimal(0), column.type) if decimal else _zeros()[column.type.id]
        arrays += [valid, pc.if_else(valid, column, zero)]
    whole = pa.record_batch(arrays, names=[str(number) for number in range(len(arrays))])
    return hashlib.blake2b(whole.serialize(), digest_size=16).digest()


def from_frame(frame: Any) -> pa.Table:
    """The Arrow table of a pandas or polars DataFrame."""
    try:
        table = frame.to_arrow() if hasattr(frame, "to_arrow") else pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, ValueError, TypeError, AttributeError) as error:
        raise InvalidRows(f"the {type(frame).__name__} cannot be read as rows", detail=str(error)) from error
    if not isinstance(table, pa.Table):
        raise InvalidRows(f"rows came as {type(frame).__name__}", hint="give a DataFrame, not one column of it")
    return table


def _checked_time(schema: Schema, batch: pa.RecordBatch) -> pa.RecordBatch:
    if schema.time is not None and batch.column(schema.time).null_count:
        nulls = pc.index(batch.column(schema.time).is_null(), True).as_py()
        raise InvalidRows(f"row {nulls}: the time column '{schema.time}' is NULL", hint="every tuple has a time")
    return batch


def _from_dicts(schema: Schema, rows: Sequence[Any]) -> pa.RecordBatch:
    keys: dict[str, str] = {}
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InvalidRows(f"row {number} is a {type(row).__name__}, not a dict")
        for key in row.keys() - keys.keys():
            column = schema.find(key) if isinstance(key, str) else None
            if column is None:
                raise InvalidRows(f"row {number}: unknown column '{key}'", hint=nearest(str(key), schema.names))
            keys[key] = column.name
    spelt: dict[str, list[str]] = {}
    for key, name in keys.items():
        spelt.setdefault(name, []).append(key)
    arrays = []
    for column in schema.columns:
        names = spelt.get(column.name, [])
        if len(names) > 1:
            values = [_one_of(column, number, row, names) for number, row in enumerate(rows)]
        else:
            key = names[0] if names else column.name
            values = [row.get(key) for row in rows]
        arrays.append(_array(column, values))
    return pa.record_batch(arrays, schema=schema.arrow)


def _one_of(column: Column, number: int, row: Mapping[str, Any], names: Sequence[str]) -> Any:
    there = [key for key in names if key in row]
    if len(there) > 1:
        raise InvalidRows(f"row {number}: column '{column.name}' is there twice, as {' and '.join(there)}")
    return row[there[0]] if there else None


def _array(column: Column, values: list[Any]) -> pa.Array:
    kind = column.type.kind
    plain = _PLAIN.get(kind)
    if plain is None or not set(map(type, values)) <= plain:
        convert = _decimal(column.type) if kind is Kind.DECIMAL else _CONVERT[kind]
        values = [
            None if value is None else _converted(column, number, value, convert) for number, value in enumerate(values)
        ]
    try:
        return pa.array(values, type=column.type.arrow)
    except (pa.ArrowException, OverflowError, ValueError, TypeError) as error:
        for number, value in enumerate(values):
            try:
                pa.array([value], type=column.type.arrow)
            except (pa.ArrowException, OverflowError, ValueError, TypeError):
                raise _unfit(column, number, value) from None
        raise InvalidRows(f"column '{column.name}' cannot be read", detail=str(error)) from error


def _converted(column: Column, number: int, value: Any, convert: Callable[[Any], Any]) -> Any:
    try:
        # numpy scalars know their Python value.
        value = value.item() if hasattr(value, "item") and not isinstance(value, str) else value
        result = convert(value)
    except (ValueError, TypeError, ArithmeticError):
        raise _unfit(column, number, value) from None
    limit = _RANGE.get(column.type.kind)
    if limit is not None and not -limit <= result < limit:
        raise _unfit(column, number, value)
    return result


def _unfit(column: Column, number: int, value: Any) -> InvalidRows:
    try:
        shown = repr(value)[:60]
    except ValueError:
        # Python writes no whole number of thousands of digits.
        shown = "a number that long"
    return InvalidRows(
        f"row {number}: column '{column.name}' is {column.type.sql}, not {shown}",
        detail="none of these rows were taken",
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


_WHOLE = exactly(LARGEST_DECIMAL, 0)


def _float(value: Any) -> float:
    if isinstance(value, float | int | Decimal) and not isinstance(value, bool):
        number = float(value)
        if math.isinf(number) and value != number:
            raise OverflowError
        return number
    # JSON has no other way to say these.
    if value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    raise TypeError


def _float32(value: Any) -> float:
    number = _float(value)
    if math.isfinite(number) and abs(number) > LARGEST_FLOAT:
        raise OverflowError
    return number


def _decimal(target: Type) -> Callable[[Any], Decimal]:
    exact = exactly(target.precision, target.scale)
    return lambda value: exact(_number(value))


def _number(value: Any) -> Decimal:
    if isinstance(value, Decimal | int | str) and not isinstance(value, bool):
        return Decimal(value)
    if isinstance(value, float):
        # The shortest text that means this float is what a person wrote.
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
    """A table in the stream's types; what cannot be cast as a column goes value by value, if that is allowed."""
    given: dict[str, pa.ChunkedArray] = {}
    for name, values in zip(table.column_names, table.columns, strict=True):
        column = schema.find(name)
        if column is None:
            raise InvalidRows(f"unknown column '{name}'", hint=nearest(name, schema.names))
        if column.name in given:
            raise InvalidRows(f"column '{column.name}' is there twice")
        given[column.name] = values
    arrays = []
    for column in schema.columns:
        values = given.get(column.name)
        if values is None:
            arrays.append(pa.nulls(table.num_rows, column.type.arrow))
        else:
            arrays.append(checked(column, _cast(column, values, by_value).combine_chunks()))
    batch = pa.Table.from_arrays(arrays, schema=schema.arrow).combine_chunks().to_batches()
    return batch[0] if batch else pa.RecordBatch.from_pylist([], schema=schema.arrow)


def _cast(column: Column, values: pa.ChunkedArray, by_value: bool) -> pa.ChunkedArray:
    try:
        return cast_column(column, values)
    except InvalidRows:
        if not by_value:
            raise
        return pa.chunked_array([_array(column, values.to_pylist())])
