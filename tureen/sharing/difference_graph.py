"""Difference constraints between integers: `x - y <= c`, decided by shortest paths.

A constraint is an edge of a weighted directed graph from y to x (Data Stream Sharing, §3.3; Rosenkrantz and Hunt 1980).
The constraints can hold together if the graph has no negative cycle, and imply `x - y <= c` if the shortest path from y
to x is not longer than c. For integers both are exact. A variable can be confined to the multiples of a *unit*: this is
how decimals with different scales are compared. Bounds are rounded to units; with different units in one graph, not
every contradiction is found.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from math import gcd
from typing import NamedTuple

ORIGIN = None
"""The variable that is always 0: `x - ORIGIN <= c` is `x <= c`."""

Variable = Hashable

MAX_ROUNDINGS = 8
"""How often bounds are rounded and propagated again. Fewer rounds find fewer contradictions."""


class Difference(NamedTuple):
    """`left - right <= bound`."""

    left: Variable
    right: Variable
    bound: int


class DifferenceGraph:
    """A conjunction of difference constraints.

    >>> graph = DifferenceGraph()
    >>> graph.require("a", "b", -1)
    >>> graph.require("b", "c", -1)
    >>> graph.bound("a", "c"), graph.implies("a", "c", 0), graph.implies("c", "a", 0)
    (-2, True, False)
    >>> graph.require("c", "a", 1)
    >>> graph.is_satisfiable()
    False
    """

    def __init__(self, units: Mapping[Variable, int] | None = None) -> None:
        self._units = units or {}
        self._edges: dict[tuple[Variable, Variable], int] = {}
        self._closure: dict[tuple[Variable, Variable], int] | None = None
        self._contradictory = False
        self._dirty = False

    def require(self, left: Variable, right: Variable, bound: int) -> None:
        """Add `left - right <= bound`."""
        known = self._edges.get((left, right))
        if known is None or bound < known:
            self._edges[left, right] = bound
            self._dirty = True

    def is_satisfiable(self) -> bool:
        """Whether integers exist that satisfy all constraints; exact if all variables have the same unit."""
        self._close()
        return not self._contradictory

    @property
    def is_exact(self) -> bool:
        """Whether all variables have the same unit."""
        return len({self._unit(name) for pair in self._edges for name in pair if name is not ORIGIN}) <= 1

    def bound(self, left: Variable, right: Variable) -> int | None:
        """The least c with `left - right <= c` for every solution; None if there is none."""
        self._close()
        if left == right:
            return 0
        assert self._closure is not None
        return self._closure.get((left, right))

    def implies(self, left: Variable, right: Variable, bound: int) -> bool:
        """Whether every solution satisfies `left - right <= bound`."""
        if not self.is_satisfiable():
            return True
        least = self.bound(left, right)
        return least is not None and least <= bound

    def minimal(self) -> list[Difference]:
        """Constraints that imply all others, none of which follows from the rest."""
        kept = list(self)
        for constraint in list(kept):
            rest = DifferenceGraph(self._units)
            for other in kept:
                if other is not constraint:
                    rest.require(*other)
            if rest.is_satisfiable() and rest.implies(*constraint):
                kept.remove(constraint)
        return kept

    def __iter__(self) -> Iterator[Difference]:
        return (Difference(left, right, bound) for (left, right), bound in self._edges.items())

    def _unit(self, name: Variable) -> int:
        return 0 if name is ORIGIN else self._units.get(name, 1)

    def _close(self) -> None:
        if not self._dirty and self._closure is not None:
            return
        bounds = dict(self._edges)
        names = list({name for pair in bounds for name in pair})
        for _ in range(MAX_ROUNDINGS):
            self._contradictory = _shorten(names, bounds)
            if self._contradictory or not self._round(bounds):
                break
        self._closure, self._dirty = bounds, False

    def _round(self, bounds: dict[tuple[Variable, Variable], int]) -> bool:
        """Round each bound down to a difference that the units allow; whether one has changed."""
        changed = False
        for (left, right), bound in bounds.items():
            unit = gcd(self._unit(left), self._unit(right))
            if unit > 1 and bound % unit:
                bounds[left, right] = bound - bound % unit
                changed = True
        return changed


def _shorten(names: list[Variable], bounds: dict[tuple[Variable, Variable], int]) -> bool:
    """Replace each bound by the length of the shortest path (Floyd and Warshall); whether there is a negative cycle."""
    for via in names:
        entering = [(right, bounds[via, right]) for right in names if (via, right) in bounds]
        for left in names:
            first = bounds.get((left, via))
            if first is None:
                continue
            for right, second in entering:
                length = first + second
                known = bounds.get((left, right))
                if known is None or length < known:
                    bounds[left, right] = length
            if bounds.get((left, left), 0) < 0:
                return True
    return False
