"""The last steps of an answer: window functions → outputs → DISTINCT → ORDER BY → OFFSET and LIMIT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from typing import Any

from tureen.query import Order, Query
from tureen.testing.evaluate import Row, Types, value_of
from tureen.testing.values import compare_ordered, identity, normalized
from tureen.testing.window_functions import over_types, with_overs


@dataclass(frozen=True)
class OutputRow:
    """A row of an answer, and the values of its ORDER BY items."""

    values: tuple[Any, ...]
    order: tuple[Any, ...]


def finish(query: Query, rows: Sequence[Row], types: Types) -> list[dict[str, Any]]:
    """The answer of a query from the rows of its window or of its groups."""
    if query.overs:
        rows, types = with_overs(query, rows, types), over_types(query, types)
    outputs = [
        OutputRow(
            tuple(value_of(output.value, row, types) for output in query.outputs),
            tuple(value_of(order_item.value, row, types) for order_item in query.order),
        )
        for row in rows
    ]
    if query.distinct:
        outputs = _distinct(outputs)
    outputs = _ordered(outputs, query.order)
    last = None if query.limit is None else query.offset + query.limit
    names = [output.name for output in query.outputs]
    return [dict(zip(names, output_row.values, strict=True)) for output_row in outputs[query.offset : last]]


def _distinct(rows: Sequence[OutputRow]) -> list[OutputRow]:
    """The first of the rows with the same values."""
    unique: dict[tuple[Any, ...], OutputRow] = {}
    for row in rows:
        values = tuple(map(normalized, row.values))
        unique.setdefault(tuple(map(identity, values)), OutputRow(values, row.order))
    return list(unique.values())


def _ordered(rows: Sequence[OutputRow], order: tuple[Order, ...]) -> list[OutputRow]:
    """The rows in their order; the sort is stable."""

    def compare_rows(left: OutputRow, right: OutputRow) -> int:
        return compare_ordered(left.order, right.order, order)

    return sorted(rows, key=cmp_to_key(compare_rows))
