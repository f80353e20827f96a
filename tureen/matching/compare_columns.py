"""Comparing two columns of one stream: `left op right + offset`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tureen.errors import QueryFailed
from tureen.keys import float_keys
from tureen.stems.index import stored_values, truths_of

if TYPE_CHECKING:
    from tureen.predicate import Compare
    from tureen.stems.index import Block

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ARROW_OPERATORS = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_EXACT_DIGITS = 15


def compare(predicate: Compare, block: Block) -> npt.NDArray[np.bool_]:
    """Whether the comparison is true for each row; undefined for rows with a NULL on either side."""
    if predicate.domain == "string":
        left, right = block.column(predicate.left), block.column(predicate.right)
        return truths_of(_ARROW_OPERATORS[predicate.op](left, right))
    sides = {"int": _integers, "double": _doubles, "decimal": _decimals}[predicate.domain]
    answer: npt.NDArray[Any] = _OPERATORS[predicate.op](*sides(predicate, block))
    return answer.astype(np.bool_, copy=False)


def _integers(predicate: Compare, block: Block) -> tuple[Any, Any]:
    left, right = block.keys(predicate.left), block.keys(predicate.right)
    offset = int(predicate.offset)
    if offset == 0:
        return left, right
    greatest = (1 << predicate.limit - 1) - 1
    beyond = (right > greatest - offset) | (right < -greatest - 1 - offset)
    # Where the left side is NULL, Spark never computes the right one.
    for name in (predicate.left, predicate.right):
        nulls = block.nulls(name)
        beyond = beyond & ~nulls if nulls.size else beyond
    if beyond.any():
        raise QueryFailed(
            f"{predicate.right} {'+' if offset > 0 else '-'} {abs(offset)} does not fit in "
            f"{predicate.limit} bits for some tuple"
        )
    # The offset itself may exceed 64 bits, as long as every sum fits.
    wrapped = np.array((offset + (1 << 63)) % (1 << 64) - (1 << 63), np.int64)
    return left, right + wrapped


def _doubles(predicate: Compare, block: Block) -> tuple[Any, Any]:
    right = _as_double(block, predicate.right)
    if predicate.offset:
        with np.errstate(all="ignore"):
            right = right + float(predicate.offset)
    return float_keys(_as_double(block, predicate.left)), float_keys(right)


def _as_double(block: Block, name: str) -> npt.NDArray[np.float64]:
    column = block.column(name)
    if pa.types.is_floating(column.type):
        return stored_values(column).astype(np.float64)
    if not pa.types.is_decimal(column.type):
        return block.keys(name).astype(np.float64)
    scale = column.type.scale
    if column.type.precision <= _EXACT_DIGITS:
        # Both numbers are exact doubles, so the quotient is the double nearest to the decimal.
        quotients: npt.NDArray[np.float64] = block.keys(name).astype(np.float64) / 10.0**scale
        return quotients
    return np.array([float(value.as_py() or 0) for value in column], np.float64)


def _decimals(predicate: Compare, block: Block) -> tuple[Any, Any]:
    names = (predicate.left, predicate.right)
    scales = [_scale(block.column(name).type) for name in names]
    scale = max(scales)
    left, right = (
        _unscaled(block, name) * 10 ** (scale - column_scale) for name, column_scale in zip(names, scales, strict=True)
    )
    offset = Decimal(str(predicate.offset)).scaleb(scale)
    if offset != offset.to_integral_value():
        shift = -int(offset.as_tuple().exponent)
        left, right, offset = left * 10**shift, right * 10**shift, offset.scaleb(shift)
    return left, right + int(offset)


def _scale(kind: pa.DataType) -> int:
    return int(kind.scale) if pa.types.is_decimal(kind) else 0


def _unscaled(block: Block, name: str) -> npt.NDArray[Any]:
    """The unscaled values as Python integers, which do not overflow."""
    column = block.column(name)
    if not pa.types.is_decimal(column.type) or column.type.precision <= 18:
        return block.keys(name).astype(object)
    words = stored_values(column)
    values: npt.NDArray[Any] = words[:, 1].astype(object) * (1 << 64) + words[:, 0].view(np.uint64).astype(object)
    return values
