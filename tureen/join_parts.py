"""The parts of a stream join in a plan with intermediate results: what the root of its tree joins.

A part is a stream, or a sub-join: a stream join of its own, whose results can be kept for all joins that contain it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from tureen.join import JoinCompare
from tureen.plan_hint import BUSHY
from tureen.stream_join import StreamJoin, canonical_factor


class JoinPart(NamedTuple):
    """Some streams of a stream join, by their indexes."""

    inputs: tuple[int, ...]
    join: StreamJoin | None
    """Their join; None for a single stream."""


def parts_of(join: StreamJoin, plan: str) -> tuple[JoinPart, JoinPart] | None:
    """The two parts whose join is the last one of a plan; None if there are no sub-joins connected by equalities."""
    order = _connected_order(range(len(join.streams)), join.factors)
    if len(order) < len(join.streams) or len(order) < 3:
        return None
    sizes = [len(order) - 1]
    if plan == BUSHY:
        sizes = [*sorted(range(2, len(order) - 1), key=lambda size: abs(2 * size - len(order))), *sizes]
    for size in sizes:
        left, right = order[:size], order[size:]
        if len(_connected_order(right, join.factors)) == len(right):
            return _part(join, left), _part(join, right)
    return None


def sub_joins_of(join: StreamJoin, plan: str) -> list[StreamJoin]:
    """All inner nodes of the plan of a join, each before those that are made from it."""
    nodes: list[StreamJoin] = []
    for part in parts_of(join, plan) or ():
        if part.join is not None:
            nodes += [*sub_joins_of(part.join, plan), part.join]
    return nodes


def is_key_equality(factor: JoinCompare) -> bool:
    """Whether tuples are found by key with a comparison."""
    return factor.op == "=" and not factor.offset


def _connected_order(inputs: Sequence[int], factors: Sequence[JoinCompare]) -> list[int]:
    """Inputs that equalities connect with the first one, each of them with one before it."""
    order, rest = [inputs[0]], list(inputs[1:])
    while (
        number := next((candidate for candidate in rest if _is_connected(candidate, order, factors)), None)
    ) is not None:
        order.append(number)
        rest.remove(number)
    return order


def _is_connected(number: int, others: Collection[int], factors: Sequence[JoinCompare]) -> bool:
    pairs = [{field.input for field in factor.fields} for factor in factors if is_key_equality(factor)]
    return any(number in pair and pair - {number} <= set(others) for pair in pairs)


def _part(join: StreamJoin, members: Sequence[int]) -> JoinPart:
    inputs = tuple(sorted(members))
    if len(inputs) == 1:
        return JoinPart(inputs, None)
    index_of = {number: index for index, number in enumerate(inputs)}
    factors = [factor for factor in join.factors if all(field.input in index_of for field in factor.fields)]
    canonical = sorted({canonical_factor(factor, index_of) for factor in factors}, key=repr)
    return JoinPart(inputs, StreamJoin(tuple(join.streams[number] for number in inputs), tuple(canonical)))
