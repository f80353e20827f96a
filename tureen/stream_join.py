"""Stream joins: the part of a query that joins streams by comparisons, whose results can be kept.

Queries that differ in clauses, windows, select list or the order of FROM have the same stream join, so that its results
are kept once for all of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from tureen.join import Field, InnerJoin, Join, JoinCompare, JoinFactor, JoinKind, JoinTree, LateralJoin, leaves
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
    tree: InnerJoin | Join
    """The part of `source` that is computed from it: an inner join that has its rows, or a join of two inputs."""
    rest: tuple[JoinFactor, ...]
    """The conditions of that join of two inputs that its pairs do not satisfy already."""
    source: JoinTree
    """The query's join tree, with `tree` as a part."""
    all_tuples: frozenset[int]
    """The inputs of which tuples without a partner are needed, too."""
    reach: int | None
    """The greatest difference between the times of joined tuples in the query's windows; None if it has no limit."""

    @property
    def is_whole(self) -> bool:
        """Whether the query has the rows of the stream join, and no other conditions."""
        return self.source == self.tree and isinstance(self.tree, InnerJoin)


def is_within(needed: int | None, reach: int | None) -> bool:
    """Whether a reach is at most another; None has no limit.

    >>> is_within(5, None), is_within(None, 5), is_within(5, 5)
    (True, False, True)
    """
    return reach is None or (needed is not None and needed <= reach)


def stream_join_of(query: Query, stream_ids: Sequence[int | None]) -> StreamJoinOfQuery | None:
    """The stream join of a query, or None; `stream_ids` has for each of its leaves the id of its stream, if it is one.

    It consists of the inputs of an inner join that are streams and connected by comparisons, or of two streams that
    comparisons of an outer, semi, anti or ASOF join connect. Of several, it is the outermost one, then the first.
    """
    streams = {
        number: stream_ids[leaf] or 0
        for number, leaf in enumerate(query.leaf_numbers)
        if leaf is not None and query.inputs[number].kind is RelationKind.STREAM
    }
    for tree in _parts(query.source):
        if isinstance(tree, InnerJoin):
            members, factors = _inner_members(tree, streams)
        else:
            members, factors = _join_members(tree, streams)
        if members:
            break
    else:
        return None
    # Inputs over the same stream keep the order of FROM.
    inputs = tuple(sorted(members, key=lambda number: (streams[number], number)))
    index_of = {number: index for index, number in enumerate(inputs)}
    join = StreamJoin(
        tuple(streams[number] for number in inputs),
        tuple(sorted({canonical_factor(factor, index_of) for factor in factors}, key=repr)),
    )
    reach = _reach([query.inputs[number].window for number in inputs])
    if isinstance(tree, Join):
        rest = tuple(factor for factor in tree.factors if factor not in factors)
        needed = _kept_sides(tree) | _outside(query.source, tree)
        return StreamJoinOfQuery(join, inputs, tree, rest, query.source, needed & members, reach)
    inner = InnerJoin(inputs, factors)
    others: list[JoinTree] = [side for side in tree.sides if side not in members]
    remaining = tuple(factor for factor in tree.factors if factor not in factors)
    with_others = InnerJoin((inner, *others), remaining) if others or remaining else inner
    source = _replaced(query.source, tree, with_others)
    return StreamJoinOfQuery(join, inputs, inner, (), source, _outside(source, inner) & members, reach)


def _parts(tree: JoinTree) -> Iterator[InnerJoin | Join]:
    """The inner joins, and the joins of two inputs, in a join tree, the outermost first."""
    match tree:
        case InnerJoin(sides):
            yield tree
            for side in sides:
                yield from _parts(side)
        case Join(_, int(), int()):
            yield tree
        case Join(_, left, right) | LateralJoin(left, right):
            yield from _parts(left)
            yield from _parts(right)


def _inner_members(tree: InnerJoin, streams: Mapping[int, int]) -> tuple[frozenset[int], tuple[JoinCompare, ...]]:
    """The inputs of an inner join that are streams and connected by comparisons, and these; or none."""
    sides = [side for side in tree.sides if isinstance(side, int) and side in streams]
    compared = _comparisons(tree.factors, frozenset(sides))
    members = connected_inputs(sides, compared)
    if len(members) < 2:
        return frozenset(), ()
    return members, tuple(factor for factor in compared if factor.left.input in members)


def _join_members(tree: Join, streams: Mapping[int, int]) -> tuple[frozenset[int], tuple[JoinCompare, ...]]:
    """The two inputs of a join, if they are streams and compared with each other, and the comparisons; or none."""
    factors = (*tree.factors, *(() if tree.latest is None else (tree.latest,)))
    members = frozenset(leaves(tree))
    compared = _comparisons(factors, members & streams.keys())
    return (members, compared) if compared else (frozenset(), ())


def _comparisons(factors: Sequence[JoinFactor], inputs: frozenset[int]) -> tuple[JoinCompare, ...]:
    """The comparisons between two of these inputs."""
    return tuple(
        factor
        for factor in factors
        if isinstance(factor, JoinCompare) and _inputs(factor) <= inputs and len(_inputs(factor)) == 2
    )


def _kept_sides(tree: Join) -> frozenset[int]:
    """The sides of a join whose rows without a partner it needs."""
    match tree.kind:
        case JoinKind.FULL:
            return frozenset(leaves(tree))
        case JoinKind.SEMI | JoinKind.ASOF:
            return frozenset()
        case _:
            return frozenset(leaves(tree.left))


def _outside(tree: JoinTree, part: JoinTree) -> frozenset[int]:
    """The inputs that occur outside a part of a join tree: the query of NOT IN is the right side of several joins."""
    if tree == part:
        return frozenset()
    match tree:
        case InnerJoin(sides):
            return frozenset().union(*(_outside(side, part) for side in sides))
        case Join(_, left, right) | LateralJoin(left, right):
            return _outside(left, part) | _outside(right, part)
        case _:
            return frozenset(leaves(tree))


def _replaced(tree: JoinTree, part: JoinTree, other: JoinTree) -> JoinTree:
    """A join tree with another part in place of one."""
    if tree == part:
        return other
    match tree:
        case InnerJoin(sides):
            return replace(tree, sides=tuple(_replaced(side, part, other) for side in sides))
        case Join(_, left, right) | LateralJoin(left, right):
            return replace(tree, left=_replaced(left, part, other), right=_replaced(right, part, other))
        case _:
            return tree


def _inputs(factor: JoinCompare) -> frozenset[int]:
    return frozenset(field.input for field in factor.fields)


def connected_inputs(inputs: Sequence[int], factors: Sequence[JoinCompare]) -> frozenset[int]:
    """The largest group of inputs that comparisons connect; of equal ones the first."""
    groups = [frozenset([number]) for number in inputs]
    for factor in factors:
        touched = [group for group in groups if factor.left.input in group or factor.right.input in group]
        groups = [group for group in groups if group not in touched] + [frozenset().union(*touched)]
    return max(groups, key=lambda group: (len(group), -min(group)), default=frozenset())


def canonical_factor(factor: JoinCompare, index_of: Mapping[int, int]) -> JoinCompare:
    """A comparison with other numbers for the inputs, in a form that does not depend on the order of its sides."""
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
