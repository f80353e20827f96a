"""Statistics of two values in plain Python: exact sums, rounded once at the end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from tureen.query import Aggregate

PAIRS = frozenset(
    "corr covar_pop covar_samp regr_slope regr_intercept regr_r2 regr_sxx regr_sxy regr_syy".split()  # noqa: SIM905
)
_NAN = Fraction(0), False
"""A sum that is not a number."""

Sum = tuple[Fraction, bool]
"""An exact sum, and whether it is a number."""


def pair_aggregate(call: Aggregate, rows: Sequence[tuple[Any, ...]]) -> float | None:
    """A statistic of the rows with both values not NULL; the dependent value is the first argument, as in Spark."""
    pairs = [(x, y) for y, x in rows if x is not None and y is not None]
    if not pairs:
        return None
    sxx, sxy, syy = (_products(pairs, left, right) for left, right in ((0, 0), (0, 1), (1, 1)))
    flat_x, flat_y = sxx == (Fraction(0), True), syy == (Fraction(0), True)
    match call.function:
        case "regr_sxx" | "regr_sxy" | "regr_syy":
            return _double(*{"regr_sxx": sxx, "regr_sxy": sxy, "regr_syy": syy}[call.function])
        case "covar_pop":
            return _double(sxy[0] / len(pairs), sxy[1])
        case "covar_samp":
            return None if len(pairs) == 1 else _double(sxy[0] / (len(pairs) - 1), sxy[1])
        case "corr" if len(pairs) == 1 or (sxy[1] and (flat_x or flat_y)):
            return None
        case "corr":
            return math.nan if not sxy[1] else float(sxy[0]) / math.sqrt(sxx[0]) / math.sqrt(syy[0])
        case _ if flat_x:
            return None
        case "regr_r2" if flat_y:
            return 1.0
        case "regr_r2":
            return math.nan if not sxy[1] else float(sxy[0] * sxy[0] / sxx[0] / syy[0])
    if not sxy[1]:
        return math.nan
    slope = sxy[0] / sxx[0]
    if call.function == "regr_slope":
        return float(slope)
    return float(_mean(pairs, 1) - slope * _mean(pairs, 0))


def _products(pairs: list[tuple[float, float]], left: int, right: int) -> Sum:
    """The sum of the products of the distances from the means."""
    if not all(math.isfinite(pair[column]) for pair in pairs for column in (left, right)):
        return _NAN
    left_mean, right_mean = _mean(pairs, left), _mean(pairs, right)
    return sum(
        ((Fraction(pair[left]) - left_mean) * (Fraction(pair[right]) - right_mean) for pair in pairs), Fraction(0)
    ), True


def _mean(pairs: list[tuple[float, float]], column: int) -> Fraction:
    return sum((Fraction(pair[column]) for pair in pairs), Fraction(0)) / len(pairs)


def _double(exact: Fraction, is_number: bool) -> float:
    return float(exact) if is_number else math.nan
