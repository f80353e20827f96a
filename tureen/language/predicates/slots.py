"""Slots: the comparisons of a clause between a column of the stream and a column of parameter values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tureen.language.predicates.comparisons import FLIPPED
from tureen.query import VALUES_INPUT, JoinCompare, JoinFactor


@dataclass(frozen=True, slots=True)
class Slot:
    """A comparison of a column of the stream with a column of values."""

    column: str
    op: str
    parameter: str


def slots_of(clause: Clause, values: Collection[str]) -> tuple[tuple[Slot, ...], Clause] | None:
    """The slots of a clause and its other factors; None if a factor uses the values in any other way.

    >>> from tureen.query import Field
    >>> slots_of((JoinCompare(Field(1, "k"), "<", Field(0, "key"), domain="string"),))
    (Slot(column='key', op='>', parameter='k'),)
    """
    slots: list[Slot] = []
    for factor in joins:
        if not isinstance(factor, JoinCompare) or factor.offset:
            return None
        if factor.left.input == VALUES_INPUT:
            slots.append(Slot(factor.right.column, FLIPPED[factor.op], factor.left.column))
        else:
            slots.append(Slot(factor.left.column, factor.op, factor.right.column))
    return tuple(slots)
