"""Shared joins: what followed queries have in common, so that their new tuples are joined once.

As a stream join (`tureen.stream_join`), it consists of relations and comparisons in a form that does not depend on
clauses, windows, select lists or the order of FROM. It has all inputs of the query, tables included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tureen.join import InnerJoin, JoinCompare, JoinFactor
from tureen.joining.key_columns import key_equalities
from tureen.stream_join import canonical_factor, connected_inputs


class JoinedRelation(NamedTuple):
    """A stream or a table."""

    stream_id: int | None
    table_id: str | None = None


@dataclass(frozen=True, slots=True)
class SharedJoin:
    """Relations and the comparisons between them; fields refer to the indexes of `relations`."""

    relations: tuple[JoinedRelation, ...]
    factors: tuple[JoinCompare, ...]

    @property
    def streams(self) -> tuple[int, ...]:
        """The ids of its streams, ascending."""
        return tuple(sorted({each.stream_id for each in self.relations if each.stream_id is not None}))

    def inputs_of(self, stream_id: int) -> list[int]:
        """The inputs that read a stream."""
        return [number for number, relation in enumerate(self.relations) if relation.stream_id == stream_id]


@dataclass(frozen=True, slots=True)
class SharedJoinOfQuery:
    """The shared join of a query."""

    join: SharedJoin
    inputs: tuple[int, ...]
    """The query's inputs, in the order of `join.relations`."""
    rest: tuple[JoinFactor, ...]
    """The query's other conditions; their fields refer to its own inputs."""

    def index_of(self, number: int) -> int:
        """The index in the join of one of the query's inputs."""
        return self.inputs.index(number)


def shared_join_of(tree: InnerJoin, relations: Sequence[JoinedRelation]) -> SharedJoinOfQuery | None:
    """The shared join of an inner join of inputs; None if equalities do not connect all of them.

    `relations` has the relation of each input. Without an equality, the tuples of an input are not found by key.

    >>> from tureen.join import Field
    >>> equality = JoinCompare(Field(0, "k"), "=", Field(1, "k"))
    >>> shared = shared_join_of(InnerJoin((0, 1), (equality,)), [JoinedRelation(7), JoinedRelation(3)])
    >>> shared.join.relations[0].stream_id, shared.inputs, shared.join.factors[0].left
    (3, (1, 0), Field(input=0, column='k'))
    """
    sides = [side for side in tree.sides if isinstance(side, int)]
    equalities = [factor for factor in _compared(tree) if key_equalities([factor], factor.left.input)]
    if len(sides) < 2 or len(connected_inputs(sides, equalities)) < len(sides):
        return None
    return compared_join_of(tree, relations)


def compared_join_of(tree: InnerJoin, relations: Sequence[JoinedRelation]) -> SharedJoinOfQuery | None:
    """As `shared_join_of`, also if equalities do not connect all inputs."""
    sides = [side for side in tree.sides if isinstance(side, int)]
    if len(sides) != len(tree.sides) or len(sides) < 2:
        return None
    compared = _compared(tree)
    # Inputs over the same relation keep the order of FROM.
    inputs = tuple(sorted(sides, key=lambda number: (_order(relations[number]), number)))
    index_of = {number: index for index, number in enumerate(inputs)}
    factors = sorted({canonical_factor(factor, index_of) for factor in compared}, key=repr)
    join = SharedJoin(tuple(relations[number] for number in inputs), tuple(factors))
    return SharedJoinOfQuery(join, inputs, tuple(factor for factor in tree.factors if factor not in compared))


def _compared(tree: InnerJoin) -> list[JoinCompare]:
    """The comparisons of columns of different inputs."""
    return [
        factor for factor in tree.factors if isinstance(factor, JoinCompare) and factor.left.input != factor.right.input
    ]


def _order(relation: JoinedRelation) -> tuple[bool, int, str]:
    return relation.stream_id is None, relation.stream_id or 0, relation.table_id or ""
