"""The end of an answer, slowly: window functions → outputs → DISTINCT → ORDER BY → OFFSET and LIMIT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from typing import Any

from tureen.query import Order, Query
from tureen.testing.evaluate import Row, Types, value_of
from tureen.testing.values import compare_ordered, identity, merged
from tureen.testing.window_functions import over_types, with_overs


@dataclass(frozen=True)
class Line:
    """One row of an answer, and what it is ordered by."""

    values: tuple[Any, ...]
    order: tuple[Any, ...]


def finish(query: Query, rows: Sequence[Row], types: Types) -> list[dict[str, Any]]:
    """The answer that a query makes of rows: those of the window, or those of its groups."""
    if query.overs:
        rows, types = with_overs(query, rows, types), over_types(query, types)
    lines = [
        Line(
            tuple(value_of(output.value, row, types) for output in query.outputs),
            tuple(value_of(one.value, row, types) for one in query.order),
        )
        for row in rows
    ]
    if query.distinct:
        lines = _distinct(lines)
    lines = _ordered(lines, query.order)
    last = None if query.limit is None else query.offset + query.limit
    names = [output.name for output in query.outputs]
    return [dict(zip(names, line.values, strict=True)) for line in lines[query.offset : last]]


def _distinct(lines: Sequence[Line]) -> list[Line]:
    """Each line once, where it came first."""
    found: dict[tuple[Any, ...], Line] = {}
    for line in lines:
        values = tuple(map(merged, line.values))
        found.setdefault(tuple(map(identity, values)), Line(values, line.order))
    return list(found.values())


def _ordered(lines: Sequence[Line], order: tuple[Order, ...]) -> list[Line]:
    """The lines by what they are ordered by; those that are equal in that stay as they were."""

    def compare_lines(left: Line, right: Line) -> int:
        return compare_ordered(left.order, right.order, order)

    return sorted(lines, key=cmp_to_key(compare_lines))
