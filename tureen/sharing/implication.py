"""Whether one clause implies another: every tuple that satisfies the first satisfies the second.

A clause P implies Q if for each factor f of Q, `P and not f` cannot hold. Such a formula is divided into cases, each a
conjunction of leaves (`conjunction.py`), until all are contradictory or a case can hold. Clauses are in the normal form
of `tureen.predicate`, in which a predicate is satisfied or not: so NOT of `v < 3` is `v IS NULL OR v >= 3`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

from tureen.language.predicates.intervals import complement, domain_of
from tureen.predicate import (
    EVERYTHING,
    AllOf,
    AnyOf,
    Clause,
    Compare,
    IsNull,
    Like,
    Opaque,
    Predicate,
    Within,
)
from tureen.schema import Schema
from tureen.sharing.conjunction import Conjunction, Leaf, Negated, NotTrue, Satisfiability

MAX_CASES = 256
"""How many conjunctions are checked for one factor, before the answer is that nothing is known."""

_NEGATED = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


class Implication(Enum):
    """Whether a clause implies another; UNKNOWN if these rules do not tell."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class _Both:
    """All parts hold."""

    parts: tuple[_Formula, ...]


@dataclass(frozen=True, slots=True)
class _Either:
    """At least one part holds."""

    parts: tuple[_Formula, ...]


_Formula = Leaf | AllOf | AnyOf | _Both | _Either


class _TooManyCases(Exception):
    """More conjunctions than `MAX_CASES`."""


def implies(schema: Schema, premise: Clause, conclusion: Clause) -> Implication:
    """Whether every tuple that satisfies the premise satisfies the conclusion.

    >>> from tureen.predicate import Interval
    >>> schema = Schema.parse("a INT, b INT")
    >>> below = (Compare("a", "<", "b"), Within("b", (Interval(None, 5),)))
    >>> implies(schema, below, (Within("a", (Interval(None, 4),)),))
    <Implication.YES: 'yes'>
    >>> implies(schema, below, (Within("a", (Interval(None, 3),)),))
    <Implication.NO: 'no'>
    """
    return Premise(schema, premise).implies(conclusion)


class Premise:
    """A clause whose implications are asked for many times: each factor is decided once."""

    def __init__(self, schema: Schema, clause: Clause) -> None:
        self.schema = schema
        self.clause = clause
        self._decided: dict[Predicate, Implication] = dict.fromkeys(clause, Implication.YES)

    def implies(self, conclusion: Clause) -> Implication:
        """Whether every tuple that satisfies this clause satisfies the conclusion."""
        verdicts = {self._implies_factor(factor) for factor in conclusion}
        if Implication.NO in verdicts:
            return Implication.NO
        return Implication.UNKNOWN if Implication.UNKNOWN in verdicts else Implication.YES

    @cached_property
    def cases(self) -> list[Conjunction] | None:
        """Conjunctions of which every tuple that satisfies the clause satisfies one; None if there are too many."""
        try:
            return list(_cases(self.schema, [], self.clause, _Budget()))
        except _TooManyCases:
            return None

    def _implies_factor(self, factor: Predicate) -> Implication:
        verdict = self._decided.get(factor)
        if verdict is None:
            verdict = Implication.YES if self._is_within(factor) else self._refute(factor)
            self._decided[factor] = verdict
        return verdict

    def _is_within(self, factor: Predicate) -> bool:
        """Whether the ranges of a column tell that a factor is implied; most factors need no more."""
        if not isinstance(factor, Within) or self.cases is None:
            return False
        return all(case.is_within(factor) for case in self.cases)

    def _refute(self, factor: Predicate) -> Implication:
        outcome = _search(self.schema, (*self.clause, _negation(self.schema, factor)))
        return {
            Satisfiability.NEVER: Implication.YES,
            Satisfiability.POSSIBLE: Implication.NO,
            Satisfiability.UNKNOWN: Implication.UNKNOWN,
        }[outcome]


def satisfiable(schema: Schema, clause: Clause) -> Satisfiability:
    """Whether a tuple can satisfy a clause."""
    return _search(schema, clause)


def minimal_clause(schema: Schema, clause: Clause) -> Clause:
    """The clause without the factors that follow from the others.

    >>> from tureen.predicate import Interval
    >>> schema = Schema.parse("a INT, b INT")
    >>> clause = (Compare("a", "<=", "b"), Within("a", (Interval(3),)), Within("b", (Interval(1),)))
    >>> minimal_clause(schema, clause) == clause[:2]
    True
    """
    kept = list(clause)
    for factor in clause:
        rest = tuple(part for part in kept if part is not factor)
        if implies(schema, rest, (factor,)) is Implication.YES:
            kept.remove(factor)
    return tuple(kept)


class _Budget:
    def __init__(self) -> None:
        self._left = MAX_CASES

    def spend(self) -> None:
        """Count a conjunction; raises if there were too many."""
        self._left -= 1
        if self._left < 0:
            raise _TooManyCases


def _search(schema: Schema, parts: Sequence[_Formula]) -> Satisfiability:
    outcome = Satisfiability.NEVER
    try:
        for case in _cases(schema, [], parts, _Budget()):
            if case.satisfiability is Satisfiability.POSSIBLE:
                return Satisfiability.POSSIBLE
            outcome = Satisfiability.UNKNOWN
    except _TooManyCases:
        return Satisfiability.UNKNOWN
    return outcome


def _cases(schema: Schema, leaves: list[Leaf], parts: Sequence[_Formula], budget: _Budget) -> Iterator[Conjunction]:
    """The conjunctions that are not contradictory, of which every solution satisfies one."""
    leaves, choices = _flatten(leaves, parts)
    budget.spend()
    case = Conjunction(schema, leaves)
    if case.satisfiability is Satisfiability.NEVER:
        return
    if not choices:
        choices = [case.choice()]
        if not choices[0]:
            yield case
            return
    choices.sort(key=len)
    for part in choices[0]:
        yield from _cases(schema, leaves, [part, *map(_Either, choices[1:])], budget)


def _flatten(leaves: list[Leaf], parts: Sequence[_Formula]) -> tuple[list[Leaf], list[tuple[_Formula, ...]]]:
    """Leaves that all hold, and tuples of formulas of each of which at least one holds."""
    flat = list(leaves)
    choices: list[tuple[_Formula, ...]] = []
    pending = list(parts)
    while pending:
        part = pending.pop()
        if isinstance(part, AllOf | _Both):
            pending.extend(part.parts)
        elif isinstance(part, AnyOf | _Either):
            if len(part.parts) == 1:
                pending.append(part.parts[0])
            else:
                choices.append(part.parts)
        elif isinstance(part, Compare) and part.op == "<>":
            choices.append((replace(part, op="<"), replace(part, op=">")))
        elif isinstance(part, Negated) and part.compare.op == "<>":
            choices.append(tuple(Negated(replace(part.compare, op=op)) for op in "<>"))
        else:
            flat.append(part)
    return flat, choices


def _negation(schema: Schema, predicate: Predicate) -> _Formula:
    """The formula that holds where a predicate is not satisfied."""
    match predicate:
        case AllOf(parts):
            return _Either(tuple(_negation(schema, part) for part in parts))
        case AnyOf(parts):
            return _Both(tuple(_negation(schema, part) for part in parts))
        case Within(name, intervals):
            column = schema.find(name)
            assert column is not None
            outside = complement(domain_of(column.type), intervals)
            return _Either((IsNull(name), Within(name, outside)))
        case IsNull(name):
            return Within(name, (EVERYTHING,))
        case Like(name):
            return _Either((IsNull(name), replace(predicate, negated=not predicate.negated)))
        case Compare(left, op, right):
            opposite = Negated(replace(predicate, op=_NEGATED[op]))
            return _Either((IsNull(left), IsNull(right), opposite))
        case Opaque():
            return NotTrue(predicate)
