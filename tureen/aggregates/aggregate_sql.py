"""Aggregates in DuckDB SQL: the templates of `tureen.aggregate_functions`, filled in for one call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from tureen.aggregate_functions import FinalStep, computation_of
from tureen.aggregates.expression_values import ROW
from tureen.aggregates.finals import EXACT, averages
from tureen.aggregates.plan import null_if_any
from tureen.evaluation.duck import arrow_column
from tureen.query import Aggregate, Expression
from tureen.schema import FRACTIONAL, Kind


def sql_columns(number: int, aggregate: Aggregate, over: str = "", peers: str = "") -> list[str]:
    """The columns that DuckDB computes for an aggregate, or for a window function with its OVER."""
    assert not aggregate.is_weighted, "it is computed from states"
    computation = computation_of(aggregate)
    template = computation.sql if not over or computation.over_sql is None else computation.over_sql
    names = _Names(aggregate, over, peers)
    if computation.final is FinalStep.EXACT_AVERAGE:
        count = "count({value}){over}".format_map(names)
        return [f"{template.format_map(names)} AS sum{number}", f"{count} AS count{number}"]
    return [f"{template.format_map(names)} AS value{number}"]


def result_column(number: int, aggregate: Aggregate, result: pa.Table) -> pa.Array:
    """The values of an aggregate, from the columns that DuckDB computed."""
    if computation_of(aggregate).final is FinalStep.EXACT_AVERAGE:
        argument = aggregate.arguments[0].type
        sums = result.column(f"sum{number}").to_pylist()
        totals = [0 if total is None else int(total.scaleb(argument.scale, EXACT)) for total in sums]
        return averages(totals, result.column(f"count{number}").to_pylist(), argument, aggregate.type)
    return arrow_column(result.column(f"value{number}"), aggregate.type.arrow)


@dataclass(frozen=True, slots=True)
class _Names:
    """The SQL of each name in a template; computed when the template uses it, as not every call has every name."""

    aggregate: Aggregate
    over: str
    peers: str

    def __getitem__(self, name: str) -> str:
        match name:
            case "over":
                return f" {self.over}" if self.over else ""
            case "peers":
                return self.peers
        return _SQL_OF_NAMES[name](self.aggregate)


def plain_sql(argument: Expression) -> str:
    """A value by which rows are compared: -0.0 becomes 0.0."""
    return f"({argument.sql} + 0)" if argument.type.kind in FRACTIONAL else f"({argument.sql})"


def picked_sql(argument: Expression) -> str:
    """A value that is returned unchanged; as a FLOAT, a zero would lose its sign when DuckDB sorts."""
    return f"CAST({argument.sql} AS DOUBLE)" if argument.type.kind is Kind.FLOAT else f"({argument.sql})"


def _distinct(aggregate: Aggregate) -> str:
    return "DISTINCT " if aggregate.distinct else ""


def _value(aggregate: Aggregate) -> str:
    return f"{_distinct(aggregate)}{plain_sql(aggregate.arguments[0])}"


def _values(aggregate: Aggregate) -> str:
    values = aggregate.arguments
    if len(values) < 2:
        return _value(aggregate) if values else "*"
    present = null_if_any(values).sql
    if not aggregate.distinct:
        return present
    return f"DISTINCT CASE WHEN ({present}) THEN row({', '.join(map(plain_sql, values))}) END"


def _second(aggregate: Aggregate) -> str:
    second = aggregate.arguments[1]
    # DuckDB does not sort by a constant.
    return f"({second.sql})" if second.columns else f"(CASE WHEN {ROW} >= 0 THEN ({second.sql}) END)"


def _listed(aggregate: Aggregate) -> str:
    return _value(aggregate) if aggregate.distinct else picked_sql(aggregate.arguments[0])


def _list_order(aggregate: Aggregate) -> str:
    if aggregate.distinct:
        return f"{plain_sql(aggregate.arguments[0])} {aggregate.order[0].sql}"
    keys = zip(aggregate.arguments[1:], aggregate.order, strict=True)
    # DuckDB does not sort by a constant.
    order = [f"({key.sql}) {direction.sql}" for key, direction in keys if key.columns]
    return ", ".join([*order, ROW])


def _separator(aggregate: Aggregate) -> str:
    # A DuckDB literal cannot contain a NUL.
    parts = ["'" + part.replace("'", "''") + "'" for part in aggregate.separator.split("\0")]
    return " || chr(0) || ".join(parts)


def _of_pair(sql: str) -> Callable[[Aggregate], str]:
    """SQL over the two arguments of a statistic; the dependent one is the first, as in Spark."""

    def of_arguments(aggregate: Aggregate) -> str:
        y, x = aggregate.arguments
        return sql.format(x=x.sql, y=y.sql)

    return of_arguments


_BOTH = "{x} IS NOT NULL AND {y} IS NOT NULL"

_SQL_OF_NAMES: dict[str, Callable[[Aggregate], str]] = {
    "value": _value,
    "values": _values,
    "picked": lambda aggregate: picked_sql(aggregate.arguments[0]),
    "second": _second,
    "percentage": lambda aggregate: f"{aggregate.parameters[0]!r}::DOUBLE",
    "direction": lambda aggregate: aggregate.order[0].sql,
    "listed": _listed,
    "list_order": _list_order,
    "separator": _separator,
    "row": lambda _: ROW,
    "type": lambda aggregate: aggregate.type.sql,
    "n": _of_pair(f"count(CASE WHEN {_BOTH} THEN 1 END)"),
    "odd_x": _of_pair(f"bool_or({_BOTH} AND NOT isfinite({{x}}))"),
    "odd_y": _of_pair(f"bool_or({_BOTH} AND NOT isfinite({{y}}))"),
    "x": _of_pair("CASE WHEN isfinite({x}) AND isfinite({y}) THEN {x} END"),
    "y": _of_pair("CASE WHEN isfinite({x}) AND isfinite({y}) THEN {y} END"),
    "own_x": _of_pair("CASE WHEN isfinite({x}) AND {y} IS NOT NULL THEN {x} END"),
    "own_y": _of_pair("CASE WHEN isfinite({y}) AND {x} IS NOT NULL THEN {y} END"),
}
