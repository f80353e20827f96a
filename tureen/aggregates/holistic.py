"""Holistic aggregates, which need all of their rows at once: DuckDB computes them from the rows of an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from tureen.aggregates.bivariate import PAIRS, pair_sql
from tureen.aggregates.expression_values import ROW
from tureen.aggregates.finals import EXACT, averages
from tureen.aggregates.plan import null_if_any
from tureen.evaluation.duck import arrow_column, run
from tureen.query import Aggregate, Expression
from tureen.schema import FRACTIONAL, Kind

STEP, CODE = "_step", "_code"
"""The columns with the step and the group of each row."""


def holistic_columns(aggregates: Sequence[Aggregate], rows: pa.Table) -> list[pa.Array]:
    """Each aggregate's values, one per (step, code) that occurs, in that order."""
    outputs = [output for number, aggregate in enumerate(aggregates) for output in _outputs(number, aggregate)]
    # An aggregate of two values refers to each of them many times, so they are computed first.
    pairs = [column for number, aggregate in enumerate(aggregates) for column in _pair_columns(number, aggregate)]
    rows_sql = f"(SELECT *, {', '.join(pairs)} FROM rows)" if pairs else "rows"
    sql = f"SELECT {', '.join(outputs)} FROM {rows_sql} GROUP BY {STEP}, {CODE} ORDER BY {STEP}, {CODE}"
    result = run(sql, {"rows": rows}, "an aggregate")
    return [_column(number, aggregate, result) for number, aggregate in enumerate(aggregates)]


def _outputs(number: int, aggregate: Aggregate) -> list[str]:
    """The columns that DuckDB computes for one aggregate."""
    if _is_decimal_average(aggregate):
        value = _value(aggregate.arguments[0])
        mark = "DISTINCT " if aggregate.distinct else ""
        return [f"sum({mark}{value}) AS sum{number}", f"count({mark}{value}) AS count{number}"]
    if aggregate.function in PAIRS:
        return [f"{pair_sql(aggregate.function, f'_x{number}', f'_y{number}')} AS value{number}"]
    return [f"{_SQL[aggregate.function](aggregate)} AS value{number}"]


def _pair_columns(number: int, aggregate: Aggregate) -> list[str]:
    if aggregate.function not in PAIRS:
        return []
    # Spark's regr_slope(y, x) has the dependent value first.
    y, x = aggregate.arguments
    return [f"({x.sql}) AS _x{number}", f"({y.sql}) AS _y{number}"]


def _column(number: int, aggregate: Aggregate, result: pa.Table) -> pa.Array:
    if _is_decimal_average(aggregate):
        argument = aggregate.arguments[0].type
        sums = result.column(f"sum{number}").to_pylist()
        totals = [0 if value is None else int(value.scaleb(argument.scale, EXACT)) for value in sums]
        return averages(totals, result.column(f"count{number}").to_pylist(), argument, aggregate.type)
    return arrow_column(result.column(f"value{number}"), aggregate.type.arrow)


def _is_decimal_average(aggregate: Aggregate) -> bool:
    return aggregate.function == "avg" and aggregate.type.kind is Kind.DECIMAL


def _value(argument: Expression) -> str:
    """An argument as SQL, with -0.0 as 0.0, so that DISTINCT does not distinguish them."""
    return f"({argument.sql} + 0)" if argument.type.kind in FRACTIONAL else f"({argument.sql})"


def _distinct(aggregate: Aggregate) -> str:
    return "DISTINCT " if aggregate.distinct else ""


def _count(aggregate: Aggregate) -> str:
    values = aggregate.arguments
    if len(values) == 1:
        return f"count({_distinct(aggregate)}{_value(values[0])})"
    row = f"row({', '.join(map(_value, values))})"
    return f"count({_distinct(aggregate)}CASE WHEN ({null_if_any(values).sql}) THEN {row} END)"


def _sum(aggregate: Aggregate) -> str:
    value = f"{_distinct(aggregate)}{_value(aggregate.arguments[0])}"
    if aggregate.type.kind in FRACTIONAL:
        return _exact_sum(value)
    # A sum that does not fit raises, either in DuckDB's type or in this cast.
    kind = aggregate.type.sql if aggregate.type.kind is Kind.DECIMAL else "BIGINT"
    return f"CAST(sum({value}) AS {kind})"


def _exact_sum(value: str) -> str:
    # Kahan's sum turns infinities into NaN.
    return f"CASE WHEN isfinite(sum({value})) THEN fsum({value}) ELSE sum({value}) END"


def _average(aggregate: Aggregate) -> str:
    value = f"{_distinct(aggregate)}{_value(aggregate.arguments[0])}"
    return f"({_exact_sum(value)}) / count({value})"


def _called(name: str) -> Callable[[Aggregate], str]:
    return lambda aggregate: f"{name}({_distinct(aggregate)}{_value(aggregate.arguments[0])})"


def _quantile(name: str) -> Callable[[Aggregate], str]:
    def sql(aggregate: Aggregate) -> str:
        value = _value(aggregate.arguments[0])
        order = f" ORDER BY {value} {aggregate.order[0].sql}" if aggregate.order else ""
        return f"{name}({_distinct(aggregate)}{value}, {aggregate.parameters[0]!r}::DOUBLE{order})"

    return sql


def _mode(aggregate: Aggregate) -> str:
    # Of equally frequent values DuckDB returns the first.
    value = _value(aggregate.arguments[0])
    return f"mode({value} ORDER BY {value} {aggregate.order[0].sql})"


def _collected(aggregate: Aggregate) -> str:
    listed = f"list({_in_order(aggregate, '')})"
    return f"coalesce({listed} FILTER (WHERE ({aggregate.arguments[0].sql}) IS NOT NULL), [])"


def _joined(aggregate: Aggregate) -> str:
    # A DuckDB literal cannot contain a NUL.
    parts = ["'" + part.replace("'", "''") + "'" for part in aggregate.separator.split("\0")]
    return f"string_agg({_in_order(aggregate, ', ' + ' || chr(0) || '.join(parts))})"


def _in_order(aggregate: Aggregate, rest: str) -> str:
    """The value and its ORDER BY: the requested order, then the order of the rows."""
    value = aggregate.arguments[0]
    if aggregate.distinct:
        return f"DISTINCT {_value(value)}{rest} ORDER BY {_value(value)} {aggregate.order[0].sql}"
    keys = zip(aggregate.arguments[1:], aggregate.order, strict=True)
    # DuckDB does not sort by a constant.
    order = [f"({key.sql}) {direction.sql}" for key, direction in keys if key.columns]
    return f"{_picked(value)}{rest} ORDER BY {', '.join([*order, ROW])}"


def _picked(argument: Expression) -> str:
    """A value to return as SQL; when it sorts, DuckDB loses the sign of a FLOAT zero."""
    return f"CAST({argument.sql} AS DOUBLE)" if argument.type.kind is Kind.FLOAT else f"({argument.sql})"


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
    **{name: _called(name) for name in ("bit_and", "bit_or", "bit_xor")},
    "percentile_cont": _quantile("quantile_cont"),
    "percentile_disc": _quantile("quantile_disc"),
    "mode": _mode,
    "collect_list": _collected,
    "collect_set": _collected,
    "listagg": _joined,
}
