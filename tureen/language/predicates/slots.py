"""Slots: join factors that compare a column with a parameter of a template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tureen.join import JoinCompare, JoinFactor, field_name
from tureen.predicate import FLIPPED


@dataclass(frozen=True, slots=True)
class Slot:
    """A comparison of a column with a parameter."""

    column: str
    """Its name in the rows that queries are matched with; see `tureen.join.field_name`."""
    op: str
    parameter: str


def slots_of(factors: Sequence[JoinFactor], values: int) -> tuple[Slot, ...] | None:
    """Join factors with the input of VALUES as slots; None where one of them is anything but a plain comparison.

    >>> from tureen.join import Field
    >>> slots_of((JoinCompare(Field(2, "k"), "<", Field(1, "key"), domain="string"),), 2)
    (Slot(column='_1_key', op='>', parameter='k'),)
    """
    slots: list[Slot] = []
    for factor in factors:
        if not isinstance(factor, JoinCompare) or factor.offset:
            return None
        if factor.left.input == values:
            slots.append(Slot(field_name(factor.right), FLIPPED[factor.op], factor.left.column))
        else:
            slots.append(Slot(field_name(factor.left), factor.op, factor.right.column))
    return tuple(slots)
