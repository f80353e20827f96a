"""Aggregates that order their rows: lists, joined strings, and those with WITHIN GROUP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from tureen.aggregate_functions import Ordering
from tureen.errors import SqlError, Unsupported
from tureen.language.binding.scope import Scope
from tureen.language.tree import STRING, Const, Expr
from tureen.query import Direction

Bind = Callable[[exp.Expression], Expr]

ASCENDING = Direction(descending=False, nulls_first=True)


@dataclass(frozen=True, slots=True)
class OrderedOperands:
    """The operands of an aggregate: its values, the ORDER BY expressions, and whether it is DISTINCT."""

    values: list[exp.Expression]
    keys: list[exp.Expression]
    directions: tuple[Direction, ...]
    distinct: bool


def operands_of(
    scope: Scope, name: str, ordering: Ordering, call: exp.Expression, within: exp.Expression | None
) -> OrderedOperands:
    """The operands of an aggregate that orders its rows."""
    if ordering is Ordering.WITHIN_GROUP:
        return _within_group(scope, name, call, within)
    inner, items = call.this, []
    if isinstance(inner, exp.Order):
        inner, items = inner.this, inner.expressions
    distinct = isinstance(inner, exp.Distinct) or name == "collect_set"
    values = list(inner.expressions) if isinstance(inner, exp.Distinct) else [inner]
    keys = [item.this for item in items]
    if items and name == "collect_set":
        raise Unsupported(
            "collect_set does not support ORDER BY", hint="its values are ascending", location=scope.source.node(call)
        )
    if distinct and items and (len(items) > 1 or keys != values):
        raise SqlError(
            f"with DISTINCT, {name} can only be ordered by its argument",
            hint="write the argument after ORDER BY",
            location=scope.source.node(call),
        )
    directions = tuple(map(direction_of, items))
    # With DISTINCT, values are ordered by themselves.
    return (
        OrderedOperands(values, [], directions or (ASCENDING,), True)
        if distinct
        else OrderedOperands(values, keys, directions, False)
    )


def _within_group(scope: Scope, name: str, call: exp.Expression, within: exp.Expression | None) -> OrderedOperands:
    if name == "mode" and within is None and call.this is not None and not call.args.get("deterministic"):
        return OrderedOperands([call.this], [], (ASCENDING,), False)
    items = [] if within is None else within.expressions
    if len(items) != 1 or (name == "mode" and call.this is not None) or call.args.get("expression") is not None:
        example = "mode()" if name == "mode" else f"{name}(0.5)"
        raise SqlError(
            f"{name} requires WITHIN GROUP with one ORDER BY expression",
            hint=f"write {example} WITHIN GROUP (ORDER BY x)",
            location=scope.source.node(call),
        )
    return OrderedOperands([items[0].this], [], (direction_of(items[0]),), False)


def direction_of(item: exp.Expression) -> Direction:
    """The direction of an item of ORDER BY."""
    return Direction(bool(item.args.get("desc")), bool(item.args.get("nulls_first")))


def separator_of(scope: Scope, call: exp.Expression, bind: Bind) -> str:
    """The separator of listagg: a constant, or empty."""
    node = call.args.get("separator")
    if node is None:
        return ""
    bound = bind(node)
    if isinstance(bound, Const) and (bound.value is None or bound.type == STRING):
        return str(bound.value or "")
    raise SqlError(
        "the separator of listagg must be a constant string", hint="such as ', '", location=scope.source.node(call)
    )
