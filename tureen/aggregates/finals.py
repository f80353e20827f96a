"""From states to values: the final step of each aggregate."""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.aggregates.plan import Recipe
from tureen.errors import QueryFailed
from tureen.keys import floats_of_keys
from tureen.schema import FRACTIONAL, Kind, Type

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_WORD = 1 << 64

EXACT = Context(prec=100)
"""A context in which DECIMALs of 38 digits are scaled without rounding."""

_STORED = {Kind.TINYINT: np.int8, Kind.SMALLINT: np.int16, Kind.INT: np.int32, Kind.DATE: np.int32}
"""The kinds whose keys are stored in fewer than 64 bits."""

_NONE: npt.NDArray[np.bool_] = np.zeros(1, np.bool_)


def column_of(recipe: Recipe, ints: Ints, floats: Floats) -> pa.Array:
    """The values of an aggregate for all groups, one row of states each."""
    aggregate, counts = recipe.aggregate, ints[:, recipe.count]
    # Mostly all groups have values, and the handling of empty ones is skipped.
    empty = _NONE if counts.all() else counts == 0
    argument = aggregate.arguments[0].type if aggregate.arguments else aggregate.type
    match aggregate.function:
        case "count":
            return _column(counts, _NONE, aggregate.type)
        case "sum" if argument.kind in FRACTIONAL:
            return _column(_sums(recipe, floats), empty, aggregate.type)
        case "avg" if argument.kind in FRACTIONAL:
            return _column(
                _sums(recipe, floats) / (counts if empty is _NONE else np.where(empty, 1, counts)),
                empty,
                aggregate.type,
            )
        case "sum":
            return _whole_sums(recipe, ints, empty)
        case "avg":
            totals = [low % _WORD + (high << 64) for low, high in ints[:, recipe.slot : recipe.slot + 2].tolist()]
            return averages(totals, counts.tolist(), argument, aggregate.type)
        case "min" | "max" | "bit_and" | "bit_or" | "bit_xor":
            return values_of(ints[:, recipe.slot], empty, aggregate.type)
    return _deviations(recipe, floats)


def _sums(recipe: Recipe, floats: Floats) -> Floats:
    """Sums of doubles, corrected by their rounding errors if finite."""
    total, lost = floats[:, recipe.slot], floats[:, recipe.slot + 1]
    if np.isfinite(total).all():
        return total + lost
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(total), total + lost, total)


def _whole_sums(recipe: Recipe, ints: Ints, empty: npt.NDArray[np.bool_]) -> pa.Array:
    words = np.ascontiguousarray(ints[:, recipe.slot : recipe.slot + 2])
    if recipe.aggregate.type.kind is Kind.DECIMAL:
        return _decimals(words, empty, recipe.aggregate.type)
    if ((words[:, 0] >> 63) != words[:, 1]).any():
        raise QueryFailed("an aggregate raised", detail="the sum does not fit in BIGINT")
    return _column(words[:, 0], empty, recipe.aggregate.type)


def averages(totals: list[int], counts: list[int], argument: Type, result: Type) -> pa.Array:
    """Averages of DECIMALs, given their unscaled sums; halves are rounded away from zero."""
    shift = 10 ** (result.scale - argument.scale)
    results: list[Decimal | None] = []
    for total, count in zip(totals, counts, strict=True):
        if not count:
            results.append(None)
            continue
        quotient, remainder = divmod(abs(total) * shift, count)
        digits = quotient + (2 * remainder >= count)
        if digits >= 10**result.precision:
            raise QueryFailed("an aggregate raised", detail=f"the average does not fit in {result.sql}")
        results.append(Decimal(digits if total >= 0 else -digits).scaleb(-result.scale, EXACT))
    return pa.array(results, result.arrow)


def values_of(keys: Ints, empty: npt.NDArray[np.bool_], target: Type) -> pa.Array:
    """The values of integer keys; the inverse of `keys_of`."""
    if target.kind in FRACTIONAL:
        doubles = floats_of_keys(keys)
        return _column(doubles.astype(np.float32) if target.kind is Kind.FLOAT else doubles, empty, target)
    if target.kind is Kind.DECIMAL:
        return _decimals(np.stack([keys, keys >> 63], axis=1), empty, target)
    if target.kind is Kind.BOOLEAN:
        return pa.array(keys == 1, mask=None if empty is _NONE else empty)
    return _column(keys.astype(_STORED.get(target.kind, np.int64), copy=False), empty, target)


def _decimals(words: npt.NDArray[np.int64], empty: npt.NDArray[np.bool_], target: Type) -> pa.Array:
    """DECIMALs from their lower and higher words."""
    return _column(words, empty, target)


def _column(values: npt.NDArray[Any], empty: npt.NDArray[np.bool_], target: Type) -> pa.Array:
    """A column from the stored form of its values; built from buffers, which is fast for tiny answers."""
    validity = None if empty is _NONE or not empty.any() else pa.array(~empty).buffers()[1]
    return pa.Array.from_buffers(target.arrow, len(values), [validity, pa.py_buffer(np.ascontiguousarray(values))])


def _deviations(recipe: Recipe, floats: Floats) -> pa.Array:
    rows, mean, squares = (floats[:, recipe.slot + offset] for offset in range(3))
    function = recipe.aggregate.function
    lost_degrees = 1 if function.endswith("_samp") else 0
    empty = rows <= lost_degrees
    with np.errstate(invalid="ignore"):
        # For a single value no distance was computed yet, although it may be NaN.
        variances = np.where(np.isfinite(mean), squares / np.where(empty, 1.0, rows - lost_degrees), np.nan)
        return _column(np.sqrt(variances) if function.startswith("stddev") else variances, empty, recipe.aggregate.type)
