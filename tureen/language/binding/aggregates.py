"""Binding of aggregate functions: arguments, DISTINCT, FILTER, IGNORE NULLS, WITHIN GROUP."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from tureen.errors import SqlError, TypeMismatch, Unsupported, nearest
from tureen.language.binding.aggregate_types import PAIRS, BoundAggregate, typed_aggregate, where_true
from tureen.language.binding.coerce import coerce, type_name
from tureen.language.binding.ordered_aggregates import LISTS, WITHIN_GROUP, operands_of, separator_of
from tureen.language.binding.ranking import is_ranking
from tureen.language.binding.scope import Scope
from tureen.language.tree import BIGINT, DOUBLE, INT, STRING, Const, Expr, IntervalConst
from tureen.schema import NUMERIC

Bind = Callable[[exp.Expression], Expr]


# sqlglot's node -> name. `typed_aggregate` rewrites some as others, such as count_if as count.
_NODES: dict[type[exp.Expression], str] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
    exp.ApproxDistinct: "approx_count_distinct",
    exp.ApproxQuantile: "approx_percentile",
    exp.Quantile: "percentile",
    exp.Median: "median",
    exp.First: "first",
    exp.FirstValue: "first",
    exp.Last: "last",
    exp.LastValue: "last",
    exp.AnyValue: "first",
    exp.ArgMax: "max_by",
    exp.ArgMin: "min_by",
    exp.CountIf: "count_if",
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
    exp.BitwiseAndAgg: "bit_and",
    exp.BitwiseOrAgg: "bit_or",
    exp.BitwiseXorAgg: "bit_xor",
    exp.Corr: "corr",
    exp.CovarPop: "covar_pop",
    exp.CovarSamp: "covar_samp",
    exp.RegrCount: "regr_count",
    exp.RegrAvgx: "regr_avgx",
    exp.RegrAvgy: "regr_avgy",
    exp.RegrSlope: "regr_slope",
    exp.RegrIntercept: "regr_intercept",
    exp.RegrR2: "regr_r2",
    exp.RegrSxx: "regr_sxx",
    exp.RegrSxy: "regr_sxy",
    exp.RegrSyy: "regr_syy",
    exp.ArrayAgg: "collect_list",
    exp.ArrayUniqueAgg: "collect_set",
    exp.GroupConcat: "listagg",
    exp.PercentileCont: "percentile_cont",
    exp.PercentileDisc: "percentile_disc",
    exp.Mode: "mode",
}
_WORDS = {"mean": "avg", "std": "stddev_samp", "every": "bool_and", "some": "bool_or"}
AGGREGATES = sorted(
    {*_NODES.values(), *_WORDS, "stddev", "variance", "any_value", "first_value", "last_value", "percentile_approx"}
    | {"array_agg", "string_agg"}
)
_WRAPPERS = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
_ORDERED = frozenset({"first", "last", "max_by", "min_by"})
_WITHOUT_DISTINCT = PAIRS | WITHIN_GROUP
"""Aggregates that do not support DISTINCT."""


def is_aggregate(node: exp.Expression) -> bool:
    """Whether a node is a call of an aggregate function, possibly with FILTER and the like."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in _WORDS
    return isinstance(node, (exp.AggFunc, *_WRAPPERS)) and not is_ranking(node)


def has_aggregate(node: exp.Expression) -> bool:
    """Whether an expression contains an aggregate without OVER."""
    calls = (child for child in node.walk() if isinstance(child, exp.Expression) and is_aggregate(child))
    return any(not _has_over(call) for call in calls)


def _has_over(call: exp.Expression) -> bool:
    outer = call
    while isinstance(outer.parent, _WRAPPERS):
        outer = outer.parent
    return isinstance(outer.parent, exp.Window) and outer.arg_key == "this"


def misplaced(scope: Scope, node: exp.Expression) -> SqlError:
    """The error for an aggregate where none is allowed."""
    name = _name(scope, node)
    if scope.clause == "WHERE":
        hint = "WHERE filters single rows; write conditions on aggregates in HAVING"
    elif scope.clause == "GROUP BY":
        hint = "group by columns, and write the aggregate in the select list"
    else:
        hint = "aggregates cannot be nested"
    return SqlError(f"the aggregate {name} is not allowed in {scope.clause}", hint=hint, place=scope.source.node(node))


def bind_aggregate(scope: Scope, node: exp.Expression, bind: Bind, condition: Bind) -> BoundAggregate:
    """Bind an aggregate; `condition` binds the condition of FILTER."""
    where = ignores = within = None
    call = node
    while isinstance(call, _WRAPPERS):
        if isinstance(call, exp.Filter):
            where = condition(call.expression.this)
        elif isinstance(call, exp.IgnoreNulls):
            ignores = call
        elif isinstance(call, exp.WithinGroup):
            within = call.expression
        call = call.this
    name = _WORDS.get(call.name.lower()) if isinstance(call, exp.Anonymous) else _NODES.get(type(call))
    if name is None:
        written = _name(scope, call)
        raise Unsupported(
            f"the aggregate {written} is not supported",
            hint=nearest(written, AGGREGATES) or f"aggregates are {', '.join(AGGREGATES)}",
            place=scope.source.node(node),
        )
    if ignores is not None and name not in ("first", "last"):
        raise Unsupported(f"{name} does not support IGNORE NULLS", hint="leave it out", place=scope.source.node(node))
    ordered = None
    if name in LISTS | WITHIN_GROUP:
        ordered = operands_of(scope, name, call, within)
        nodes, distinct = [*ordered.values, *ordered.keys], ordered.distinct
    elif within is not None:
        raise Unsupported(f"{name} does not support WITHIN GROUP", hint="leave it out", place=scope.source.node(node))
    else:
        nodes, distinct = _operands(call)
    if distinct and name in _WITHOUT_DISTINCT:
        raise Unsupported(f"{name} does not support DISTINCT", hint="leave it out", place=scope.source.node(node))
    arguments, parameters = _arguments(scope, call, name, nodes, bind)
    if name == "listagg" and distinct and arguments[0].type != STRING:
        # Spark orders by the values before they are cast to STRING.
        raise TypeMismatch(
            f"listagg of DISTINCT values requires a STRING, got {type_name(arguments[0])}",
            hint="write CAST(… AS STRING)",
            place=scope.source.node(node),
        )
    aggregate = typed_aggregate(scope, name, arguments)
    if ignores is not None:
        aggregate = BoundAggregate(f"{name}_present", aggregate.arguments, aggregate.type)
    if where is not None and aggregate.function in ("first", "last"):
        # FILTER turns values into NULL, which first and last would return.
        raise Unsupported(
            f"{name} does not support FILTER",
            hint="write IGNORE NULLS after it, or use max_by",
            place=scope.source.node(node),
        )
    if where is not None:
        aggregate = _filtered(aggregate, where)
    if aggregate.function == "count" and nodes and not aggregate.arguments and distinct:
        # A constant is a single distinct value.
        aggregate = BoundAggregate("count", tuple(arguments), BIGINT)
    if name == "approx_count_distinct":
        # An exact count satisfies any permitted error.
        return BoundAggregate("count", aggregate.arguments, BIGINT, distinct=True)
    if distinct and aggregate.function in ("min", "max", *_ORDERED):
        distinct = False
    elif distinct and not aggregate.arguments:
        raise SqlError("COUNT(DISTINCT *) is not supported", hint="name the columns", place=scope.source.node(node))
    directions = () if ordered is None else ordered.directions
    separator = separator_of(scope, call, bind) if name == "listagg" else ""
    return BoundAggregate(
        aggregate.function, aggregate.arguments, aggregate.type, distinct, parameters, directions, separator
    )


def _operands(call: exp.Expression) -> tuple[list[exp.Expression], bool]:
    """The value arguments of a call, and whether they are DISTINCT."""
    if isinstance(call, exp.Anonymous):
        return list(call.expressions), False
    if isinstance(call.this, exp.Distinct):
        return list(call.this.expressions), True
    second = call.args.get("expression") if _NODES.get(type(call)) in {"max_by", "min_by"} | PAIRS else None
    return [arg for arg in (call.this, *call.args.get("expressions", ()), second) if arg is not None], False


def _arguments(
    scope: Scope, call: exp.Expression, name: str, nodes: list[exp.Expression], bind: Bind
) -> tuple[list[Expr], tuple[float, ...]]:
    """The bound arguments, and the constant parameters after them."""
    if name == "count" and len(nodes) == 1 and isinstance(nodes[0], exp.Star):
        return [], ()
    count = 2 if name in {"max_by", "min_by"} | PAIRS else 1
    if name not in LISTS | {"count"} and len(nodes) != count:
        raise SqlError(f"{name} takes {count} argument{'s' * (count > 1)}", place=scope.source.node(call))
    arguments = [bind(node) for node in nodes]
    for argument in arguments:
        if isinstance(argument, IntervalConst):
            raise Unsupported("an interval is not allowed here", place=scope.source.place(argument.at))
    if name in ("approx_percentile", "percentile"):
        return arguments, (_share(scope, call.args.get("quantile"), bind),)
    if name in ("percentile_cont", "percentile_disc"):
        return arguments, (_share(scope, call.this, bind),)
    if name == "median":
        return arguments, (0.5,)
    return arguments, ()


def _share(scope: Scope, node: exp.Expression | None, bind: Bind) -> float:
    """The percentage of a percentile: a constant from 0 to 1."""
    bound = None if node is None or isinstance(node, exp.Array) else bind(node)
    if isinstance(bound, Const) and bound.type is not None and bound.type.kind in NUMERIC and bound.value is not None:
        share = coerce(scope.source, bound, DOUBLE)
        if isinstance(share, Const) and isinstance(share.value, float) and 0 <= share.value <= 1:
            return share.value
    raise SqlError(
        "the percentage must be a constant from 0 to 1",
        hint="such as 0.5 for the median",
        place=scope.source.place(0) if node is None else scope.source.node(node),
    )


def _filtered(aggregate: BoundAggregate, where: Expr) -> BoundAggregate:
    """FILTER (WHERE …): the arguments are NULL unless the condition holds."""
    arguments = aggregate.arguments or (Const(1, INT, where.at),)
    return BoundAggregate(
        aggregate.function, tuple(where_true(where, argument) for argument in arguments), aggregate.type
    )


def _name(scope: Scope, node: exp.Expression) -> str:
    """The aggregate's name as in the text, or else as in sqlglot."""
    while isinstance(node, _WRAPPERS):
        node = node.this
    raw = scope.source.raw(node)
    if raw is not None and raw.isidentifier():
        return raw
    return node.name if isinstance(node, exp.Anonymous) else node.sql_name() if isinstance(node, exp.Func) else node.key
