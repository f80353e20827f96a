"""Slots: where a clause compares a column of the stream with a column that stands for constants."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tureen.language.predicates.comparisons import FLIPPED
from tureen.predicate import Clause, Compare, Factor, columns_of


@dataclass(frozen=True, slots=True)
class Slot:
    """A comparison of a stream's column with a column of values."""

    column: str
    op: str
    values: str


def slots_of(clause: Clause, values: Collection[str]) -> tuple[tuple[Slot, ...], Clause] | None:
    """The slots of a clause and its other factors; None where some factor looks at values in another way.

    >>> slots_of((Compare("_p_k", "=", "key", domain="string"),), {"_p_k"})
    ((Slot(column='key', op='=', values='_p_k'),), ())
    """
    slots: list[Slot] = []
    fixed: list[Factor] = []
    for factor in clause:
        used = columns_of(factor) & set(values)
        if not used:
            fixed.append(factor)
        elif not isinstance(factor, Compare) or factor.offset or len(used) > 1:
            return None
        elif factor.left in used:
            slots.append(Slot(factor.right, FLIPPED[factor.op], factor.left))
        else:
            slots.append(Slot(factor.left, factor.op, factor.right))
    return tuple(slots), tuple(fixed)
