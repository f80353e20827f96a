"""Lateral subqueries: values that a query computes for each row of the query around it, whose columns it may use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from sqlglot import exp

from tureen.aggregate_functions import FIRST_IN_ORDER
from tureen.errors import SqlError, Unsupported
from tureen.join import JoinTree, parse_field, visible_leaves
from tureen.language.binding.aggregate_types import BoundAggregate
from tureen.language.binding.aggregates import has_aggregate
from tureen.language.binding.bind import bind, compare
from tureen.language.binding.draft import Draft
from tureen.language.binding.grouping import Groups
from tureen.language.binding.ordered_aggregates import direction_of
from tureen.language.binding.outputs import Item, numbered, read_items, untyped_null
from tureen.language.binding.scope import Scope
from tureen.language.binding.subqueries import (
    Passes,
    bind_subquery,
    check_inputs,
    check_levels,
    has_own_result,
    in_comparisons,
    in_values,
    limit_of,
)
from tureen.language.duckdb.expressions import expression_of
from tureen.language.source import offset_of
from tureen.language.text.blocks import cut_set_operations, cut_with
from tureen.language.tree import BIGINT, BOOLEAN, INT, Call, Const, Expr, Ref, columns_in
from tureen.query import Output, Query, aggregate_name
from tureen.schema import Column


def bind_lateral(draft: Draft, node: exp.Expression, parsing: Passes, joining: Passes) -> Expr:
    """The value of EXISTS, of IN with a query, or of a query in parentheses.

    `parsing` and `joining` are the passes up to the tree of a query, and up to its WHERE.
    """
    match node:
        case exp.Exists():
            tokens = draft.blocks[node.this.name]
            right, conjuncts, _ = bind_subquery(draft, tokens, parsing, joining, with_items=False)
            check_levels(draft, right, conjuncts)
            return _exists(draft, right, conjuncts)
        case exp.In():
            return _is_in(draft, node, parsing, joining)
        case _:
            return _value(draft, node, parsing, joining)


def _exists(draft: Draft, right: JoinTree, conjuncts: list[Expr]) -> Expr:
    """Whether a row has a partner."""
    groups = Groups(draft.source, [], frozenset())
    groups.aggregates.append(BoundAggregate("count", (), BIGINT))
    count = Ref(Column(aggregate_name(0), BIGINT), 0)
    return _added(draft, groups, compare(draft.scope, ">", count, Const(0, INT, 0)), right, conjuncts, exists=True)


def _is_in(draft: Draft, node: exp.In, parsing: Passes, joining: Passes) -> Expr:
    """TRUE if a partner has the value; unknown if none has, but the comparison with one is unknown."""
    values = in_values(draft, node)
    tokens = draft.blocks[node.expressions[0].name]
    right, conjuncts, items = bind_subquery(draft, tokens, parsing, joining, with_items=True)
    check_levels(draft, right, conjuncts)
    equal, maybe = in_comparisons(draft, node, values, items)
    same, *unknown = (_exists(draft, right, [*conjuncts, *conditions]) for conditions in (equal, *maybe))
    at = values[0].at
    true, false, null = (Const(truth, BOOLEAN, at) for truth in (1, 0, None))
    some_unknown = Call("or", tuple(unknown), BOOLEAN, at) if len(unknown) > 1 else unknown[0]
    return Call("case", (same, true, some_unknown, null, false), BOOLEAN, at)


def _value(draft: Draft, node: exp.Expression, parsing: Passes, joining: Passes) -> Expr:
    """The value of a query with one aggregate, or with one row."""
    inner, takes_first = _inner(draft, node, parsing)
    is_row = not has_aggregate(inner.select.expressions[0])
    order = inner.select.args.get("order") if is_row and takes_first else None
    if is_row and order is None:
        # The value of the only partner; that there is only one is checked when it is computed.
        inner.select.set("expressions", [exp.First(this=each.unalias()) for each in inner.select.expressions])
    for run_pass in joining:
        run_pass(inner)
    groups = Groups(inner.source, [], frozenset())
    over_rows = replace(inner.scope, clause="the select list of this query")
    scope = replace(
        over_rows, aggregate=lambda aggregate: groups.aggregate(over_rows, aggregate), block=None, subquery=None
    )
    outer = frozenset(visible_leaves(draft.joined))
    if order is None:
        (item,) = read_items(scope, inner.select, inner.parts.select, partial(_settled, groups, outer))
        value = item.expr
    else:
        value = _first_in_order(over_rows, groups, inner.select, order)
    inner.with_scalars()
    check_levels(draft, inner.joined, inner.correlated)
    if _uses_inputs(value, outer):
        # Each aggregate is a value of its own, also of rows without partners, beside which the outer columns stand.
        values = {
            aggregate_name(number): _of_aggregate(draft, groups, aggregate, inner)
            for number, aggregate in enumerate(groups.aggregates)
        }
        return _with_values(value, values)
    return _added(draft, groups, value, inner.joined, inner.correlated, is_scalar=is_row and not takes_first)


def _first_in_order(scope: Scope, groups: Groups, select: exp.Select, order: exp.Order) -> Expr:
    """The value of the first row in the order of ORDER BY."""
    (item,) = select.expressions
    value = bind(scope, item.unalias())
    if value.type is None:
        raise untyped_null(scope.source.node(item))
    known = {item.alias.lower(): value} if item.alias else {}
    in_order = replace(scope, clause="ORDER BY", known=known)
    items = [Item(item.alias, value)]
    keys = [numbered(scope, node.this, items, "ORDER BY") or bind(in_order, node.this) for node in order.expressions]
    directions = tuple(map(direction_of, order.expressions))
    groups.aggregates.append(BoundAggregate(FIRST_IN_ORDER, (value, *keys), value.type, order=directions))
    return Ref(Column(aggregate_name(0), value.type), value.at)


def _settled(groups: Groups, outer: frozenset[int], expr: Expr) -> Expr:
    """An expression over aggregates, and over columns of the query around this one, which are constants here."""
    if isinstance(expr, Ref) and _uses_inputs(expr, outer):
        return expr
    if isinstance(expr, Call):
        return replace(expr, args=tuple(_settled(groups, outer, arg) for arg in expr.args))
    return groups.settle(expr)


def _uses_inputs(expr: Expr, inputs: frozenset[int]) -> bool:
    """Whether an expression over groups has columns of inputs, other than keys and aggregates."""
    fields = [parse_field(name) for name in columns_in(expr)]
    return any(field.input in inputs and not field.column.startswith("_") for field in fields)


def _of_aggregate(draft: Draft, groups: Groups, aggregate: BoundAggregate, inner: Draft) -> Expr:
    """The value of an aggregate by itself."""
    alone = Groups(groups.source, [], frozenset(), aggregates=[aggregate])
    return _added(draft, alone, Ref(Column(aggregate_name(0), aggregate.type), 0), inner.joined, inner.correlated)


def _with_values(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """An expression in which aggregates are replaced by values."""
    match expr:
        case Ref(column) if column.name in values:
            return values[column.name]
        case Call():
            return replace(expr, args=tuple(_with_values(arg, values) for arg in expr.args))
        case _:
            return expr


def _inner(draft: Draft, block: exp.Expression, parsing: Passes) -> tuple[Draft, bool]:
    """A subquery whose inputs become inputs of the query around it, and whether it has LIMIT 1."""
    tokens = draft.blocks[block.name]
    if cut_with(draft.source, tokens)[0] or cut_set_operations(draft.source, tokens)[0] is not None:
        raise _unsupported(draft, block)
    context = replace(draft.context, window=draft.window)
    inner = Draft(context, tokens, draft.conjuncts, replace(draft.scope, block=None, subquery=None))
    for run_pass in parsing:
        run_pass(inner)
    items = inner.select.expressions
    takes_first = limit_of(inner) == 1
    if takes_first:
        inner.select.set("limit", None)
    if has_own_result(inner) or inner.select.args.get("distinct"):
        raise _unsupported(draft, block)
    if len(items) != 1 or items[0].is_star:
        raise SqlError(
            f"a query that is used as a value must have one column, got {'*' if items[0].is_star else len(items)}",
            location=draft.source.location(offset_of(block)),
        )
    return inner, takes_first


def _added(
    draft: Draft,
    groups: Groups,
    value: Expr,
    right: JoinTree,
    conjuncts: list[Expr],
    *,
    exists: bool = False,
    is_scalar: bool = False,
) -> Expr:
    """Add the value of a group of partners to the columns of the query around it."""
    output = Output("value", expression_of(draft.source, value))
    query = Query(draft.source.text, (), (output,), grouping=groups.grouping(None))
    check_inputs(draft, right, query.columns, value.at)
    return draft.add_lateral(query, right, conjuncts, exists=exists, is_scalar=is_scalar)


def _unsupported(draft: Draft, block: exp.Expression) -> Unsupported:
    return Unsupported(
        "this query must be a plain SELECT … FROM … WHERE, because it is computed for each row of the query around it",
        hint="join the relations instead",
        location=draft.source.node(block),
    )
