"""What a tuple of an input needs in the other inputs to be in demand (JIT §IV-A, in the direction of the partners).

What a tuple may miss is tested from small to large, as in the lattice of JIT's Fig. 7: first whether an input has a
tuple with its key or, where the two are not compared, any tuple (the empty sub-tuple), then whether two inputs that are
also compared with each other may have a pair for it.

A test against an input of a higher rank counts only tuples that are themselves in demand there, so that the feedback of
the last input is propagated to the first. Ranks exclude that two tuples wait for each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from tureen.joining.plans.join_graph import JoinGraph

MOST_TRIANGLES = 10
"""The most pairs of inputs that a tuple is tested with."""


@dataclass(frozen=True)
class PartnerTest:
    """An input must have a tuple with the key or, if it is not compared with the tuple, any tuple."""

    other: int


@dataclass(frozen=True)
class TriangleTest:
    """Two inputs must have a pair for the tuple: partners of it that may be partners of each other."""

    first: int
    second: int


DemandTest = PartnerTest | TriangleTest


@dataclass(frozen=True)
class InputTests:
    """The tests of an input."""

    ranked: tuple[DemandTest, ...]
    """Those that concern inputs of higher ranks alone: what they count as a partner has passed its own."""
    others: tuple[DemandTest, ...]


NO_TESTS = InputTests((), ())
"""Those of an input of another join."""


def ranks_of(graph: JoinGraph, order: Sequence[int]) -> list[int]:
    """The rank of each input: tables first, which are never waited for, then in the order of the plan.

    An input that the join does not have, which is not in `order`, has the rank -1.

    >>> ranks_of(JoinGraph((1, 1, 1, 1), (), frozenset({3})), [0, 1, 3])
    [1, 2, -1, 0]
    """
    ranked = sorted(order, key=lambda number: number not in graph.tables)
    return [ranked.index(number) if number in ranked else -1 for number in range(len(graph))]


def tests_of(graph: JoinGraph, number: int, inputs: Sequence[int], ranks: Sequence[int]) -> InputTests:
    """The tests of an input of a join with these inputs, in the order in which they are made."""
    others = sorted((other for other in inputs if other != number), key=lambda other: -ranks[other])
    # A missing row of a table is missing for good, and inputs that are compared miss more than those that are not.
    others.sort(key=lambda other: (other not in graph.tables, graph.edge(number, other) is None))
    tests: list[DemandTest] = [PartnerTest(other) for other in others]
    tests += _triangles(graph, number)
    is_ranked = {test: all(ranks[other] > ranks[number] for other in tested_inputs(test)) for test in tests}
    return InputTests(
        tuple(test for test in tests if is_ranked[test]), tuple(test for test in tests if not is_ranked[test])
    )


def tested_inputs(test: DemandTest) -> tuple[int, ...]:
    """The inputs whose tuples a test counts."""
    return (test.other,) if isinstance(test, PartnerTest) else (test.first, test.second)


def _triangles(graph: JoinGraph, number: int) -> list[TriangleTest]:
    """Pairs of inputs that are compared with an input and with each other: such that each input is in few of them."""
    pairs = [pair for pair in combinations(graph.neighbors(number), 2) if graph.edge(*pair) is not None]
    used: dict[int, int] = {}
    chosen: list[TriangleTest] = []
    while pairs and len(chosen) < MOST_TRIANGLES:
        pair = min(pairs, key=lambda candidate: sum(used.get(side, 0) for side in candidate))
        pairs.remove(pair)
        for side in pair:
            used[side] = used.get(side, 0) + 1
        chosen.append(TriangleTest(*pair))
    return chosen
