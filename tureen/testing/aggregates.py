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
from tureen.testing.ordered_aggregates import ORDERED, ordered_aggregate, rows_in_order
from tureen.testing.values import compare, identity

Arguments = tuple[Any, ...]
"""The values of an aggregate's arguments on one row."""

Twin = Callable[[Aggregate, Sequence[Arguments]], Any]
"""An aggregate over the rows of a group."""


def aggregate(call: Aggregate, rows: Sequence[Arguments]) -> Any:
    """An aggregate over the rows of a group, which come in order of time and then arrival."""
    return TWINS[call.function](call, rows)


def _count(call: Aggregate, rows: Sequence[Arguments]) -> int:
    return len(_present(call, rows)) if call.arguments else len(rows)


def _present(call: Aggregate, rows: Sequence[Arguments]) -> list[Arguments]:
    """The rows without NULL; with DISTINCT, the first of those with equal values."""
    present = [row for row in rows if all(value is not None for value in row)]
    if call.distinct:
        return list({tuple(map(identity, row)): row for row in reversed(present)}.values())[::-1]
    return present


def _of_present(function: Callable[[Aggregate, list[Any]], Any]) -> Twin:
    """An aggregate of the values that are not NULL; NULL if there are none."""

    def twin(call: Aggregate, rows: Sequence[Arguments]) -> Any:
        values = [row[0] for row in _present(call, rows)]
        return function(call, values) if values else None

    return twin


def _by_other(call: Aggregate, rows: Sequence[Arguments]) -> Any:
    """The first argument of the row with the greatest or least second argument; the earliest of several such rows."""
    best: Arguments | None = None
    sign = 1 if call.function == "max_by" else -1
    for row in rows:
        if row[1] is None:
            continue
        if best is None or sign * compare(row[1], best[1], call.arguments[1].type) > 0:
            best = row
    return None if best is None else best[0]


def _sum(call: Aggregate, values: list[Any]) -> Any:
    if call.type.kind in INTEGRAL:
        total = sum(values)
        if not -(2**63) <= total < 2**63:
            raise QueryFailed(f"overflow: the sum is {total}")
        return total
    if call.type.kind is Kind.DECIMAL:
        return _to_decimal(_exact_sum(values), call.type)
    return _total(values)


def _avg(call: Aggregate, values: list[Any]) -> Any:
    if call.type.kind is Kind.DECIMAL:
        return _to_decimal(_exact_sum(values) / len(values), call.type)
    if all(map(math.isfinite, values)):
        return _to_double(_exact_sum(values) / len(values))
    return _total(values) / len(values)


def _total(values: list[float]) -> float:
    """The sum of floats; infinities and NaN alone decide if there are any."""
    not_finite = [value for value in values if not math.isfinite(value)]
    return sum(not_finite) if not_finite else _to_double(_exact_sum(values))


def _variance(call: Aggregate, values: list[float]) -> float | None:
    sampled = call.function.endswith("_samp")
    if sampled and len(values) == 1:
        return None
    if not all(map(math.isfinite, values)):
        return math.nan
    exact = [Fraction(value) for value in values]
    return _to_double(statistics.variance(exact) if sampled else statistics.pvariance(exact))


def _deviation(call: Aggregate, values: list[float]) -> float | None:
    variance = _variance(call, values)
    return None if variance is None else math.sqrt(variance)


def _sorted(call: Aggregate, values: list[Any]) -> list[Any]:
    type_ = call.arguments[0].type
    return sorted(values, key=cmp_to_key(lambda left, right: compare(left, right, type_)))


def _approx_percentile(call: Aggregate, values: list[Any]) -> Any:
    rank = math.ceil(call.parameters[0] * len(values))
    return _sorted(call, values)[max(rank, 1) - 1]


def _percentile(call: Aggregate, values: list[float]) -> float:
    """Interpolated between the two values nearest to the position, with Spark's weights."""
    ascending: list[float] = _sorted(call, values)
    position = call.parameters[0] * (len(values) - 1)
    below, above = ascending[math.floor(position)], ascending[math.ceil(position)]
    if below == above or position == math.floor(position):
        return below
    return (math.ceil(position) - position) * below + (position - math.floor(position)) * above


TWINS: dict[str, Twin] = {
    "count": _count,
    "sum": _of_present(_sum),
    "avg": _of_present(_avg),
    "min": _of_present(lambda call, values: _sorted(call, values)[0]),
    "max": _of_present(lambda call, values: _sorted(call, values)[-1]),
    "var_samp": _of_present(_variance),
    "var_pop": _of_present(_variance),
    "stddev_samp": _of_present(_deviation),
    "stddev_pop": _of_present(_deviation),
    "approx_percentile": _of_present(_approx_percentile),
    "percentile": _of_present(_percentile),
    "first": lambda _, rows: rows[0][0] if rows else None,
    "last": lambda _, rows: rows[-1][0] if rows else None,
    "first_in_order": lambda call, rows: rows_in_order(call, rows)[0][0] if rows else None,
    "first_present": _of_present(lambda _, values: values[0]),
    "last_present": _of_present(lambda _, values: values[-1]),
    "max_by": _by_other,
    "min_by": _by_other,
    "bit_and": _of_present(lambda _, values: reduce(and_, values)),
    "bit_or": _of_present(lambda _, values: reduce(or_, values)),
    "bit_xor": _of_present(lambda _, values: reduce(xor, values)),
    **dict.fromkeys(ORDERED, ordered_aggregate),
    **dict.fromkeys(PAIRS, pair_aggregate),
}
"""The twin of every aggregate of `tureen.aggregate_functions`, by the function that it is bound with."""


def _exact_sum(values: list[Any]) -> Fraction:
    return sum(map(Fraction, values), Fraction(0))


def _to_double(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.copysign(math.inf, exact)


def _to_decimal(exact: Fraction, type_: Type) -> Decimal:
    """A number at the scale of a DECIMAL, rounded half up, or QueryFailed if it has too many digits."""
    scaled = abs(exact) * 10**type_.scale
    digits = math.floor(scaled + Fraction(1, 2))
    if digits >= 10**type_.precision:
        raise QueryFailed(f"overflow: {float(exact)} does not fit {type_.sql}")
    return Decimal(f"{-digits if exact < 0 else digits}e-{type_.scale}")
