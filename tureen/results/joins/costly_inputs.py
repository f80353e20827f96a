"""Join inputs whose clauses call user functions: evaluated before the join, or after it for tuples with a partner.

A call that raises counts only if its tuple is in a joined row that satisfies everything else. So an answer does not
depend on the decision: where a call raises before the join, the factors are evaluated after it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tureen.eddy.costly_factors import JoinPlacement, place_factor
from tureen.join import Field, InnerJoin, JoinFactor, JoinOpaque
from tureen.matching import profile_of
from tureen.pot.registered import RegisteredInput
from tureen.predicate import Factor, Opaque
from tureen.query import RelationKind
from tureen.results.joins.join_ready import ReadyJoin

MOST_JOINS = 10_000
"""The maximum number of joins whose fan-out is remembered."""


@dataclass
class FanOuts:
    """The observed joined rows per tuple of an input, by the join and the number of the input."""

    _counts: dict[tuple[InnerJoin, tuple[str, ...], int], tuple[int, int]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, ready: ReadyJoin, number: int, tuples: int, joined: int) -> None:
        """Count an evaluation."""
        with self._lock:
            if len(self._counts) >= MOST_JOINS:
                self._counts.clear()
            # The last evaluations have half of the weight.
            before = self._counts.get(_key(ready, number), (0, 0))
            self._counts[_key(ready, number)] = before[0] // 2 + tuples, before[1] // 2 + joined

    def of(self, ready: ReadyJoin, number: int) -> float | None:
        """The joined rows per tuple; None if it was not observed."""
        tuples, joined = self._counts.get(_key(ready, number), (0, 0))
        return joined / tuples if tuples else None


fan_outs = FanOuts()


def _key(ready: ReadyJoin, number: int) -> tuple[InnerJoin, tuple[str, ...], int]:
    source = ready.query.source
    assert isinstance(source, InnerJoin)
    return source, tuple(entry.relation for entry in ready.query.inputs), number


def costly_inputs(ready: ReadyJoin) -> list[int]:
    """The inputs of an inner join whose clauses call functions; within an OR, such calls stay where they are."""
    source = ready.query.source
    if not isinstance(source, InnerJoin) or len(source.sides) < 2:
        return []
    return [
        side
        for side in source.sides
        if isinstance(side, int)
        and ready.inputs[side].leaf is not None
        and _divided(ready.inputs[side].input.clause)[0]
    ]


def placements_of(
    ready: ReadyJoin, numbers: Sequence[int], leaves: Sequence[RegisteredInput]
) -> dict[int, JoinPlacement]:
    """Where the factors with functions of each of these inputs are evaluated, unless they were at arrival."""
    decisions = {}
    for number in numbers:
        leaf = ready.inputs[number].leaf
        if leaf is None or leaves[leaf].number is not None:
            continue
        costly, _ = _divided(ready.inputs[number].input.clause)
        profile = min((profile_of(factor) for factor in costly), key=lambda profile: profile.pass_rate)
        decisions[number] = place_factor(profile, fan_outs.of(ready, number))
    return decisions


def after_join(ready: ReadyJoin, numbers: Sequence[int]) -> ReadyJoin:
    """The same join, with the factors with functions of these inputs evaluated after it."""
    source = ready.query.source
    assert isinstance(source, InnerJoin)
    inputs, factors = list(ready.inputs), list[JoinFactor](source.factors)
    for number in numbers:
        entry = inputs[number]
        costly, cheap = _divided(entry.input.clause)
        assert entry.selector is not None
        is_stream = entry.input.kind is RelationKind.STREAM
        selector = entry.selector.of_clause(cheap) if cheap or is_stream else None
        inputs[number] = replace(entry, input=replace(entry.input, clause=cheap), selector=selector)
        factors += [
            JoinOpaque(
                factor.sql, tuple(Field(number, name) for name in factor.columns), is_last=True, text=factor.text
            )
            for factor in costly
        ]
    query = replace(ready.query, source=InnerJoin(source.sides, tuple(factors)))
    return replace(ready, query=query, inputs=tuple(inputs))


def _divided(clause: Sequence[Factor]) -> tuple[list[Opaque], tuple[Factor, ...]]:
    costly = [factor for factor in clause if isinstance(factor, Opaque) and factor.functions]
    return costly, tuple(factor for factor in clause if factor not in costly)


def note_fan_outs(ready: ReadyJoin, numbers: Sequence[int], tuples: Mapping[int, int], joined: int) -> None:
    """Observe how many rows a join has per tuple of each of these inputs."""
    for number in numbers:
        fan_outs.add(ready, number, tuples[number], joined)
