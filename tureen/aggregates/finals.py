"""From states to values: the final step of each aggregate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.aggregate_functions import FinalStep
from tureen.errors import QueryFailed
from tureen.keys import floats_of_keys
from tureen.query import Aggregate
from tureen.schema import FRACTIONAL, Kind, Type

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Empty = npt.NDArray[np.bool_]
"""The groups without values."""

_WORD = 1 << 64

EXACT = Context(prec=100)
"""A context in which DECIMALs of 38 digits are scaled without rounding."""

_STORED = {Kind.TINYINT: np.int8, Kind.SMALLINT: np.int16, Kind.INT: np.int32, Kind.DATE: np.int32}
"""The kinds whose keys are stored in fewer than 64 bits."""

_NONE: Empty = np.zeros(1, np.bool_)


@dataclass(frozen=True, slots=True)
class Recipe:
    """How an aggregate is computed from a group's state."""

    aggregate: Aggregate
    final: Final
    count: int
    """The slot of its count."""
    slot: int = 0
    """The first of its other slots."""


Final = Callable[[Recipe, Ints, Floats, Ints, Empty], pa.Array]
"""Computes values from states: all integers and doubles, the counts of values, and where that count is 0."""


def column_of(recipe: Recipe, ints: Ints, floats: Floats) -> pa.Array:
    """The values of an aggregate for all groups, one row of states each."""
    counts = ints[:, recipe.count]
    # Mostly all groups have values, and the handling of empty ones is skipped.
    empty = _NONE if counts.all() else counts == 0
    return recipe.final(recipe, ints, floats, counts, empty)


def _present_counts(recipe: Recipe, _ints: Ints, _floats: Floats, counts: Ints, _empty: Empty) -> pa.Array:
    return _column(counts, _NONE, recipe.aggregate.type)


def _values(recipe: Recipe, ints: Ints, _floats: Floats, _counts: Ints, empty: Empty) -> pa.Array:
    return values_of(ints[:, recipe.slot], empty, recipe.aggregate.type)


def _double_sums(recipe: Recipe, _ints: Ints, floats: Floats, _counts: Ints, empty: Empty) -> pa.Array:
    return _column(_sums(recipe, floats), empty, recipe.aggregate.type)


def _double_averages(recipe: Recipe, _ints: Ints, floats: Floats, counts: Ints, empty: Empty) -> pa.Array:
    divisors = counts if empty is _NONE else np.where(empty, 1, counts)
    return _column(_sums(recipe, floats) / divisors, empty, recipe.aggregate.type)


def _sums(recipe: Recipe, floats: Floats) -> Floats:
    """Sums of doubles, corrected by their rounding errors if finite."""
    total, lost = floats[:, recipe.slot], floats[:, recipe.slot + 1]
    if np.isfinite(total).all():
        return total + lost
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(total), total + lost, total)


def _exact_sums(recipe: Recipe, ints: Ints, _floats: Floats, _counts: Ints, empty: Empty) -> pa.Array:
    words = np.ascontiguousarray(ints[:, recipe.slot : recipe.slot + 2])
    if recipe.aggregate.type.kind is Kind.DECIMAL:
        return _decimals(words, empty, recipe.aggregate.type)
    if ((words[:, 0] >> 63) != words[:, 1]).any():
        raise QueryFailed("an aggregate raised", detail="the sum does not fit in BIGINT")
    return _column(words[:, 0], empty, recipe.aggregate.type)


def _exact_averages(recipe: Recipe, ints: Ints, _floats: Floats, counts: Ints, _empty: Empty) -> pa.Array:
    totals = [low % _WORD + (high << 64) for low, high in ints[:, recipe.slot : recipe.slot + 2].tolist()]
    return averages(totals, counts.tolist(), recipe.aggregate.arguments[0].type, recipe.aggregate.type)


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


def values_of(keys: Ints, empty: Empty, target: Type) -> pa.Array:
    """The values of integer keys; the inverse of `keys_of`."""
    if target.kind in FRACTIONAL:
        doubles = floats_of_keys(keys)
        return _column(doubles.astype(np.float32) if target.kind is Kind.FLOAT else doubles, empty, target)
    if target.kind is Kind.DECIMAL:
        return _decimals(np.stack([keys, keys >> 63], axis=1), empty, target)
    if target.kind is Kind.BOOLEAN:
        return pa.array(keys == 1, mask=None if empty is _NONE else empty)
    return _column(keys.astype(_STORED.get(target.kind, np.int64), copy=False), empty, target)


def _decimals(words: npt.NDArray[np.int64], empty: Empty, target: Type) -> pa.Array:
    """DECIMALs from their lower and higher words."""
    return _column(words, empty, target)


def _column(values: npt.NDArray[Any], empty: Empty, target: Type) -> pa.Array:
    """A column from the stored form of its values; built from buffers, which is fast for tiny answers."""
    validity = None if empty is _NONE or not empty.any() else pa.array(~empty).buffers()[1]
    return pa.Array.from_buffers(target.arrow, len(values), [validity, pa.py_buffer(np.ascontiguousarray(values))])


def _variances(lost_degrees: int) -> Final:
    """Variances of a sample, which loses a degree of freedom, or of a population."""

    def variances(recipe: Recipe, _ints: Ints, floats: Floats, _counts: Ints, _empty: Empty) -> pa.Array:
        values, empty = _spread(recipe, floats, lost_degrees)
        return _column(values, empty, recipe.aggregate.type)

    return variances


def _deviations(lost_degrees: int) -> Final:
    """Standard deviations: the roots of variances."""

    def deviations(recipe: Recipe, _ints: Ints, floats: Floats, _counts: Ints, _empty: Empty) -> pa.Array:
        values, empty = _spread(recipe, floats, lost_degrees)
        with np.errstate(invalid="ignore"):
            return _column(np.sqrt(values), empty, recipe.aggregate.type)

    return deviations


def _spread(recipe: Recipe, floats: Floats, lost_degrees: int) -> tuple[Floats, Empty]:
    rows, mean, squares = (floats[:, recipe.slot + offset] for offset in range(3))
    empty = rows <= lost_degrees
    with np.errstate(invalid="ignore"):
        # For a single value no distance was computed yet, although it may be NaN.
        return np.where(np.isfinite(mean), squares / np.where(empty, 1.0, rows - lost_degrees), np.nan), empty


FINALS: dict[FinalStep, Final] = {
    FinalStep.COUNT: _present_counts,
    FinalStep.VALUE: _values,
    FinalStep.EXACT_SUM: _exact_sums,
    FinalStep.EXACT_AVERAGE: _exact_averages,
    FinalStep.DOUBLE_SUM: _double_sums,
    FinalStep.DOUBLE_AVERAGE: _double_averages,
    FinalStep.STDDEV_SAMP: _deviations(1),
    FinalStep.STDDEV_POP: _deviations(0),
    FinalStep.VAR_SAMP: _variances(1),
    FinalStep.VAR_POP: _variances(0),
}
