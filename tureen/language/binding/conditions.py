"""Conditions: WHERE cut into conjuncts, each for the input that it concerns, for a join, or for the invocation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tureen.language.binding.scope import Relation, Scope
from tureen.language.duckdb.expressions import expression_of
from tureen.language.predicates.factors import holds
from tureen.language.predicates.normal_form import clause_of
from tureen.language.tree import BOOLEAN, Call, Const, Expr, Ref, columns_in
from tureen.predicate import AllOf, Clause, Compare, Predicate
from tureen.query import NOW, Expression, JoinCompare, JoinFactor, JoinOpaque, parse_field
from tureen.schema import Column, Schema


@dataclass(frozen=True)
class Conditions:
    """What WHERE asks for: of each input alone, of combinations of them, and at NOW."""

    clauses: tuple[Clause, ...]
    joins: tuple[JoinFactor, ...] = ()
    at_now: Expression | None = None


def split_conditions(scope: Scope, condition: Expr | None) -> Conditions:
    """Each conjunct of a bound condition where it is evaluated."""
    alone: list[list[Expr]] = [[] for _ in scope.relations]
    joins: list[JoinFactor] = []
    moving: list[Expr] = []
    for conjunct in [] if condition is None else conjuncts(condition):
        columns = columns_in(conjunct)
        inputs = {parse_field(name).input for name in columns}
        if NOW in columns:
            moving.append(conjunct)
        elif len(inputs) > 1:
            joins += _join_factors(scope, conjunct)
        else:
            alone[min(inputs, default=0)].append(conjunct)
    clauses = [_clause(relation, parts) for relation, parts in zip(scope.relations, alone, strict=True)]
    at_now = expression_of(scope.source, _all(moving)) if moving else None
    return Conditions(tuple(clauses), tuple(joins), at_now)


def conjuncts(condition: Expr) -> list[Expr]:
    """The parts of a conjunction."""
    if isinstance(condition, Call) and condition.op == "and":
        return [conjunct for part in condition.args for conjunct in conjuncts(part)]
    return [condition]


def _all(parts: Sequence[Expr]) -> Expr:
    if not parts:
        return Const(1, BOOLEAN, 0)
    return parts[0] if len(parts) == 1 else Call("and", tuple(parts), BOOLEAN, parts[0].at)


def _clause(relation: Relation, parts: Sequence[Expr]) -> Clause:
    if not parts:
        return ()
    condition = _own_columns(_all(parts)) if relation.number else _all(parts)
    return clause_of(relation.schema, holds(relation.schema, condition))


def _own_columns(expr: Expr) -> Expr:
    """An expression over one input, with the input's own names of its columns."""
    if isinstance(expr, Ref):
        return replace(expr, column=Column(parse_field(expr.column.name).column, expr.column.type))
    return replace(expr, args=tuple(map(_own_columns, expr.args))) if isinstance(expr, Call) else expr


def _join_factors(scope: Scope, conjunct: Expr) -> list[JoinFactor]:
    columns = [relation.ref(column, 0).column for relation in scope.relations for column in relation.schema.columns]
    predicate = holds(Schema(tuple(columns)), conjunct)
    parts = predicate.parts if isinstance(predicate, AllOf) else (predicate,)
    comparisons = [_comparison(part) for part in parts]
    if all(comparisons):
        return [comparison for comparison in comparisons if comparison is not None]
    expression = expression_of(scope.source, conjunct)
    return [JoinOpaque(expression.sql, tuple(map(parse_field, expression.columns)))]


def _comparison(predicate: Predicate) -> JoinCompare | None:
    """A comparison of columns of two inputs; None where a predicate is anything else."""
    if not isinstance(predicate, Compare):
        return None
    left, right = parse_field(predicate.left), parse_field(predicate.right)
    if left.input == right.input:
        return None
    return JoinCompare(left, predicate.op, right, predicate.offset, predicate.domain, predicate.limit)
