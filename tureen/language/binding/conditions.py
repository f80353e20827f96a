"""Conditions: WHERE and ON cut into conjuncts, each where it is evaluated: for one input, a join, or the invocation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from tureen.join import (
    Field,
    InnerJoin,
    Join,
    JoinCompare,
    JoinFactor,
    JoinKey,
    JoinKind,
    JoinOpaque,
    JoinTree,
    LateralJoin,
    leaves,
    parse_field,
    visible_leaves,
)
from tureen.language.binding.disjunctions import all_of, inputs_of, required_of
from tureen.language.binding.scope import Relation
from tureen.language.duckdb.expressions import expression_of
from tureen.language.predicates.factors import holds
from tureen.language.predicates.normal_form import clause_of
from tureen.language.source import Source
from tureen.language.tree import BOOLEAN, Call, Const, Expr, Ref, columns_in
from tureen.predicate import AllOf, AnyOf, Clause, Compare, IsNull, Like, Opaque, Predicate, Within
from tureen.query import NOW, Expression
from tureen.schema import Column, Kind, Schema

_PRESERVED_LEFT = frozenset({JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI, JoinKind.ASOF, JoinKind.ASOF_LEFT})
"""The joins whose left rows keep their values and are combined independently of each other."""


@dataclass(frozen=True)
class Conditions:
    """What a query asks of each input alone, how inputs are joined, and what it asks at NOW."""

    clauses: tuple[Clause, ...]
    source: JoinTree = 0
    at_now: Expression | None = None

    @property
    def joins(self) -> tuple[JoinFactor, ...]:
        """The conditions between inputs of an inner join."""
        return self.source.factors if isinstance(self.source, InnerJoin) else ()


@dataclass
class Conjuncts:
    """The conjuncts of a query, collected while its clauses are bound.

    The relations are those of the query and of its subqueries that are joined; a relation's number is its index.
    """

    source: Source
    relations: list[Relation]
    _alone: dict[int, list[Expr]] = field(default_factory=dict)
    _at_now: list[Expr] = field(default_factory=list)

    def keep_where(self, tree: JoinTree, conjuncts: Iterable[Expr], *, is_outermost: bool) -> JoinTree:
        """A join tree whose rows satisfy conjuncts of WHERE, or of ON of an inner join.

        In the outermost query, conditions that depend on NOW are evaluated after all joins.
        """
        factors: list[JoinFactor] = []
        for conjunct in conjuncts:
            if conjunct == _TRUE:
                continue
            inputs = inputs_of(conjunct)
            depends_on_now = NOW in columns_in(conjunct)
            if depends_on_now and is_outermost:
                self._at_now.append(conjunct)
                continue
            single = None if depends_on_now else self._single(tree, inputs)
            if single is not None:
                self._alone.setdefault(single, []).append(conjunct)
                continue
            for number in sorted(inputs) if not depends_on_now else ():
                required = required_of(conjunct, number)
                if required is not None and self._single(tree, frozenset({number})) is not None:
                    self._alone.setdefault(number, []).append(required)
            tree = _without_null_rows(tree, self._rejected(conjunct, inputs))
            single = None if depends_on_now else self._single(tree, inputs)
            if single is not None:
                self._alone.setdefault(single, []).append(conjunct)
            else:
                factors += self.factors(conjunct)
        return filtered(tree, factors)

    def join_on(self, kind: JoinKind, left: JoinTree, right: JoinTree, conjuncts: Iterable[Expr]) -> Join:
        """A join of two sides on conjuncts; those of one input of the right side become part of its clause."""
        factors: list[JoinFactor] = []
        for conjunct in conjuncts:
            inputs = inputs_of(conjunct)
            if conjunct == _TRUE:
                continue
            can_be_alone = inputs and kind is not JoinKind.FULL and NOW not in columns_in(conjunct)
            single = self._single(right, inputs) if can_be_alone else None
            if single is not None:
                self._alone.setdefault(single, []).append(conjunct)
            else:
                factors += self.factors(conjunct)
        return Join(kind, left, right, tuple(factors))

    def factors(self, conjunct: Expr) -> list[JoinFactor]:
        """A conjunct over joined rows: comparisons of two inputs where it is a conjunction of such, or else SQL."""
        expression = expression_of(self.source, conjunct)
        if NOW in expression.columns:
            return [_opaque(expression)]
        predicate = holds(self._schema(), conjunct)
        parts = predicate.parts if isinstance(predicate, AllOf) else (predicate,)
        comparisons = [_comparison(part) for part in parts]
        if comparisons and all(comparisons):
            return [comparison for comparison in comparisons if comparison is not None]
        return [replace(_opaque(expression), keys=self._keys(conjunct))]

    def _keys(self, conjunct: Expr) -> tuple[JoinKey, JoinKey] | None:
        """The sides of an equality of expressions over different inputs."""
        if not isinstance(conjunct, Call) or conjunct.op != "=":
            return None
        of_left, of_right = map(inputs_of, conjunct.args)
        if not of_left or not of_right or of_left & of_right:
            return None
        left, right = (expression_of(self.source, side) for side in conjunct.args)
        kinds = {left.type.kind, right.type.kind}
        is_text = Kind.STRING in kinds
        if is_text and len(kinds) > 1:
            return None
        return JoinKey(left.sql, _fields(left), is_text), JoinKey(right.sql, _fields(right), is_text)

    def finish(self, source: JoinTree) -> Conditions:
        """The conditions of the whole query, whose rows are joined by `source`."""
        clauses = tuple(clause_of_input(relation, self._alone.get(relation.number, [])) for relation in self.relations)
        at_now = expression_of(self.source, all_of(self._at_now)) if self._at_now else None
        return Conditions(clauses, source, at_now)

    def _single(self, tree: JoinTree, inputs: frozenset[int]) -> int | None:
        """The input whose clause a conjunct can be part of; None if it concerns several, or rows of NULLs too."""
        if len(inputs) > 1:
            return None
        candidates = inputs or frozenset(leaves(tree))
        return next((number for number in sorted(candidates) if _is_preserved(tree, number)), None)

    def _rejected(self, conjunct: Expr, inputs: frozenset[int]) -> frozenset[int]:
        """The inputs whose rows of NULLs a conjunct excludes."""
        rejected = _null_rejecting(holds(self._schema(), conjunct))
        return frozenset(parse_field(name).input for name in rejected) & inputs

    def _schema(self) -> Schema:
        return Schema(tuple(ref.column for relation in self.relations for ref in relation.refs))


def filtered(tree: JoinTree, factors: Sequence[JoinFactor]) -> JoinTree:
    """The rows of a join tree that satisfy factors."""
    if not factors:
        return tree
    if isinstance(tree, InnerJoin):
        return InnerJoin(tree.sides, (*tree.factors, *factors))
    return InnerJoin((tree,), tuple(factors))


def inner_join(left: JoinTree, right: JoinTree) -> InnerJoin:
    """All combinations of two sides, whose own inner joins become part of it."""
    sides: list[JoinTree] = []
    factors: list[JoinFactor] = []
    for side in (left, right):
        if isinstance(side, InnerJoin):
            sides += side.sides
            factors += side.factors
        else:
            sides.append(side)
    return InnerJoin(tuple(sides), tuple(factors))


def _is_preserved(tree: JoinTree, number: int) -> bool:
    """Whether a filter of the joined rows by one input may be applied to that input before joining."""
    match tree:
        case InnerJoin(sides):
            return any(_is_preserved(side, number) for side in sides)
        case Join(kind, left, _):
            return kind in _PRESERVED_LEFT and _is_preserved(left, number)
        case LateralJoin(left):
            return _is_preserved(left, number)
        case _:
            return tree == number


def _without_null_rows(tree: JoinTree, rejected: frozenset[int]) -> JoinTree:
    """The same joins, if rows with NULLs for the rejected inputs are filtered out anyway: outer joins become inner."""
    if not rejected:
        return tree
    match tree:
        case InnerJoin(sides, factors):
            joined: JoinTree = _without_null_rows(sides[0], rejected)
            for side in sides[1:]:
                joined = inner_join(joined, _without_null_rows(side, rejected))
            return filtered(joined, factors)
        case Join(JoinKind.LEFT, left, right, factors):
            left = _without_null_rows(left, rejected)
            if rejected.isdisjoint(visible_leaves(right)):
                return replace(tree, left=left)
            return filtered(inner_join(left, _without_null_rows(right, rejected)), factors)
        case Join(JoinKind.FULL, left, right, factors):
            keeps_left = rejected.isdisjoint(visible_leaves(right))
            keeps_right = rejected.isdisjoint(visible_leaves(left))
            if keeps_left and keeps_right:
                return tree
            if keeps_left:
                return Join(JoinKind.LEFT, _without_null_rows(left, rejected), right, factors)
            if keeps_right:
                return Join(JoinKind.LEFT, _without_null_rows(right, rejected), left, factors)
            return filtered(
                inner_join(_without_null_rows(left, rejected), _without_null_rows(right, rejected)), factors
            )
        case Join(_, left) | LateralJoin(left):
            return replace(tree, left=_without_null_rows(left, rejected))
        case _:
            return tree


def _null_rejecting(predicate: Predicate) -> frozenset[str]:
    """Columns whose NULL makes a predicate not TRUE; perhaps not all of them."""
    match predicate:
        case AllOf(parts):
            return frozenset().union(*map(_null_rejecting, parts))
        case AnyOf(parts):
            first, *others = [_null_rejecting(part) for part in parts] or [frozenset()]
            return first.intersection(*others)
        case Within(column) | Like(column):
            return frozenset({column})
        case Compare(left, _, right):
            return frozenset({left, right})
        case IsNull() | Opaque():
            return frozenset()


def clause_of_input(relation: Relation, parts: Sequence[Expr]) -> Clause:
    """The clause of one input that conjuncts over it become, with the input's own names of its columns."""
    if not parts:
        return ()
    condition = _own_columns(all_of(parts)) if relation.number else all_of(parts)
    schema = Schema(
        tuple(Column(parse_field(ref.column.name).column, ref.column.type) for ref in relation.refs),
        relation.schema.time,
    )
    return clause_of(schema, holds(schema, condition))


def _own_columns(expr: Expr) -> Expr:
    """An expression over one input, with the input's own names of its columns."""
    if isinstance(expr, Ref):
        return replace(expr, column=Column(parse_field(expr.column.name).column, expr.column.type))
    return replace(expr, args=tuple(map(_own_columns, expr.args))) if isinstance(expr, Call) else expr


def _opaque(expression: Expression) -> JoinOpaque:
    return JoinOpaque(expression.sql, _fields(expression), NOW in expression.columns, text=expression.text)


def _fields(expression: Expression) -> tuple[Field, ...]:
    return tuple(parse_field(name) for name in expression.columns if name != NOW)


def _comparison(predicate: Predicate) -> JoinCompare | None:
    """A comparison of columns of two inputs; None where a predicate is anything else."""
    if not isinstance(predicate, Compare):
        return None
    left, right = parse_field(predicate.left), parse_field(predicate.right)
    if left.input == right.input:
        return None
    return JoinCompare(left, predicate.op, right, predicate.offset, predicate.domain, predicate.limit)


_TRUE = Const(1, BOOLEAN, 0)
