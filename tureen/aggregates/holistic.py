"""Aggregates that need all of their rows at once: DuckDB computes them from the rows of an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from tureen.aggregates.finals import EXACT, averages
from tureen.aggregates.plan import together
from tureen.aggregates.values import ROW
from tureen.matching.duck import arrow_column, run
from tureen.query import Aggregate, Expression
from tureen.schema import FRACTIONAL, Kind

PLACE, CODE = "_place", "_code"
"""The columns that say which step and which group a row belongs to."""


def holistic_columns(aggregates: Sequence[Aggregate], rows: pa.Table) -> list[pa.Array]:
    """Each aggregate's values, one per (place, code) that occurs, in that order."""
    wanted = [part for number, one in enumerate(aggregates) for part in _parts(number, one)]
    sql = f"SELECT {', '.join(wanted)} FROM rows GROUP BY {PLACE}, {CODE} ORDER BY {PLACE}, {CODE}"
    found = run(sql, {"rows": rows}, "an aggregate")
    return [_column(number, one, found) for number, one in enumerate(aggregates)]


def _parts(number: int, aggregate: Aggregate) -> list[str]:
    """What is asked of DuckDB for one aggregate."""
    if _is_decimal_average(aggregate):
        value = _value(aggregate.arguments[0])
        mark = "DISTINCT " if aggregate.distinct else ""
        return [f"sum({mark}{value}) AS sum{number}", f"count({mark}{value}) AS count{number}"]
    return [f"{_SQL[aggregate.function](aggregate)} AS value{number}"]


def _column(number: int, aggregate: Aggregate, found: pa.Table) -> pa.Array:
    if _is_decimal_average(aggregate):
        argument = aggregate.arguments[0].type
        sums = found.column(f"sum{number}").to_pylist()
        totals = [0 if one is None else int(one.scaleb(argument.scale, EXACT)) for one in sums]
        return averages(totals, found.column(f"count{number}").to_pylist(), argument, aggregate.type)
    return arrow_column(found.column(f"value{number}"), aggregate.type.arrow)


def _is_decimal_average(aggregate: Aggregate) -> bool:
    return aggregate.function == "avg" and aggregate.type.kind is Kind.DECIMAL


def _value(one: Expression) -> str:
    """An argument; -0.0 is 0.0 where values are told apart."""
    return f"({one.sql} + 0)" if one.type.kind in FRACTIONAL else f"({one.sql})"


def _distinct(aggregate: Aggregate) -> str:
    return "DISTINCT " if aggregate.distinct else ""


def _count(aggregate: Aggregate) -> str:
    values = aggregate.arguments
    if len(values) == 1:
        return f"count({_distinct(aggregate)}{_value(values[0])})"
    row = f"row({', '.join(map(_value, values))})"
    return f"count({_distinct(aggregate)}CASE WHEN ({together(values).sql}) THEN {row} END)"


def _sum(aggregate: Aggregate) -> str:
    value = f"{_distinct(aggregate)}{_value(aggregate.arguments[0])}"
    if aggregate.type.kind in FRACTIONAL:
        return _exact_sum(value)
    # A sum that does not fit raises, in DuckDB's own type or in this cast.
    kind = aggregate.type.sql if aggregate.type.kind is Kind.DECIMAL else "BIGINT"
    return f"CAST(sum({value}) AS {kind})"


def _exact_sum(value: str) -> str:
    # Kahan's sum makes a NaN of infinities.
    return f"CASE WHEN isfinite(sum({value})) THEN fsum({value}) ELSE sum({value}) END"


def _average(aggregate: Aggregate) -> str:
    value = f"{_distinct(aggregate)}{_value(aggregate.arguments[0])}"
    return f"({_exact_sum(value)}) / count({value})"


def _called(name: str) -> Callable[[Aggregate], str]:
    return lambda aggregate: f"{name}({_distinct(aggregate)}{_value(aggregate.arguments[0])})"


def _quantile(name: str) -> Callable[[Aggregate], str]:
    return lambda aggregate: f"{name}({_value(aggregate.arguments[0])}, {aggregate.parameters[0]!r}::DOUBLE)"


def _picked(one: Expression) -> str:
    """A value that is given back; sorting, DuckDB loses the sign of a zero that is a FLOAT."""
    return f"CAST({one.sql} AS DOUBLE)" if one.type.kind is Kind.FLOAT else f"({one.sql})"


def _first(order: str, present: bool = False) -> Callable[[Aggregate], str]:
    def sql(aggregate: Aggregate) -> str:
        value = _picked(aggregate.arguments[0])
        only = f" FILTER (WHERE {value} IS NOT NULL)" if present else ""
        return f"first({value} ORDER BY {ROW} {order}){only}"

    return sql


def _by(order: str) -> Callable[[Aggregate], str]:
    def sql(aggregate: Aggregate) -> str:
        value, key = _picked(aggregate.arguments[0]), f"({aggregate.arguments[1].sql})"
        if not aggregate.arguments[1].columns:
            # DuckDB does not sort by a constant.
            key = f"(CASE WHEN {ROW} >= 0 THEN {key} END)"
        return f"first({value} ORDER BY {key} {order}, {ROW}) FILTER (WHERE {key} IS NOT NULL)"

    return sql


_SQL: dict[str, Callable[[Aggregate], str]] = {
    "count": _count,
    "sum": _sum,
    "avg": _average,
    "min": _called("min"),
    "max": _called("max"),
    "stddev_samp": _called("stddev_samp"),
    "stddev_pop": _called("stddev_pop"),
    "var_samp": _called("var_samp"),
    "var_pop": _called("var_pop"),
    "approx_percentile": _quantile("quantile_disc"),
    "percentile": _quantile("quantile_cont"),
    "first": _first("ASC"),
    "last": _first("DESC"),
    "first_present": _first("ASC", present=True),
    "last_present": _first("DESC", present=True),
    "max_by": _by("DESC"),
    "min_by": _by("ASC"),
}
