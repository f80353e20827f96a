"""The shapes of plans: binary trees over the inputs of a join, each node of which is joined by an equality."""

from __future__ import annotations

from collections.abc import Sequence

from tureen.joining.plans.join_graph import JoinGraph

PlanShape = int | tuple["PlanShape", "PlanShape"]
"""An input, or two sides that are joined."""


def inputs_of_shape(shape: PlanShape) -> tuple[int, ...]:
    """The inputs of a tree, from left to right.

    >>> inputs_of_shape(((2, 0), 1))
    (2, 0, 1)
    """
    if isinstance(shape, int):
        return (shape,)
    return inputs_of_shape(shape[0]) + inputs_of_shape(shape[1])


def left_deep(graph: JoinGraph, order: Sequence[int] | None = None) -> PlanShape:
    """A tree that joins one input after the other, in the given order as far as equalities connect them.

    >>> from tureen.joining.plans.join_graph import JoinEdge
    >>> chain = JoinGraph((1, 2, 1), (JoinEdge(0, 1, (0,), (0,)), JoinEdge(1, 2, (1,), (0,))))
    >>> left_deep(chain), left_deep(chain, [0, 2, 1])
    (((0, 1), 2), ((0, 1), 2))
    """
    remaining = list(range(len(graph)) if order is None else order)
    shape: PlanShape = remaining.pop(0)
    joined = [shape] if isinstance(shape, int) else []
    while remaining:
        number = next(each for each in remaining if graph.are_joined(joined, [each]))
        remaining.remove(number)
        joined.append(number)
        shape = (shape, number)
    return shape


def bushy(graph: JoinGraph, order: Sequence[int] | None = None) -> PlanShape:
    """A tree whose sides are as equal in size as equalities allow: pairs of inputs, pairs of these, and so on.

    >>> from tureen.joining.plans.join_graph import JoinEdge
    >>> edges = tuple(JoinEdge(n, n + 1, (0,), (0,)) for n in range(5))
    >>> bushy(JoinGraph((1,) * 6, edges))
    (((0, 1), (2, 3)), (4, 5))
    """
    level: list[PlanShape] = list(range(len(graph)) if order is None else order)
    while len(level) > 1:
        above: list[PlanShape] = []
        remaining = level
        while remaining:
            side, *remaining = remaining
            inputs = inputs_of_shape(side)
            other = next((each for each in remaining if graph.are_joined(inputs, inputs_of_shape(each))), None)
            if other is not None:
                remaining = [each for each in remaining if each is not other]
            above.append(side if other is None else (side, other))
        level = above
    return level[0]


def shown_shape(shape: PlanShape, names: Sequence[str]) -> str:
    """A tree as text.

    >>> shown_shape(((0, 1), 2), ["a", "b", "c"])
    '((a ⋈ b) ⋈ c)'
    """
    if isinstance(shape, int):
        return names[shape]
    return f"({shown_shape(shape[0], names)} ⋈ {shown_shape(shape[1], names)})"
