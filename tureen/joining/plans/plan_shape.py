"""The shapes of plans: binary trees over the inputs of a join, each node of which is joined by an equality."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from tureen.joining.plans.join_graph import JoinEdge, JoinGraph

PlanShape = int | tuple["PlanShape", "PlanShape"]
"""An input, or two sides that are joined."""

Sides = int | frozenset["Sides"]


class PlanPart(NamedTuple):
    """A part of a join: which of its inputs are joined in which order, and by which equalities.

    Joins that have an equal part in common make its joined tuples once.
    """

    sides: Sides
    edges: frozenset[JoinEdge]


def part_of(graph: JoinGraph, shape: PlanShape) -> PlanPart:
    """The part of a join that a tree makes.

    >>> from tureen.joining.plans.join_graph import JoinEdge
    >>> chain = JoinGraph((1, 2, 1), (JoinEdge(0, 1, (0,), (0,)), JoinEdge(1, 2, (1,), (0,))))
    >>> part_of(chain, (0, 1)) == part_of(chain, (1, 0)), len(part_of(chain, (0, 1)).edges)
    (True, 1)
    """
    inputs = frozenset(inputs_of_shape(shape))
    return PlanPart(_sides(shape), frozenset(edge for edge in graph.edges if {edge.left, edge.right} <= inputs))


def _sides(shape: PlanShape) -> Sides:
    return shape if isinstance(shape, int) else frozenset(map(_sides, shape))


def parts_below(shape: PlanShape) -> list[PlanShape]:
    """All trees that a tree consists of, itself included, from the leaves to the root.

    >>> parts_below(((2, 0), 1))
    [2, 0, (2, 0), 1, ((2, 0), 1)]
    """
    return [shape] if isinstance(shape, int) else [*parts_below(shape[0]), *parts_below(shape[1]), shape]


def common_tree(graph: JoinGraph, trees: Collection[tuple[JoinGraph, PlanShape]]) -> PlanShape | None:
    """The largest tree of other joins that is a part of a join too; None if there is none with several inputs.

    >>> from tureen.joining.plans.join_graph import JoinEdge
    >>> first, second = JoinEdge(0, 1, (0,), (0,)), JoinEdge(1, 2, (1,), (0,))
    >>> known = JoinGraph((1, 2, 1, 1), (first, second))
    >>> other = JoinGraph((1, 2, 1, 1), (first, JoinEdge(1, 3, (1,), (0,))))
    >>> common_tree(other, [(known, ((0, 1), 2))])
    (0, 1)
    """
    common = [
        tree
        for other, shape in trees
        for tree in parts_below(shape)
        if not isinstance(tree, int) and part_of(graph, tree).edges == part_of(other, tree).edges
    ]
    return max(common, key=lambda tree: len(inputs_of_shape(tree)), default=None)


def inputs_of_shape(shape: PlanShape) -> tuple[int, ...]:
    """The inputs of a tree, from left to right.

    >>> inputs_of_shape(((2, 0), 1))
    (2, 0, 1)
    """
    if isinstance(shape, int):
        return (shape,)
    return inputs_of_shape(shape[0]) + inputs_of_shape(shape[1])


def left_deep(graph: JoinGraph, parts: Sequence[PlanShape]) -> PlanShape:
    """A tree that joins one part after the other, in the given order as far as equalities connect them.

    >>> from tureen.joining.plans.join_graph import JoinEdge
    >>> chain = JoinGraph((1, 2, 1), (JoinEdge(0, 1, (0,), (0,)), JoinEdge(1, 2, (1,), (0,))))
    >>> left_deep(chain, [0, 1, 2]), left_deep(chain, [0, 2, 1])
    (((0, 1), 2), ((0, 1), 2))
    """
    shape, *remaining = parts
    while remaining:
        inputs = inputs_of_shape(shape)
        part = next(candidate for candidate in remaining if graph.are_joined(inputs, inputs_of_shape(candidate)))
        remaining.remove(part)
        shape = (shape, part)
    return shape


def bushy(graph: JoinGraph, parts: Sequence[PlanShape]) -> PlanShape:
    """A tree whose sides are as equal in size as equalities allow: pairs of parts, pairs of these, and so on.

    >>> from tureen.joining.plans.join_graph import JoinEdge
    >>> edges = tuple(JoinEdge(n, n + 1, (0,), (0,)) for n in range(5))
    >>> bushy(JoinGraph((1,) * 6, edges), range(6))
    (((0, 1), (2, 3)), (4, 5))
    """
    level: list[PlanShape] = list(parts)
    while len(level) > 1:
        above: list[PlanShape] = []
        remaining = level
        while remaining:
            side, *remaining = remaining
            inputs = inputs_of_shape(side)
            other = next(
                (candidate for candidate in remaining if graph.are_joined(inputs, inputs_of_shape(candidate))), None
            )
            if other is not None:
                remaining = [candidate for candidate in remaining if candidate is not other]
            above.append(side if other is None else (side, other))
        level = above
    return level[0]


def tree_of(
    graph: JoinGraph, inputs: Sequence[int], trees: Collection[tuple[JoinGraph, PlanShape]], *, is_left_deep: bool
) -> PlanShape:
    """The tree of a join of some inputs, with the largest part that it has in common with the trees of others."""
    common = common_tree(graph, trees)
    joined = () if common is None else inputs_of_shape(common)
    rest: list[PlanShape] = [number for number in inputs if number not in joined]
    whole = [] if common is None else [common]
    return left_deep(graph, [*whole, *rest]) if is_left_deep else bushy(graph, [*rest, *whole])


def shown_shape(shape: PlanShape, names: Mapping[int, str]) -> str:
    """A tree as text.

    >>> shown_shape(((0, 1), 2), dict(enumerate("abc")))
    '((a ⋈ b) ⋈ c)'
    """
    if isinstance(shape, int):
        return names[shape]
    return f"({shown_shape(shape[0], names)} ⋈ {shown_shape(shape[1], names)})"
