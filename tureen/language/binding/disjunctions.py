"""Disjunctions: what all branches have in common, and what they require of a single input."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from tureen.join import parse_field
from tureen.language.duckdb.raising import can_raise
from tureen.language.tree import BOOLEAN, Call, Const, Expr, IntervalConst, children, columns_in
from tureen.query import NOW


def inputs_of(expr: Expr) -> frozenset[int]:
    """The inputs that an expression reads."""
    return frozenset(parse_field(name).input for name in columns_in(expr) if name != NOW)


def conjunct_nodes(node: exp.Expression) -> list[exp.Expression]:
    """The operands of a chain of AND, before they are bound."""
    nodes: list[exp.Expression] = []
    pending = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, exp.And):
            pending += [current.expression, current.this]
        else:
            nodes.append(current)
    return nodes


def conjuncts_of(condition: Expr) -> list[Expr]:
    """The parts of a conjunction; `a AND b OR a AND c` is the conjunction of `a` and `b OR c`.

    Only conditions without constants are common to branches: which conditions a query has must not depend on the values
    of its constants.
    """
    if not isinstance(condition, Call) or condition.op not in ("and", "or"):
        return [condition]
    if condition.op == "and":
        return [conjunct for part in condition.args for conjunct in conjuncts_of(part)]
    branches = [conjuncts_of(branch) for branch in condition.args]
    common = [part for part in branches[0] if not _has_constant(part) and all(part in rest for rest in branches[1:])]
    if not common:
        return [condition]
    rests = [[part for part in branch if part not in common] for branch in branches]
    # A branch without a rest holds wherever the common part does.
    return [*common, _any_of([all_of(rest) for rest in rests])] if all(rests) else common


def all_of(parts: Sequence[Expr]) -> Expr:
    """The conjunction of conditions."""
    if not parts:
        return Const(1, BOOLEAN, 0)
    return parts[0] if len(parts) == 1 else Call("and", tuple(parts), BOOLEAN, parts[0].at)


def required_of(disjunction: Expr, number: int) -> Expr | None:
    """What a disjunction requires of one of its inputs; None if a branch requires nothing of it.

    `a.x = 1 AND b.y = 2 OR a.x = 3 AND b.y = 4` requires `a.x = 1 OR a.x = 3` of `a`.
    """
    if not isinstance(disjunction, Call) or disjunction.op != "or":
        return None
    parts: list[Expr] = []
    for branch in disjunction.args:
        alone = [part for part in conjuncts_of(branch) if _reads_only(part, number) and not can_raise(part)]
        if not alone:
            return None
        parts.append(all_of(alone))
    return _any_of(parts)


def _any_of(parts: Sequence[Expr]) -> Expr:
    return Call("or", tuple(parts), BOOLEAN, parts[0].at)


def _reads_only(expr: Expr, number: int) -> bool:
    return NOW not in columns_in(expr) and inputs_of(expr) == {number}


def _has_constant(expr: Expr) -> bool:
    return isinstance(expr, (Const, IntervalConst)) or any(map(_has_constant, children(expr)))
