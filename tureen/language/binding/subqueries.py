"""Subqueries in WHERE: EXISTS and IN become semi joins and anti joins with the relations of the subquery."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from sqlglot import exp
from sqlglot.tokens import Token

from tureen.errors import SqlError, Unsupported
from tureen.join import Join, JoinKind, JoinTree, parse_field, visible_leaves
from tureen.language.binding.aggregates import has_aggregate
from tureen.language.binding.bind import bind, compare
from tureen.language.binding.disjunctions import conjuncts_of
from tureen.language.binding.draft import Context, Draft
from tureen.language.binding.outputs import read_count, read_items
from tureen.language.binding.scope import Scope
from tureen.language.text.blocks import cut_set_operations, cut_with, is_block_name
from tureen.language.tree import BOOLEAN, Call, Expr, columns_in
from tureen.query import NOW

Passes = tuple[Callable[[Draft], None], ...]

_OWN_RESULT = ("group", "having", "limit", "offset", "qualify", "windows")
"""The clauses of a subquery that make its rows other than the rows of its FROM."""


def is_subquery(node: exp.Expression) -> bool:
    """Whether a condition is EXISTS or IN with a query, perhaps negated."""
    return _subquery(node) is not None


def join_subquery(draft: Draft, node: exp.Expression, parsing: Passes, joining: Passes) -> None:
    """Join the subquery of a condition; `parsing` and `joining` are the passes up to its tree, and up to its WHERE."""
    subquery = _subquery(node)
    assert subquery is not None
    condition, name, negated = subquery
    values = in_values(draft, condition) if isinstance(condition, exp.In) else None
    draft.with_scalars()
    right, conjuncts, items = bind_subquery(draft, draft.blocks[name], parsing, joining, with_items=values is not None)
    check_levels(draft, right, conjuncts)
    kind = JoinKind.ANTI if negated else JoinKind.SEMI
    if values is None:
        draft.joined = draft.conjuncts.join_on(kind, draft.joined, right, conjuncts)
        return
    same, unknown = in_comparisons(draft, condition, values, items)
    if not negated:
        parts = [part for comparison in same for part in conjuncts_of(comparison)]
        draft.joined = draft.conjuncts.join_on(kind, draft.joined, right, [*conjuncts, *parts])
        return
    # NOT IN is TRUE if every comparison is FALSE: none is TRUE, and none is unknown.
    for compared in (same, *unknown):
        factors = [factor for part in [*conjuncts, *compared] for factor in draft.conjuncts.factors(part)]
        draft.joined = Join(kind, draft.joined, right, tuple(factors))


def in_values(draft: Draft, node: exp.In) -> list[Expr]:
    """The value before IN, or the values of a row."""
    left = node.this.unnest()
    return [bind(draft.scope, value) for value in (left.expressions if isinstance(left, exp.Tuple) else [left])]


def in_comparisons(
    draft: Draft, node: exp.Expression, values: list[Expr], items: list[Expr]
) -> tuple[list[Expr], list[list[Expr]]]:
    """The conjuncts that are TRUE for an equal row of a query, and those for rows that may be equal, because of NULLs.

    Of the latter there are several lists, and each of them suffices.
    """
    if len(items) != len(values):
        raise SqlError(
            f"IN requires a query with {len(values) if len(values) > 1 else 'one'} "
            f"column{'s' if len(values) > 1 else ''}, got {len(items)}",
            location=draft.source.node(node),
        )
    pairs = list(zip(values, items, strict=True))
    same = [compare(draft.scope, "=", *pair) for pair in pairs]
    nulls = [[Call("isnull", (side,), BOOLEAN, side.at) for side in pair] for pair in pairs]
    if len(pairs) == 1:
        return same, [[is_null] for is_null in nulls[0]]
    maybe = [Call("or", (equal, *of_pair), BOOLEAN, equal.at) for equal, of_pair in zip(same, nulls, strict=True)]
    return same, [[*maybe]]


def check_levels(draft: Draft, right: JoinTree, conjuncts: list[Expr]) -> None:
    """Raise if a condition of a subquery uses columns of a query further out than the one directly around it."""
    for conjunct in conjuncts:
        check_inputs(draft, right, columns_in(conjunct), conjunct.at)


def check_inputs(draft: Draft, right: JoinTree, columns: Iterable[str], at: int) -> None:
    """Raise if columns belong neither to a subquery nor to the query directly around it."""
    known = {*visible_leaves(draft.joined), *visible_leaves(right)}
    if any(parse_field(name).input not in known for name in columns if name != NOW):
        raise Unsupported(
            "a subquery can only use columns of the query directly around it",
            hint="join the relations in FROM instead",
            location=draft.source.location(at),
        )


def _subquery(node: exp.Expression) -> tuple[exp.Expression, str, bool] | None:
    """The condition, the name of its block, and whether it is negated; None for any other condition."""
    negated = False
    while isinstance(node, exp.Paren | exp.Not):
        negated ^= isinstance(node, exp.Not)
        node = node.this
    if isinstance(node, exp.Exists):
        operand = node.this
    elif isinstance(node, exp.In) and len(node.expressions) == 1:
        operand = node.expressions[0]
    else:
        return None
    if not isinstance(operand, exp.Column) or not is_block_name(operand.name):
        return None
    return node, operand.name, negated


def bind_subquery(
    draft: Draft, tokens: list[Token], parsing: Passes, joining: Passes, *, with_items: bool
) -> tuple[JoinTree, list[Expr], list[Expr]]:
    """The rows of a subquery, the conditions between them and the outer rows, and its select list."""
    context = replace(draft.context, window=draft.window)
    inner = _plain_select(draft, context, tokens, parsing, with_items=with_items)
    if inner is None:
        return _joined_block(draft, context, tokens)
    for run_pass in joining:
        run_pass(inner)
    inner.with_scalars()
    scope = replace(inner.scope, clause="the select list", block=None)
    if not with_items:
        _check_names(scope, inner.select)
        return inner.joined, inner.correlated, []
    items = [item.expr for item in read_items(scope, inner.select, inner.parts.select, lambda expr: expr)]
    return inner.joined, inner.correlated, items


def _check_names(scope: Scope, select: exp.Select) -> None:
    """Raise for an unknown column in the select list of EXISTS, of which nothing else matters."""
    for item in select.expressions:
        for column in item.find_all(exp.Column):
            if not isinstance(column.this, exp.Star) and not is_block_name(column.name):
                scope.column(column)


def _plain_select(
    draft: Draft, context: Context, tokens: list[Token], parsing: Passes, *, with_items: bool
) -> Draft | None:
    """A subquery whose rows are those of its FROM; None for any other, whose answer has to be computed."""
    if cut_with(draft.source, tokens)[0] or cut_set_operations(draft.source, tokens)[0] is not None:
        return None
    inner = Draft(context, tokens, draft.conjuncts, draft.scope)
    for run_pass in parsing:
        run_pass(inner)
    select = inner.select
    if not with_items and limit_of(inner):
        # EXISTS asks whether there is a row.
        select.set("limit", None)
    if has_own_result(inner) or any(map(has_aggregate, select.expressions)):
        return None
    return inner


def limit_of(draft: Draft) -> int | None:
    """The number of rows after LIMIT; None without it, and with OFFSET."""
    return None if draft.select.args.get("offset") else read_count(Scope(draft.source, ()), draft.select, "limit")


def has_own_result(draft: Draft) -> bool:
    """Whether the rows of a query are other than those of its FROM that satisfy WHERE."""
    emits = draft.parts.partial is not None or draft.parts.final is not None
    return emits or draft.bracket_steps is not None or any(draft.select.args.get(key) for key in _OWN_RESULT)


def _joined_block(draft: Draft, context: Context, tokens: list[Token]) -> tuple[JoinTree, list[Expr], list[Expr]]:
    block = context.bind_block(replace(context, around=replace(draft.scope, block=None)), tokens)
    relation = draft.add_block(block)
    return relation.number, [], [*relation.refs]
