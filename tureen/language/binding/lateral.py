"""Lateral subqueries: values that a query computes for each row of the query around it, whose columns it may use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from tureen.errors import SqlError, Unsupported
from tureen.language.binding.aggregate_types import BoundAggregate, where_true
from tureen.language.binding.aggregates import has_aggregate
from tureen.language.binding.bind import bind, compare
from tureen.language.binding.draft import Draft
from tureen.language.binding.grouping import Groups
from tureen.language.binding.outputs import read_items
from tureen.language.binding.scope import Scope
from tureen.language.binding.subqueries import OWN_RESULT, Passes, check_levels
from tureen.language.duckdb.expressions import expression_of
from tureen.language.source import offset_of
from tureen.language.text.blocks import cut_set_operations, cut_with
from tureen.language.tree import BIGINT, BOOLEAN, INT, Call, Const, Expr, Ref
from tureen.query import Output, Query, aggregate_name
from tureen.schema import Column

ValueOfGroup = Callable[[Groups, Scope], Expr]
"""The value of a group of partners; its aggregates are added to the groups."""


def bind_lateral(draft: Draft, node: exp.Expression, parsing: Passes, joining: Passes) -> Expr:
    """The value of EXISTS, of IN with a query, or of a query in parentheses.

    `parsing` and `joining` are the passes up to the tree of a query, and up to its WHERE.
    """
    match node:
        case exp.Exists():
            inner = _inner(draft, node.this, parsing)
            if any(map(has_aggregate, inner.select.expressions)):
                raise _unsupported(draft, node.this)
            return _joined(draft, inner, joining, _exists)
        case exp.In():
            value = bind(draft.scope, node.this)
            inner = _inner(draft, node.expressions[0], parsing)
            _check_single_column(draft, inner, node)
            return _joined(draft, inner, joining, lambda groups, scope: _is_in(inner, groups, scope, value))
    inner = _inner(draft, node, parsing)
    _check_single_column(draft, inner, node)
    is_row = not has_aggregate(inner.select.expressions[0])
    if is_row:
        if inner.select.args.get("distinct"):
            raise _unsupported(draft, node)
        # The value of the only partner; that there is only one is checked when it is computed.
        inner.select.set("expressions", [exp.First(this=each.unalias()) for each in inner.select.expressions])
    return _joined(draft, inner, joining, lambda groups, scope: _item(inner, groups, scope), is_scalar=is_row)


def _inner(draft: Draft, block: exp.Expression, parsing: Passes) -> Draft:
    """A subquery whose inputs become inputs of the query around it."""
    tokens = draft.blocks[block.name]
    if cut_with(draft.source, tokens)[0] or cut_set_operations(draft.source, tokens)[0] is not None:
        raise _unsupported(draft, block)
    context = replace(draft.context, window=draft.window)
    inner = Draft(context, tokens, draft.conjuncts, replace(draft.scope, block=None, subquery=None))
    for run_pass in parsing:
        run_pass(inner)
    if any(inner.select.args.get(key) for key in OWN_RESULT):
        raise _unsupported(draft, block)
    return inner


def _joined(draft: Draft, inner: Draft, joining: Passes, value_of: ValueOfGroup, *, is_scalar: bool = False) -> Expr:
    """Join a subquery, and return the value that it has for each row: `value_of` the group of its partners."""
    for run_pass in joining:
        run_pass(inner)
    inner.with_scalars()
    check_levels(draft, inner.joined, inner.correlated)
    groups = Groups(inner.source, [], frozenset())
    value = value_of(groups, replace(inner.scope, clause="the select list", block=None, subquery=None))
    output = Output("value", expression_of(inner.source, value))
    query = Query(inner.source.text, (), (output,), grouping=groups.grouping(None))
    return draft.add_lateral(query, inner.joined, inner.correlated, is_scalar=is_scalar)


def _exists(groups: Groups, scope: Scope) -> Expr:
    return compare(scope, ">", _count(groups, None), Const(0, INT, 0))


def _is_in(inner: Draft, groups: Groups, scope: Scope, value: Expr) -> Expr:
    """TRUE if a partner has the value; unknown if none has, but the comparison with one is unknown."""
    (item,) = read_items(scope, inner.select, inner.parts.select, lambda expr: expr)
    same = compare(scope, "=", value, item.expr)
    unknown = Call("isnull", (same,), BOOLEAN, value.at)
    some_same, some_unknown = (
        compare(scope, ">", _count(groups, condition), Const(0, INT, value.at)) for condition in (same, unknown)
    )
    true, false, null = (Const(truth, BOOLEAN, value.at) for truth in (1, 0, None))
    return Call("case", (some_same, true, some_unknown, null, false), BOOLEAN, value.at)


def _item(inner: Draft, groups: Groups, scope: Scope) -> Expr:
    """The item of the select list, over the group of partners."""
    scope = replace(scope, aggregate=lambda node: groups.aggregate(scope, node))
    (item,) = read_items(scope, inner.select, inner.parts.select, groups.settle)
    return item.expr


def _count(groups: Groups, condition: Expr | None) -> Expr:
    """The number of partners, or of those that satisfy a condition."""
    arguments = () if condition is None else (where_true(condition, Const(1, INT, condition.at)),)
    groups.aggregates.append(BoundAggregate("count", arguments, BIGINT))
    return Ref(Column(aggregate_name(len(groups.aggregates) - 1), BIGINT), 0)


def _check_single_column(draft: Draft, inner: Draft, node: exp.Expression) -> None:
    items = inner.select.expressions
    if len(items) != 1 or items[0].is_star:
        raise SqlError(
            f"a query that is used as a value must have one column, got {'*' if items[0].is_star else len(items)}",
            location=draft.source.location(offset_of(node)),
        )


def _unsupported(draft: Draft, block: exp.Expression) -> Unsupported:
    return Unsupported(
        "this query must be a plain SELECT … FROM … WHERE, because it is computed for each row of the query around it",
        hint="join the relations instead",
        location=draft.source.node(block),
    )
