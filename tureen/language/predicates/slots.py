"""Slots: join factors that compare a column of a stream with a parameter of a template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tureen.join import JoinCompare, JoinFactor
from tureen.predicate import FLIPPED
from tureen.query import VALUES_INPUT


@dataclass(frozen=True, slots=True)
class Slot:
    """A comparison of a stream's column with a parameter."""

    column: str
    op: str
    parameter: str


def slots_of(joins: Sequence[JoinFactor]) -> tuple[Slot, ...] | None:
    """The join factors of a template as slots; None where one of them is anything but a plain comparison.

    >>> from tureen.join import Field
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
