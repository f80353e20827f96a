"""Properties of queries and derived streams (Data Stream Sharing, §3.1).

Queries and streams have the same properties, because the result of a query is a stream: the original input stream, the
selection, the projection and, if it is aggregated, the step window and the aggregates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tureen.predicate import AllOf, Clause, columns_of
from tureen.query import Grouping, Query
from tureen.window import Steps

_PARTIALS = {"count": ("count",), "sum": ("sum",), "avg": ("sum", "count"), "min": ("min",), "max": ("max",)}
"""The partial aggregates from which an aggregate over a union of windows is computed."""


class PartialAggregate(NamedTuple):
    """An aggregate of a window that can be combined with those of other windows."""

    function: str
    argument: str
    """The DuckDB SQL of the argument; nothing for COUNT(*)."""


@dataclass(frozen=True, slots=True)
class Aggregation:
    """Step windows, the keys by which they are grouped, and partial aggregates of each group."""

    steps: Steps
    keys: tuple[str, ...]
    partials: frozenset[PartialAggregate]

    @property
    def width(self) -> int:
        """The number of values of a row: start and end of the window, keys and aggregates."""
        return 2 + len(self.keys) + len(self.partials)


@dataclass(frozen=True)
class Properties:
    """What a stream has, or what a query needs."""

    stream: str
    """The original input stream."""
    clause: Clause
    """The selection."""
    columns: frozenset[str]
    """The columns of the input that its rows have; of an aggregated stream, those that it is computed from."""
    aggregation: Aggregation | None = None

    @property
    def clause_columns(self) -> frozenset[str]:
        """The columns that the selection reads."""
        return columns_of(AllOf(self.clause))

    @property
    def source(self) -> Properties:
        """The selected and projected stream from which this one is computed: itself, unless it is aggregated."""
        return self if self.aggregation is None else Properties(self.stream, self.clause, self.columns)


def properties_of(query: Query) -> Properties | None:
    """The properties of a query over one stream; None for any other query.

    What follows the selection, the projection and the aggregates (expressions, HAVING, DISTINCT, ORDER BY, LIMIT and
    the window at NOW) is evaluated where the query is registered, and is not shared.
    """
    if query.joins or len(query.inputs) != 1:
        return None
    entry = query.stream
    aggregation = None if query.at_now is not None else _aggregation(query)
    return Properties(entry.relation, entry.clause, frozenset(query.columns), aggregation)


def _aggregation(query: Query) -> Aggregation | None:
    grouping = query.grouping
    if grouping is None or query.steps is None or grouping.sets is not None:
        return None
    partials = _partials(grouping)
    if partials is None:
        return None
    return Aggregation(query.steps, tuple(key.sql for key in grouping.keys), frozenset(partials))


def _partials(grouping: Grouping) -> list[PartialAggregate] | None:
    """The partial aggregates of a grouping; None if an aggregate needs all rows of its window at once."""
    partials: list[PartialAggregate] = []
    for aggregate in grouping.aggregates:
        functions = _PARTIALS.get(aggregate.function)
        if functions is None or aggregate.distinct or aggregate.order or len(aggregate.arguments) > 1:
            return None
        argument = aggregate.arguments[0].sql if aggregate.arguments else ""
        partials += [PartialAggregate(function, argument) for function in functions]
    return partials
