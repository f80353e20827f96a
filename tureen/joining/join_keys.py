"""Join keys: two columns as integers that compare as Spark compares the values.

See `tureen.keys` for the keys of one column. The keys of strings and wide decimals are ranks among the values of both
columns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tureen.errors import QueryFailed
from tureen.join import JoinCompare
from tureen.joining.join_input import Numbers
from tureen.keys import float_keys
from tureen.stems.key_index import decimal_scale, decimal_words, double_values, integer_keys, valid_flags

_KEY_DIGITS = 18


class KeyColumn(NamedTuple):
    """The keys of a column, and which rows are not NULL; the key of a NULL is undefined."""

    values: Numbers
    valid: npt.NDArray[np.bool_]


def keys_of(factor: JoinCompare, left: pa.Array, right: pa.Array) -> tuple[KeyColumn, KeyColumn]:
    """The keys of both sides of a comparison; the offset is included in those of its right side."""
    valid = valid_flags(left), valid_flags(right)
    match factor.domain:
        case "string":
            values = _ranks(left, right)
        case "int":
            values = integer_keys(left), integer_keys(right)
            if factor.offset:
                # Where the left side is NULL, Spark never computes the right one.
                values = values[0], _moved(factor, values[1], valid[1] & valid[0].any())
        case "double":
            values = float_keys(double_values(left)), float_keys(double_values(right) + float(factor.offset))
        case _:
            values = _decimals(left, right)
    return KeyColumn(values[0], valid[0]), KeyColumn(values[1], valid[1])


def _moved(factor: JoinCompare, values: Numbers, valid: npt.NDArray[np.bool_]) -> Numbers:
    """The right side plus its offset."""
    offset = int(factor.offset)
    greatest = (1 << factor.limit - 1) - 1
    beyond = ((values > greatest - offset) | (values < -greatest - 1 - offset)) & valid
    if beyond.any():
        raise QueryFailed(
            f"{factor.right.column} {'+' if offset > 0 else '-'} {abs(offset)} does not fit in "
            f"{factor.limit} bits for some tuple"
        )
    wrapped = np.array((offset + (1 << 63)) % (1 << 64) - (1 << 63), np.int64)
    return values + wrapped


def _decimals(left: pa.Array, right: pa.Array) -> tuple[Numbers, Numbers]:
    sides = (left, right)
    scale = max(decimal_scale(side.type) for side in sides)
    shifts = [scale - decimal_scale(side.type) for side in sides]
    digits = max(_digits(side.type) + shift for side, shift in zip(sides, shifts, strict=True))
    unscaled = [_unscaled(side) for side in sides]
    if digits <= _KEY_DIGITS:
        first, second = (values.astype(np.int64) * 10**shift for values, shift in zip(unscaled, shifts, strict=True))
        return first, second
    first, second = (values.astype(object) * 10**shift for values, shift in zip(unscaled, shifts, strict=True))
    _, ranks = np.unique(np.concatenate([first, second]), return_inverse=True)
    return ranks[: len(first)], ranks[len(first) :]


def _digits(kind: pa.DataType) -> int:
    return int(kind.precision) if pa.types.is_decimal(kind) else len(str(1 << kind.bit_width - 1))


def _unscaled(column: pa.Array) -> npt.NDArray[Any]:
    """The unscaled values of decimals, or whole numbers as they are."""
    kind = column.type
    if not pa.types.is_decimal(kind):
        return integer_keys(column)
    words = decimal_words(column)
    if kind.precision <= _KEY_DIGITS:
        return words[:, 0].copy()
    values: npt.NDArray[Any] = words[:, 1].astype(object) * (1 << 64) + words[:, 0].view(np.uint64).astype(object)
    return values


def _ranks(left: pa.Array, right: pa.Array) -> tuple[Numbers, Numbers]:
    """The rank of each string among the strings of both columns, by bytes."""
    encoded = pa.concat_arrays([left.cast(pa.string()), right.cast(pa.string())]).dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    rank_of_code = np.empty(len(order) + 1, np.int64)
    rank_of_code[order] = np.arange(len(order))
    codes = encoded.indices.fill_null(len(order)).to_numpy(zero_copy_only=False)
    ranks = rank_of_code[codes]
    return ranks[: len(left)], ranks[len(left) :]
