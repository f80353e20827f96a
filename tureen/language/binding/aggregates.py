"""Binding of aggregate functions: arguments, DISTINCT, FILTER, IGNORE NULLS, WITHIN GROUP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from tureen.aggregate_functions import (
    AGGREGATE_NAMES,
    AGGREGATES,
    ALIASES,
    COMPUTATIONS,
    AggregateFunction,
    Ordering,
    name_of_present,
)
from tureen.errors import SqlError, TypeMismatch, Unsupported, nearest
from tureen.language.binding.aggregate_types import TYPE_RULES, BoundAggregate, where_true
from tureen.language.binding.coerce import coerce, type_name
from tureen.language.binding.ordered_aggregates import operands_of, separator_of
from tureen.language.binding.ranking import is_ranking
from tureen.language.binding.scope import Scope
from tureen.language.tree import DOUBLE, INT, STRING, Const, Expr, IntervalConst
from tureen.schema import NUMERIC

Bind = Callable[[exp.Expression], Expr]

_WRAPPERS = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
_BY_NODE: dict[type[exp.Expression], str] = {
    getattr(exp, node): name for name, function in AGGREGATES.items() for node in function.nodes
}


def is_aggregate(node: exp.Expression) -> bool:
    """Whether a node is a call of an aggregate function, possibly with FILTER and the like."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in ALIASES
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
    return SqlError(
        f"the aggregate {name} is not allowed in {scope.clause}", hint=hint, location=scope.source.node(node)
    )


def supports_over(call: exp.Expression) -> bool:
    """Whether a call is of an aggregate that is supported with OVER."""
    while isinstance(call, _WRAPPERS):
        call = call.this
    name = _function_name(call)
    return name is not None and AGGREGATES[name].over


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
    name = _function_name(call)
    if name is None:
        written = _name(scope, call)
        raise Unsupported(
            f"the aggregate {written} is not supported",
            hint=nearest(written, AGGREGATE_NAMES) or f"aggregates are {', '.join(AGGREGATE_NAMES)}",
            location=scope.source.node(node),
        )
    function = AGGREGATES[name]
    if ignores is not None and function.computed_of_present is None:
        raise _unsupported(scope, node, name, "IGNORE NULLS")
    ordered = None
    if function.ordering is not Ordering.NONE:
        ordered = operands_of(scope, name, function.ordering, call, within)
        nodes, distinct = [*ordered.values, *ordered.keys], ordered.distinct
    elif within is not None:
        raise _unsupported(scope, node, name, "WITHIN GROUP")
    else:
        nodes, distinct = _operands(call, function)
    if distinct and not function.distinct:
        raise _unsupported(scope, node, name, "DISTINCT")
    arguments = _arguments(scope, call, name, nodes, bind)
    parameters = _parameters(scope, call, function, bind)
    if name == "listagg" and distinct and arguments[0].type != STRING:
        # Spark orders by the values before they are cast to STRING.
        raise TypeMismatch(
            f"listagg of DISTINCT values requires a STRING, got {type_name(arguments[0])}",
            hint="write CAST(… AS STRING)",
            location=scope.source.node(node),
        )
    aggregate = TYPE_RULES[function.types](scope, name, arguments)
    distinct = distinct or aggregate.distinct
    if ignores is not None:
        aggregate = replace(aggregate, function=name_of_present(name))
    if where is not None and aggregate.function in ("first", "last"):
        # FILTER turns values into NULL, which first and last would return.
        raise Unsupported(
            f"{name} does not support FILTER",
            hint="write IGNORE NULLS after it, or use max_by",
            location=scope.source.node(node),
        )
    if where is not None:
        aggregate = _filtered(aggregate, where)
    if aggregate.function == "count" and nodes and not aggregate.arguments and distinct:
        # A constant is a single distinct value.
        aggregate = replace(aggregate, arguments=tuple(arguments))
    if distinct and COMPUTATIONS[aggregate.function].ignores_distinct:
        distinct = False
    elif distinct and not aggregate.arguments:
        raise SqlError("COUNT(DISTINCT *) is not supported", hint="name the columns", location=scope.source.node(node))
    return replace(
        aggregate,
        distinct=distinct,
        parameters=parameters,
        order=() if ordered is None else ordered.directions,
        separator=separator_of(scope, call, bind) if name == "listagg" else "",
    )


def _function_name(call: exp.Expression) -> str | None:
    return ALIASES.get(call.name.lower()) if isinstance(call, exp.Anonymous) else _BY_NODE.get(type(call))


def _unsupported(scope: Scope, node: exp.Expression, name: str, construct: str) -> Unsupported:
    return Unsupported(f"{name} does not support {construct}", hint="leave it out", location=scope.source.node(node))


def _operands(call: exp.Expression, function: AggregateFunction) -> tuple[list[exp.Expression], bool]:
    """The value arguments of a call, and whether they are DISTINCT."""
    if isinstance(call, exp.Anonymous):
        return list(call.expressions), False
    if isinstance(call.this, exp.Distinct):
        return list(call.this.expressions), True
    second = call.args.get("expression") if function.arguments == 2 else None
    return [arg for arg in (call.this, *call.args.get("expressions", ()), second) if arg is not None], False


def _arguments(scope: Scope, call: exp.Expression, name: str, nodes: list[exp.Expression], bind: Bind) -> list[Expr]:
    """The bound arguments."""
    if name == "count" and len(nodes) == 1 and isinstance(nodes[0], exp.Star):
        return []
    count = AGGREGATES[name].arguments
    if count is not None and len(nodes) != count:
        raise SqlError(f"{name} takes {count} argument{'s' * (count > 1)}", location=scope.source.node(call))
    arguments = [bind(node) for node in nodes]
    for argument in arguments:
        if isinstance(argument, IntervalConst):
            raise Unsupported("an interval is not allowed here", location=scope.source.location(argument.at))
    return arguments


def _parameters(scope: Scope, call: exp.Expression, function: AggregateFunction, bind: Bind) -> tuple[float, ...]:
    if function.percentage is None:
        return ()
    if isinstance(function.percentage, float):
        return (function.percentage,)
    return (_percentage(scope, call.args.get(function.percentage), bind),)


def _percentage(scope: Scope, node: exp.Expression | None, bind: Bind) -> float:
    """The percentage of a percentile: a constant from 0 to 1."""
    bound = None if node is None or isinstance(node, exp.Array) else bind(node)
    if isinstance(bound, Const) and bound.type is not None and bound.type.kind in NUMERIC and bound.value is not None:
        share = coerce(scope.source, bound, DOUBLE)
        if isinstance(share, Const) and isinstance(share.value, float) and 0 <= share.value <= 1:
            return share.value
    raise SqlError(
        "the percentage must be a constant from 0 to 1",
        hint="such as 0.5 for the median",
        location=scope.source.location(0) if node is None else scope.source.node(node),
    )


def _filtered(aggregate: BoundAggregate, where: Expr) -> BoundAggregate:
    """FILTER (WHERE …): the arguments are NULL unless the condition holds."""
    arguments = aggregate.arguments or (Const(1, INT, where.at),)
    return replace(aggregate, arguments=tuple(where_true(where, argument) for argument in arguments))


def _name(scope: Scope, node: exp.Expression) -> str:
    """The aggregate's name as in the text, or else as in sqlglot."""
    while isinstance(node, _WRAPPERS):
        node = node.this
    raw = scope.source.raw(node)
    if raw is not None and raw.isidentifier():
        return raw
    return node.name if isinstance(node, exp.Anonymous) else node.sql_name() if isinstance(node, exp.Func) else node.key
