"""The plan of an inner join: its factors by the sides that they read, prepared once for all rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tureen.eddy.join_order import SideStatistics
from tureen.join import InnerJoin, JoinCompare, JoinFactor, JoinOpaque, visible_leaves
from tureen.joining.computed_keys import has_computed_keys
from tureen.joining.row_conditions import inputs_of

RANGES = frozenset({"<", "<=", ">", ">="})
"""The operators of inequalities that the order of a column decides."""

KEPT_PLANS = 4096
"""The number of joins whose plans a process keeps."""

_Pending = tuple[JoinFactor, frozenset[int]]


@dataclass(frozen=True)
class InnerPlan:
    """The factors of an inner join, by the sides that they read."""

    inputs: tuple[frozenset[int], ...]
    """The inputs whose rows each side has."""
    own: tuple[Sequence[JoinFactor], ...]
    """The factors of each side alone; those without columns are the first side's."""
    between: Sequence[_Pending]
    """The factors between sides, with the inputs that they read."""
    last: Sequence[JoinFactor]
    """The factors that are evaluated after the join."""

    def statistics(self, number: int, rows: int, inputs: frozenset[int], pending: Sequence[_Pending]) -> SideStatistics:
        """A side that could be joined next; `inputs` includes those that it would add."""
        factors = [factor for factor, reads in pending if reads <= inputs]
        operators = [factor.op for factor in factors if isinstance(factor, JoinCompare)]
        equalities = operators.count("=") + sum(map(has_computed_keys, factors))
        return SideStatistics(number, rows, equalities, sum(op in RANGES for op in operators))


@lru_cache(KEPT_PLANS)
def inner_plan(join: InnerJoin) -> InnerPlan:
    """The plan of a join."""
    inputs = tuple(frozenset(visible_leaves(side)) for side in join.sides)
    last = [factor for factor in join.factors if isinstance(factor, JoinOpaque) and factor.is_last]
    own: list[list[JoinFactor]] = [[] for _ in join.sides]
    between: list[_Pending] = []
    for factor in join.factors:
        if factor in last:
            continue
        reads = inputs_of(factor)
        side = next((number for number, of_side in enumerate(inputs) if reads <= of_side), None)
        if side is None:
            between.append((factor, reads))
        else:
            own[side].append(factor)
    return InnerPlan(inputs, tuple(own), between, last)
