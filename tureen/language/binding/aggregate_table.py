"""The table of aggregates: the nodes of each in sqlglot, its types, and the syntax that it supports.

A new aggregate is an entry here, its SQL in `tureen.aggregates.holistic`, and a function of the oracle's in
`tureen.testing.aggregates`, all under the name that its type rule binds it with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from sqlglot import exp

from tureen.language.binding import aggregate_types as types
from tureen.language.binding.aggregate_types import BoundAggregate
from tureen.language.binding.scope import Scope
from tureen.language.tree import Expr

TypeRule = Callable[[Scope, str, list[Expr]], BoundAggregate]
"""Casts the arguments of an aggregate of a name, and gives it its result type."""


class Ordering(Enum):
    """Where an aggregate takes the order of its rows from."""

    NONE = auto()
    LIST = auto()
    """ORDER BY after its argument, or WITHIN GROUP."""
    WITHIN_GROUP = auto()
    """WITHIN GROUP, whose ORDER BY expression is its argument."""


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """An aggregate function."""

    nodes: tuple[type[exp.Expression], ...]
    """sqlglot's nodes for its names."""
    types: TypeRule
    arguments: int | None = 1
    """The number of its arguments; None for any number."""
    percentage: str | float | None = None
    """The key of the node that is its percentage, or the percentage."""
    ordering: Ordering = Ordering.NONE
    distinct: bool = True
    """Whether it supports DISTINCT."""
    ignore_nulls: bool = False
    """Whether it supports IGNORE NULLS."""
    over: bool = False
    """Whether it supports OVER."""


def _statistic(*nodes: type[exp.Expression]) -> AggregateFunction:
    return AggregateFunction(nodes, types.double_of_number, over=True)


def _pair(node: type[exp.Expression], *, over: bool = False) -> AggregateFunction:
    return AggregateFunction((node,), types.pair_statistic, arguments=2, distinct=False, over=over)


def _list(node: type[exp.Expression]) -> AggregateFunction:
    return AggregateFunction((node,), types.all_values, arguments=None, ordering=Ordering.LIST)


def _within_group(node: type[exp.Expression], rule: TypeRule, percentage: str | None = None) -> AggregateFunction:
    return AggregateFunction((node,), rule, percentage=percentage, ordering=Ordering.WITHIN_GROUP, distinct=False)


AGGREGATES: dict[str, AggregateFunction] = {
    "count": AggregateFunction((exp.Count,), types.count, arguments=None, over=True),
    "count_if": AggregateFunction((exp.CountIf,), types.count_if, over=True),
    "approx_count_distinct": AggregateFunction((exp.ApproxDistinct,), types.distinct_count),
    "sum": AggregateFunction((exp.Sum,), types.sum_or_avg, over=True),
    "avg": AggregateFunction((exp.Avg,), types.sum_or_avg, over=True),
    "min": AggregateFunction((exp.Min,), types.one_value, over=True),
    "max": AggregateFunction((exp.Max,), types.one_value, over=True),
    "bool_and": AggregateFunction((exp.LogicalAnd,), types.all_or_any, over=True),
    "bool_or": AggregateFunction((exp.LogicalOr,), types.all_or_any, over=True),
    "bit_and": AggregateFunction((exp.BitwiseAndAgg,), types.one_integer),
    "bit_or": AggregateFunction((exp.BitwiseOrAgg,), types.one_integer),
    "bit_xor": AggregateFunction((exp.BitwiseXorAgg,), types.one_integer),
    "stddev_samp": _statistic(exp.Stddev, exp.StddevSamp),
    "stddev_pop": _statistic(exp.StddevPop),
    "var_samp": _statistic(exp.Variance),
    "var_pop": _statistic(exp.VariancePop),
    "first": AggregateFunction(
        (exp.First, exp.FirstValue, exp.AnyValue), types.one_value, ignore_nulls=True, over=True
    ),
    "last": AggregateFunction((exp.Last, exp.LastValue), types.one_value, ignore_nulls=True, over=True),
    "max_by": AggregateFunction((exp.ArgMax,), types.one_value, arguments=2),
    "min_by": AggregateFunction((exp.ArgMin,), types.one_value, arguments=2),
    "percentile": AggregateFunction((exp.Quantile,), types.percentile, percentage="quantile"),
    "median": AggregateFunction((exp.Median,), types.percentile, percentage=0.5),
    "approx_percentile": AggregateFunction((exp.ApproxQuantile,), types.approx_percentile, percentage="quantile"),
    "percentile_cont": _within_group(exp.PercentileCont, types.double_of_number, "this"),
    "percentile_disc": _within_group(exp.PercentileDisc, types.double_of_number, "this"),
    "mode": _within_group(exp.Mode, types.one_value),
    "corr": _pair(exp.Corr),
    "covar_pop": _pair(exp.CovarPop),
    "covar_samp": _pair(exp.CovarSamp),
    "regr_count": _pair(exp.RegrCount, over=True),
    "regr_avgx": _pair(exp.RegrAvgx, over=True),
    "regr_avgy": _pair(exp.RegrAvgy, over=True),
    "regr_slope": _pair(exp.RegrSlope),
    "regr_intercept": _pair(exp.RegrIntercept),
    "regr_r2": _pair(exp.RegrR2),
    "regr_sxx": _pair(exp.RegrSxx),
    "regr_sxy": _pair(exp.RegrSxy),
    "regr_syy": _pair(exp.RegrSyy),
    "collect_list": _list(exp.ArrayAgg),
    "collect_set": _list(exp.ArrayUniqueAgg),
    "listagg": _list(exp.GroupConcat),
}

BY_NODE = {node: name for name, function in AGGREGATES.items() for node in function.nodes}
BY_WORD = {"mean": "avg", "std": "stddev_samp", "every": "bool_and", "some": "bool_or"}
"""Names that sqlglot has no node for."""

AGGREGATE_NAMES = sorted(
    {*AGGREGATES, *BY_WORD, "stddev", "variance", "any_value", "first_value", "last_value", "percentile_approx"}
    | {"array_agg", "string_agg"}
)
"""All names of aggregates in SQL."""
