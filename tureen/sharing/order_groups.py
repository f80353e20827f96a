"""Comparisons of columns as difference constraints between integers.

Columns are compared in one of three groups, and in each a value is an integer that sorts like it:

* numbers (integers, DATE, TIMESTAMP, BOOLEAN, DECIMAL): the unscaled value at the largest scale among the columns. The
  unit of a column is one of its own last digit.
* doubles: the key of the double (`tureen.keys`), NaN the largest. Sums of doubles are rounded, so `x <= y + c` is not a
  difference of keys; bounds are propagated through the sum as the processor computes it.
* strings: the rank among the constants, with enough ranks between two constants for all variables.

A column that is cast before it is compared, such as a BIGINT with a DOUBLE, is a variable of its own: what is known of
the column is not used. Every rule is sound; `is_exact` says whether a contradiction, if there is one, is found.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

from tureen.keys import NAN_KEY, float_key, float_of_key
from tureen.language.predicates.intervals import Ranges, domain_of
from tureen.predicate import Compare, Interval, Key
from tureen.schema import FRACTIONAL, Column, Kind, Schema
from tureen.sharing.difference_graph import ORIGIN, DifferenceGraph

LEAST_DOUBLE = float_key(-math.inf)

Variable = tuple[str, str]
"""The group in which a column is compared, and its name."""

_GROUPS = {"int": "number", "decimal": "number", "double": "double", "string": "string"}


@dataclass(frozen=True, slots=True)
class _FloatSum:
    """`left - fl(right + offset)` is below (or above) 0, or is not if it is not strict."""

    left: Variable
    right: Variable
    offset: float
    below: bool
    strict: bool


class OrderGroups:
    """The comparisons of a conjunction, with what is known of each column; `<>` is not among them."""

    def __init__(
        self, schema: Schema, compares: Iterable[tuple[Compare, bool]], ranges: Mapping[str, Ranges | None]
    ) -> None:
        """Add comparisons, each with whether it is known not to raise, and the ranges of columns.

        With several ranges of a column, those between the first and the last are not considered.
        """
        self._schema = schema
        self._compares = list(compares)
        columns = {column.name: column for column in map(self._column, self._names())}
        self._scale = max((column.type.scale for column in columns.values()), default=0)
        self._ranks = _ranks(self._strings(columns, ranges), len(columns) + 2)
        units: dict[Hashable, int] = {("number", name): self._unit(column) for name, column in columns.items()}
        self.graph = DifferenceGraph(units)
        self._sums: list[_FloatSum] = []
        self.is_exact = True
        for compare, is_defined in self._compares:
            self._add(compare, is_defined)
        for name in columns:
            for group in {group for group, column in self._variables() if column == name}:
                self._limit(group, columns[name], ranges.get(name))
        self.is_exact = self.is_exact and self.graph.is_exact and not self._sums

    def is_satisfiable(self) -> bool:
        """Whether values exist for all comparisons; if not `is_exact`, True may be wrong."""
        return self.graph.is_satisfiable() and not self._sums_contradict() and self._propagate()

    def bounds(self, name: str) -> tuple[int | None, int | None] | None:
        """The least and greatest integer key of a number or double; None if the column is not compared as such."""
        column = self._column(name)
        group = "double" if column.type.kind in FRACTIONAL else "number"
        if (group, name) not in self._variables() or column.type.kind is Kind.STRING:
            return None
        high, low = self.graph.bound((group, name), ORIGIN), self.graph.bound(ORIGIN, (group, name))
        unit = self._unit(column) if group == "number" else 1
        return None if low is None else -(low // unit), None if high is None else high // unit

    def _names(self) -> set[str]:
        return {name for compare, _ in self._compares for name in (compare.left, compare.right)}

    def _variables(self) -> set[Variable]:
        return {
            (_GROUPS[compare.domain], name) for compare, _ in self._compares for name in (compare.left, compare.right)
        }

    def _column(self, name: str) -> Column:
        column = self._schema.find(name)
        assert column is not None
        return column

    def _unit(self, column: Column) -> int:
        unit: int = 10 ** (self._scale - column.type.scale)
        return unit

    def _strings(self, columns: Mapping[str, Column], ranges: Mapping[str, Ranges | None]) -> set[str]:
        kept = (ranges.get(name) or () for name, column in columns.items() if column.type.kind is Kind.STRING)
        ends = (end for intervals in kept for interval in intervals for end in (interval.low, interval.high))
        return {"", *(end for end in ends if isinstance(end, str))}

    def _add(self, compare: Compare, is_defined: bool) -> None:
        group = _GROUPS[compare.domain]
        left, right = (group, compare.left), (group, compare.right)
        if group == "double" and compare.offset:
            self._add_sum(left, compare, right)
            return
        offset = int(compare.offset) * 10**self._scale if group == "number" else 0
        # Of integers at the same unit, `<` is one unit less.
        strict = math.gcd(*(self._unit(self._column(name[1])) for name in (left, right))) if group == "number" else 1
        if compare.op in ("<", "<=", "="):
            self.graph.require(left, right, offset - (strict if compare.op == "<" else 0))
        if compare.op in (">", ">=", "="):
            self.graph.require(right, left, -offset - (strict if compare.op == ">" else 0))
        if is_defined and offset and compare.domain == "int":
            # The sum did not raise, so it fits its type.
            limit = 1 << (compare.limit - 1)
            self.graph.require(right, ORIGIN, (limit - 1) * 10**self._scale - offset)
            self.graph.require(ORIGIN, right, limit * 10**self._scale + offset)

    def _add_sum(self, left: Variable, compare: Compare, right: Variable) -> None:
        offset = float(compare.offset)
        if not math.isfinite(offset):
            self.is_exact = False
            return
        if compare.op in ("<", "<=", "="):
            self._sums.append(_FloatSum(left, right, offset, below=True, strict=compare.op == "<"))
            if offset < 0:
                self.graph.require(left, right, -1 if compare.op == "<" else 0)
        if compare.op in (">", ">=", "="):
            self._sums.append(_FloatSum(left, right, offset, below=False, strict=compare.op == ">"))
            if offset > 0:
                self.graph.require(right, left, -1 if compare.op == ">" else 0)

    def _limit(self, group: str, column: Column, ranges: Ranges | None) -> None:
        """Add what is known of a column, if the group compares it without a cast."""
        variable, kind = (group, column.name), column.type.kind
        native = "string" if kind is Kind.STRING else "double" if kind in FRACTIONAL else "number"
        if group != native:
            self.is_exact = False
            return
        if kind is Kind.FLOAT or (kind is Kind.STRING and any("\0" in text for text in self._ranks)):
            self.is_exact = False
        domain = domain_of(column.type)
        hull = Interval(domain.least, domain.greatest)
        for interval in (hull, *((_hull(ranges),) if ranges else ())):
            if interval.high is not None:
                self.graph.require(variable, ORIGIN, self._integer(column, interval.high) - interval.high_open)
            if interval.low is not None:
                self.graph.require(ORIGIN, variable, -self._integer(column, interval.low) - interval.low_open)

    def _integer(self, column: Column, key: Key) -> int:
        if isinstance(key, str):
            return self._ranks[key]
        return float_key(key) if column.type.kind in FRACTIONAL else int(key) * self._unit(column)

    def _sums_contradict(self) -> bool:
        """Whether x is below y + c and above y + d, with c <= d."""
        for upper in self._sums:
            for lower in self._sums:
                same = upper.below and not lower.below and (upper.left, upper.right) == (lower.left, lower.right)
                if same and upper.offset <= lower.offset and (upper.strict or lower.strict):
                    return True
        return False

    def _propagate(self) -> bool:
        """Move the bounds of each side of a sum of doubles to the other; whether the graph stays satisfiable."""
        for _ in range(len(self._sums) + 1):
            for term in self._sums:
                self._propagate_sum(term)
            if not self.graph.is_satisfiable():
                return False
        return True

    def _propagate_sum(self, term: _FloatSum) -> None:
        graph, strict = self.graph, int(term.strict)
        if term.below:
            high, low = graph.bound(term.right, ORIGIN), graph.bound(ORIGIN, term.left)
            if high is not None:
                graph.require(term.left, ORIGIN, _plus(high, term.offset) - strict)
            if low is not None:
                # The sum is at least the least of the left side; `first` is the first key for which that is so.
                first = _first_sum(-low + strict, term.offset)
                graph.require(ORIGIN, term.right, -first)
        else:
            high, low = graph.bound(term.left, ORIGIN), graph.bound(ORIGIN, term.right)
            if low is not None:
                graph.require(ORIGIN, term.left, -_plus(-low, term.offset) - strict)
            if high is not None:
                last = _first_sum(high - strict + 1, term.offset) - 1
                graph.require(term.right, ORIGIN, last)


def _hull(ranges: Ranges) -> Interval:
    first, last = ranges[0], ranges[-1]
    return Interval(first.low, last.high, first.low_open, last.high_open)


def _ranks(texts: set[str], spacing: int) -> dict[str, int]:
    return {text: rank * spacing for rank, text in enumerate(sorted(texts))}


def _plus(key: int, offset: float) -> int:
    """The key of the sum of a double and an offset, as doubles are added."""
    return float_key(float_of_key(min(max(key, LEAST_DOUBLE), NAN_KEY)) + offset)


def _first_sum(key: int, offset: float) -> int:
    """The least key whose sum with an offset has at least a key; one above all keys if there is none.

    >>> float_of_key(_first_sum(float_key(10.0), 1.5))
    8.5
    """
    low, high = LEAST_DOUBLE, NAN_KEY + 1
    while low < high:
        middle = (low + high) // 2
        if _plus(middle, offset) >= key:
            high = middle
        else:
            low = middle + 1
    return low
