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
"""A sum that is no number."""

Sum = tuple[Fraction, bool]
"""An exact sum, and whether it is a number."""


def pair_aggregate(wanted: Aggregate, rows: Sequence[tuple[Any, ...]]) -> float | None:
    """A statistic of the rows in which both values are there; Spark's functions name the dependent value first."""
    pairs = [(x, y) for y, x in rows if x is not None and y is not None]
    if not pairs:
        return None
    sxx, sxy, syy = (_products(pairs, one, other) for one, other in ((0, 0), (0, 1), (1, 1)))
    flat_x, flat_y = sxx == (Fraction(0), True), syy == (Fraction(0), True)
    match wanted.function:
        case "regr_sxx" | "regr_sxy" | "regr_syy":
            return _double(*{"regr_sxx": sxx, "regr_sxy": sxy, "regr_syy": syy}[wanted.function])
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
    if wanted.function == "regr_slope":
        return float(slope)
    return float(_mean(pairs, 1) - slope * _mean(pairs, 0))


def _products(pairs: list[tuple[float, float]], one: int, other: int) -> Sum:
    """The sum of the products of the distances from the means."""
    if not all(math.isfinite(pair[place]) for pair in pairs for place in (one, other)):
        return _NAN
    left, right = _mean(pairs, one), _mean(pairs, other)
    return sum(((Fraction(pair[one]) - left) * (Fraction(pair[other]) - right) for pair in pairs), Fraction(0)), True


def _mean(pairs: list[tuple[float, float]], place: int) -> Fraction:
    return sum((Fraction(pair[place]) for pair in pairs), Fraction(0)) / len(pairs)


def _double(exact: Fraction, is_number: bool) -> float:
    return float(exact) if is_number else math.nan
