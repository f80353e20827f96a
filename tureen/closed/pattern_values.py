"""Patterns as punctuations: their codes as the values that users see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa

from tureen.closed.closed_set import MAX_COMBINATIONS
from tureen.closed.key_codes import WITHOUT_SIGN
from tureen.closed.pattern import Code, CodeRange, Pattern, ValueList, code_decimal, code_float, float_code, moment
from tureen.closed.pattern_block import PatternBlock
from tureen.punctuation import Punctuation, Range
from tureen.schema import FRACTIONAL, INTEGRAL, Kind, Type

_EPOCH_DAY = date(1970, 1, 1)


def punctuation_of(pattern: Pattern, types: Mapping[str, Type]) -> Punctuation:
    """The punctuation of a pattern over columns of these types.

    >>> pattern = Pattern((("item", ValueList((3,))), ("day", CodeRange(high=0))))
    >>> punctuation_of(pattern, {"item": Type(Kind.INT), "day": Type(Kind.DATE)}).where["day"].high
    datetime.date(1970, 1, 1)
    """
    return Punctuation.of({name: _part_values(part, types[name]) for name, part in pattern.columns})


def _part_values(part: ValueList | CodeRange, column_type: Type) -> Any:
    if isinstance(part, CodeRange):
        low, high = (None if end is None else value_of(column_type, end) for end in (part.low, part.high))
        return Range(low, high, part.low_open, part.high_open)
    values = [value_of(column_type, code) for code in part.codes]
    return values[0] if len(values) == 1 else values


def value_arrays(pattern: Pattern, types: Mapping[str, Type]) -> dict[str, pa.Array] | None:
    """All combinations of values of a pattern, a column each; None if it has ranges, or too many combinations."""
    lists = [part.codes for _, part in pattern.columns if isinstance(part, ValueList)]
    if len(lists) < len(pattern.columns) or prod(map(len, lists)) > MAX_COMBINATIONS:
        return None
    columns = zip(*product(*lists), strict=True)
    return {name: array_of_codes(types[name], codes) for (name, _), codes in zip(pattern.columns, columns, strict=True)}


def array_of_codes(column_type: Type, codes: Sequence[Code]) -> pa.Array:
    """The values of codes, in the widest type of their kind: codes may be those of a wider column that equals this one.

    >>> array_of_codes(Type(Kind.DATE), [0, 31]).to_pylist(), array_of_codes(Type(Kind.INT), [1 << 40]).to_pylist()
    ([datetime.date(1970, 1, 1), datetime.date(1970, 2, 1)], [1099511627776])
    """
    if column_type.kind is Kind.DECIMAL:
        return pa.array([value_of(column_type, code) for code in codes], pa.decimal128(38, column_type.scale))
    if column_type.kind is Kind.STRING:
        return pa.array(codes, column_type.arrow)
    numbers = np.array(codes, np.int64)
    if column_type.kind in FRACTIONAL:
        doubles = np.where(numbers >= 0, numbers, numbers ^ WITHOUT_SIGN).view(np.float64)
        return pa.array(np.where(np.isnan(doubles), np.nan, doubles), from_pandas=False)
    if column_type.kind in INTEGRAL:
        return pa.array(numbers)
    if column_type.kind is Kind.DATE:
        numbers = numbers.astype(np.int32)
    return pa.array(numbers).cast(column_type.arrow)


def fitting(column_type: Type, part: ValueList | CodeRange) -> ValueList | CodeRange | None:
    """The part of a pattern without values that a column cannot have; None if nothing is left.

    >>> fitting(Type(Kind.INT), ValueList((7, 1 << 40))), fitting(Type(Kind.FLOAT), ValueList((float_code(0.1),)))
    (ValueList(codes=(7,)), None)
    """
    if isinstance(part, CodeRange):
        return part
    codes = tuple(code for code in part.codes if isinstance(code, str) or _fits(column_type, code))
    return ValueList(codes) if codes else None


def _fits(column_type: Type, code: int) -> bool:
    if column_type.kind in INTEGRAL:
        return code >> (int(column_type.arrow.bit_width) - 1) in (-1, 0)
    if column_type.kind is Kind.DECIMAL:
        return len(str(abs(code))) <= column_type.precision
    if column_type.kind is Kind.FLOAT:
        with np.errstate(over="ignore"):
            return float_code(float(np.float32(code_float(code)))) == code
    return True


def values_by_columns(
    block: PatternBlock, types: Mapping[str, Type]
) -> tuple[list[dict[str, pa.Array]], list[Pattern]]:
    """The values that punctuations close, those over the same columns together; and the patterns with ranges."""
    several: dict[tuple[str, ...], list[dict[str, pa.Array]]] = {}
    others: list[Pattern] = []
    for _, pattern in block.others:
        arrays = value_arrays(pattern, types)
        if arrays is None:
            others.append(pattern)
        else:
            several.setdefault(tuple(arrays), []).append(arrays)
    values = [{name: array_of_codes(types[name], each.codes)} for name, each in block.values.items()]
    values += [
        {name: pa.concat_arrays([each[name] for each in parts]) for name in names} for names, parts in several.items()
    ]
    return values, others


def value_of(column_type: Type, code: Code) -> Any:
    """The value of a code, as it is in the rows of an answer."""
    if isinstance(code, str):
        return code
    match column_type.kind:
        case Kind.BOOLEAN:
            return bool(code)
        case Kind.DECIMAL:
            return code_decimal(code, column_type.scale)
        case Kind.DATE:
            return _EPOCH_DAY + timedelta(days=code)
        case Kind.TIMESTAMP:
            return moment(code)
        case kind if kind in FRACTIONAL:
            return code_float(code)
    return code
