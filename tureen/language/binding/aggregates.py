"""Aggregate functions: what they take, and the types that Spark gives them."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from tureen.errors import SqlError, TypeMismatch, Unsupported, nearest
from tureen.language.binding.aggregate_types import PAIRS, BoundAggregate, typed_aggregate, where_true
from tureen.language.binding.coerce import coerce, type_name
from tureen.language.binding.ordered_aggregates import LISTS, WITHIN_GROUP, operands_of, separator_of
from tureen.language.binding.ranking import is_ranking
from tureen.language.binding.scope import Scope
from tureen.language.tree import BIGINT, DOUBLE, INT, STRING, Const, Expr, Lapse
from tureen.schema import NUMERIC

Bind = Callable[[exp.Expression], Expr]


# sqlglot's node -> the name here. Those that are only another spelling are rewritten in `bind_aggregate`.
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
_ONCE = PAIRS | WITHIN_GROUP
"""Aggregates that do not take DISTINCT."""


def is_aggregate(node: exp.Expression) -> bool:
    """Whether a node is a call of an aggregate function, in whatever wrapping."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in _WORDS
    return isinstance(node, (exp.AggFunc, *_WRAPPERS)) and not is_ranking(node)


def has_aggregate(node: exp.Expression) -> bool:
    """Whether an aggregate is called somewhere in an expression, other than over a window of rows."""
    calls = (one for one in node.walk() if isinstance(one, exp.Expression) and is_aggregate(one))
    return any(not _has_over(one) for one in calls)


def _has_over(call: exp.Expression) -> bool:
    outer = call
    while isinstance(outer.parent, _WRAPPERS):
        outer = outer.parent
    return isinstance(outer.parent, exp.Window) and outer.arg_key == "this"


def misplaced(scope: Scope, node: exp.Expression) -> SqlError:
    """The error for an aggregate where there can be none."""
    name = _name(scope, node)
    if scope.clause == "WHERE":
        hint = "WHERE looks at one row; put a condition on an aggregate into HAVING"
    elif scope.clause == "GROUP BY":
        hint = "group by columns, and put the aggregate into the select list"
    else:
        hint = "write one aggregate alone, without another inside"
    return SqlError(
        f"{name} cannot stand in {scope.clause}: it looks at many rows", hint=hint, place=scope.source.node(node)
    )


def bind_aggregate(scope: Scope, node: exp.Expression, bind: Bind, condition: Bind) -> BoundAggregate:
    """An aggregate with its arguments bound; `condition` binds what stands in FILTER."""
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
        raise Unsupported(f"{name} takes no IGNORE NULLS", hint="leave it out", place=scope.source.node(node))
    ordered = None
    if name in LISTS | WITHIN_GROUP:
        ordered = operands_of(scope, name, call, within)
        nodes, distinct = [*ordered.values, *ordered.keys], ordered.distinct
    elif within is not None:
        raise Unsupported(f"{name} takes no WITHIN GROUP", hint="leave it out", place=scope.source.node(node))
    else:
        nodes, distinct = _operands(call)
    if distinct and name in _ONCE:
        raise Unsupported(f"{name} takes no DISTINCT", hint="leave it out", place=scope.source.node(node))
    arguments, parameters = _arguments(scope, call, name, nodes, bind)
    if name == "listagg" and distinct and arguments[0].type != STRING:
        # Spark orders by the values that were there before they became texts.
        raise TypeMismatch(
            f"listagg of DISTINCT values is over STRING, not {type_name(arguments[0])}",
            hint="write CAST(… AS STRING)",
            place=scope.source.node(node),
        )
    found = typed_aggregate(scope, name, arguments)
    if ignores is not None:
        found = BoundAggregate(f"{name}_present", found.arguments, found.type)
    if where is not None and found.function in ("first", "last"):
        # A NULL counts as a value here, and one that is filtered away must not become one.
        raise Unsupported(
            f"{name} takes no FILTER", hint="write IGNORE NULLS after it, or use max_by", place=scope.source.node(node)
        )
    if where is not None:
        found = _filtered(found, where)
    if found.function == "count" and nodes and not found.arguments and distinct:
        # A constant is one value, however many rows have it.
        found = BoundAggregate("count", tuple(arguments), BIGINT)
    if name == "approx_count_distinct":
        # An exact count is within any error that may be allowed.
        return BoundAggregate("count", found.arguments, BIGINT, distinct=True)
    if distinct and found.function in ("min", "max", *_ORDERED):
        distinct = False
    elif distinct and not found.arguments:
        raise SqlError("COUNT(DISTINCT *) names no column", hint="name the columns", place=scope.source.node(node))
    directions = () if ordered is None else ordered.directions
    separator = separator_of(scope, call, bind) if name == "listagg" else ""
    return BoundAggregate(found.function, found.arguments, found.type, distinct, parameters, directions, separator)


def _operands(call: exp.Expression) -> tuple[list[exp.Expression], bool]:
    """The arguments that are values, and whether DISTINCT stands before them."""
    if isinstance(call, exp.Anonymous):
        return list(call.expressions), False
    if isinstance(call.this, exp.Distinct):
        return list(call.this.expressions), True
    second = call.args.get("expression") if _NODES.get(type(call)) in {"max_by", "min_by"} | PAIRS else None
    return [one for one in (call.this, *call.args.get("expressions", ()), second) if one is not None], False


def _arguments(
    scope: Scope, call: exp.Expression, name: str, nodes: list[exp.Expression], bind: Bind
) -> tuple[list[Expr], tuple[float, ...]]:
    """The bound arguments, and the constants that come after them."""
    if name == "count" and len(nodes) == 1 and isinstance(nodes[0], exp.Star):
        return [], ()
    wanted = 2 if name in {"max_by", "min_by"} | PAIRS else 1
    if name not in LISTS | {"count"} and len(nodes) != wanted:
        raise SqlError(f"{name} takes {wanted} argument{'s' * (wanted > 1)}", place=scope.source.node(call))
    arguments = [bind(one) for one in nodes]
    for one in arguments:
        if isinstance(one, Lapse):
            raise Unsupported("an interval cannot stand here", place=scope.source.place(one.at))
    if name in ("approx_percentile", "percentile"):
        return arguments, (_share(scope, call.args.get("quantile"), bind),)
    if name in ("percentile_cont", "percentile_disc"):
        return arguments, (_share(scope, call.this, bind),)
    if name == "median":
        return arguments, (0.5,)
    return arguments, ()


def _share(scope: Scope, node: exp.Expression | None, bind: Bind) -> float:
    """The percentage of a quantile: a constant from 0 to 1."""
    bound = None if node is None or isinstance(node, exp.Array) else bind(node)
    if isinstance(bound, Const) and bound.type is not None and bound.type.kind in NUMERIC and bound.value is not None:
        share = coerce(scope.source, bound, DOUBLE)
        if isinstance(share, Const) and isinstance(share.value, float) and 0 <= share.value <= 1:
            return share.value
    raise SqlError(
        "the percentage is one constant from 0 to 1",
        hint="such as 0.5 for the median",
        place=scope.source.place(0) if node is None else scope.source.node(node),
    )


def _filtered(found: BoundAggregate, where: Expr) -> BoundAggregate:
    """FILTER (WHERE …): where the condition does not hold, the arguments are NULL."""
    arguments = found.arguments or (Const(1, INT, where.at),)
    return BoundAggregate(found.function, tuple(where_true(where, one) for one in arguments), found.type)


def _name(scope: Scope, node: exp.Expression) -> str:
    """The aggregate's name as it was written, or as sqlglot has it."""
    while isinstance(node, _WRAPPERS):
        node = node.this
    raw = scope.source.raw(node)
    if raw is not None and raw.isidentifier():
        return raw
    return node.name if isinstance(node, exp.Anonymous) else node.sql_name() if isinstance(node, exp.Func) else node.key
