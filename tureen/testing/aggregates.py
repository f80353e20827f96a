"""Aggregates in plain Python: exact numbers throughout, rounded once at the end."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cmp_to_key, reduce
from operator import and_, or_, xor
from typing import Any

from tureen.errors import QueryFailed
from tureen.query import Aggregate
from tureen.schema import INTEGRAL, Kind, Type
from tureen.testing.bivariate import PAIRS, pair_aggregate
from tureen.testing.ordered_aggregates import ordered_aggregate
from tureen.testing.values import compare, identity

Arguments = tuple[Any, ...]
"""The values of an aggregate's arguments on one row."""


def aggregate(wanted: Aggregate, rows: Sequence[Arguments]) -> Any:
    """An aggregate over the rows of a group, which come in order of time and then arrival."""
    if wanted.function == "count" and not wanted.arguments:
        return len(rows)
    if wanted.function in ("first", "last"):
        return rows[0 if wanted.function == "first" else -1][0] if rows else None
    if wanted.function in ("max_by", "min_by"):
        return _by_other(wanted, rows)
    if wanted.order or wanted.function in ("collect_list", "listagg"):
        return ordered_aggregate(wanted, rows)
    if wanted.function in PAIRS:
        return pair_aggregate(wanted, rows)
    present = [row for row in rows if all(value is not None for value in row)]
    if wanted.distinct:
        present = list({tuple(map(identity, row)): row for row in reversed(present)}.values())[::-1]
    if wanted.function == "count":
        return len(present)
    if not present:
        return None
    return _FUNCTIONS[wanted.function](wanted, [row[0] for row in present])


def _by_other(wanted: Aggregate, rows: Sequence[Arguments]) -> Any:
    """The first argument of the row whose second is the greatest or least; the earliest of several."""
    best: Arguments | None = None
    sign = 1 if wanted.function == "max_by" else -1
    for row in rows:
        if row[1] is None:
            continue
        if best is None or sign * compare(row[1], best[1], wanted.arguments[1].type) > 0:
            best = row
    return None if best is None else best[0]


def _sum(wanted: Aggregate, values: list[Any]) -> Any:
    if wanted.type.kind in INTEGRAL:
        total = sum(values)
        if not -(2**63) <= total < 2**63:
            raise QueryFailed(f"overflow: the sum is {total}")
        return total
    if wanted.type.kind is Kind.DECIMAL:
        return _to_decimal(_exact_sum(values), wanted.type)
    return _total(values)


def _avg(wanted: Aggregate, values: list[Any]) -> Any:
    if wanted.type.kind is Kind.DECIMAL:
        return _to_decimal(_exact_sum(values) / len(values), wanted.type)
    if all(map(math.isfinite, values)):
        return _to_double(_exact_sum(values) / len(values))
    return _total(values) / len(values)


def _total(values: list[float]) -> float:
    """The sum of floats; those that are infinite or NaN decide alone."""
    odd = [value for value in values if not math.isfinite(value)]
    return sum(odd) if odd else _to_double(_exact_sum(values))


def _variance(wanted: Aggregate, values: list[float]) -> float | None:
    sampled = wanted.function.endswith("_samp")
    if sampled and len(values) == 1:
        return None
    if not all(map(math.isfinite, values)):
        return math.nan
    exact = [Fraction(value) for value in values]
    return _to_double(statistics.variance(exact) if sampled else statistics.pvariance(exact))


def _deviation(wanted: Aggregate, values: list[float]) -> float | None:
    variance = _variance(wanted, values)
    return None if variance is None else math.sqrt(variance)


def _sorted(wanted: Aggregate, values: list[Any]) -> list[Any]:
    type_ = wanted.arguments[0].type
    return sorted(values, key=cmp_to_key(lambda left, right: compare(left, right, type_)))


def _approx_percentile(wanted: Aggregate, values: list[Any]) -> Any:
    rank = math.ceil(wanted.parameters[0] * len(values))
    return _sorted(wanted, values)[max(rank, 1) - 1]


def _percentile(wanted: Aggregate, values: list[float]) -> float:
    """Between the two values that are nearest to the place, as Spark weighs them."""
    ascending: list[float] = _sorted(wanted, values)
    place = wanted.parameters[0] * (len(values) - 1)
    below, above = ascending[math.floor(place)], ascending[math.ceil(place)]
    if below == above or place == math.floor(place):
        return below
    return (math.ceil(place) - place) * below + (place - math.floor(place)) * above


_FUNCTIONS: dict[str, Callable[[Aggregate, list[Any]], Any]] = {
    "sum": _sum,
    "avg": _avg,
    "min": lambda wanted, values: _sorted(wanted, values)[0],
    "max": lambda wanted, values: _sorted(wanted, values)[-1],
    "var_samp": _variance,
    "var_pop": _variance,
    "stddev_samp": _deviation,
    "stddev_pop": _deviation,
    "approx_percentile": _approx_percentile,
    "percentile": _percentile,
    "first_present": lambda _, values: values[0],
    "last_present": lambda _, values: values[-1],
    "bit_and": lambda _, values: reduce(and_, values),
    "bit_or": lambda _, values: reduce(or_, values),
    "bit_xor": lambda _, values: reduce(xor, values),
}


def _exact_sum(values: list[Any]) -> Fraction:
    return sum(map(Fraction, values), Fraction(0))


def _to_double(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.copysign(math.inf, exact)


def _to_decimal(exact: Fraction, type_: Type) -> Decimal:
    """A number at the scale of a DECIMAL, rounded half up, or QueryFailed where it has too many digits."""
    scaled = abs(exact) * 10**type_.scale
    digits = math.floor(scaled + Fraction(1, 2))
    if digits >= 10**type_.precision:
        raise QueryFailed(f"overflow: {float(exact)} is no {type_.sql}")
    return Decimal(f"{-digits if exact < 0 else digits}e-{type_.scale}")
