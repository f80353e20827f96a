"""Stream joins: the part of a query that joins streams by comparisons, whose results can be kept.

Queries that differ in clauses, windows, select list or the order of FROM have the same stream join, so that its results
are kept once for all of them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from tureen.join import Field, InnerJoin, JoinCompare, JoinTree
from tureen.predicate import FLIPPED
from tureen.query import Query, RelationKind
from tureen.window import Now, Window


@dataclass(frozen=True, slots=True)
class StreamJoin:
    """An inner join of streams by comparisons, in a form that does not depend on the order of FROM."""

    streams: tuple[int, ...]
    """The ids of its streams; one that is joined with itself occurs more than once."""
    factors: tuple[JoinCompare, ...]
    """The fields refer to the indexes of `streams`."""

    @property
    def key(self) -> str:
        """The text by which equal stream joins are found."""
        return json.dumps({"streams": self.streams, "factors": [asdict(factor) for factor in self.factors]})

    @classmethod
    def of_key(cls, key: str) -> StreamJoin:
        """The stream join of a key."""
        entry = json.loads(key)
        factors = [
            JoinCompare(**{**factor, "left": Field(**factor["left"]), "right": Field(**factor["right"])})
            for factor in entry["factors"]
        ]
        return cls(tuple(entry["streams"]), tuple(factors))

    @property
    def tree(self) -> InnerJoin:
        """The join tree over the indexes of `streams`."""
        return InnerJoin(tuple(range(len(self.streams))), self.factors)


@dataclass(frozen=True, slots=True)
class StreamJoinOfQuery:
    """The stream join that a query contains."""

    join: StreamJoin
    inputs: tuple[int, ...]
    """The query's inputs, in the order of `join.streams`."""
    tree: InnerJoin
    """The join tree of these inputs, as it is part of `source`."""
    source: InnerJoin
    """The query's join tree, with this join as one side."""
    is_whole: bool
    """Whether the query joins nothing else."""
    reach: int | None
    """The greatest difference between the times of joined tuples in the query's windows; None if it has no limit."""


def is_within(needed: int | None, reach: int | None) -> bool:
    """Whether a reach is at most another; None has no limit.

    >>> is_within(5, None), is_within(None, 5), is_within(5, 5)
    (True, False, True)
    """
    return reach is None or (needed is not None and needed <= reach)


def stream_join_of(query: Query, stream_ids: Sequence[int | None]) -> StreamJoinOfQuery | None:
    """The stream join of a query, or None; `stream_ids` has for each of its leaves the id of its stream, if it is one.

    It consists of the inputs of an inner join that are streams and connected by comparisons.
    """
    source = query.source
    if not isinstance(source, InnerJoin):
        return None
    streams = {
        side: stream_ids[leaf]
        for side, leaf in ((side, query.leaf_numbers[side]) for side in source.sides if isinstance(side, int))
        if leaf is not None and query.inputs[side].kind is RelationKind.STREAM
    }
    compared = [
        factor
        for factor in source.factors
        if isinstance(factor, JoinCompare) and _inputs(factor) <= streams.keys() and len(_inputs(factor)) == 2
    ]
    members = _connected(list(streams), compared)
    factors = tuple(factor for factor in compared if factor.left.input in members)
    if len(members) < 2:
        return None
    # Inputs over the same stream keep the order of FROM.
    inputs = tuple(sorted(members, key=lambda number: (streams[number] or 0, number)))
    index_of = {number: index for index, number in enumerate(inputs)}
    join = StreamJoin(
        tuple(streams[number] or 0 for number in inputs),
        tuple(sorted({_canonical(factor, index_of) for factor in factors}, key=repr)),
    )
    tree = InnerJoin(inputs, factors)
    others: list[JoinTree] = [side for side in source.sides if side not in members]
    rest = tuple(factor for factor in source.factors if factor not in factors)
    reach = _reach([query.inputs[number].window for number in inputs])
    return StreamJoinOfQuery(join, inputs, tree, InnerJoin((tree, *others), rest), not others and not rest, reach)


def _inputs(factor: JoinCompare) -> frozenset[int]:
    return frozenset(field.input for field in factor.fields)


def _connected(inputs: Sequence[int], factors: Sequence[JoinCompare]) -> frozenset[int]:
    """The largest group of inputs that comparisons connect; of equal ones the first."""
    groups = [frozenset([number]) for number in inputs]
    for factor in factors:
        touched = [group for group in groups if factor.left.input in group or factor.right.input in group]
        groups = [group for group in groups if group not in touched] + [frozenset().union(*touched)]
    return max(groups, key=lambda group: (len(group), -min(group)), default=frozenset())


def _canonical(factor: JoinCompare, index_of: dict[int, int]) -> JoinCompare:
    left = Field(index_of[factor.left.input], factor.left.column)
    right = Field(index_of[factor.right.input], factor.right.column)
    if not factor.offset and (right.input, right.column) < (left.input, left.column):
        return JoinCompare(right, FLIPPED[factor.op], left, 0, factor.domain, factor.limit)
    return JoinCompare(left, factor.op, right, factor.offset, factor.domain, factor.limit)


def _reach(windows: Sequence[Window]) -> int | None:
    begins, ends = [window.begin for window in windows], [window.end for window in windows]
    bounds = [bound for bound in (*begins, *ends) if isinstance(bound, Now) and not bound.months]
    if len(bounds) < 2 * len(windows):
        return None
    return max(bound.micros for bound in bounds) - min(bound.micros for bound in bounds)
