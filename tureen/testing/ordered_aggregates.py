"""Aggregates that order their rows, in plain Python: lists, joined texts, and those with WITHIN GROUP."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cmp_to_key
from typing import Any

from tureen.query import Aggregate, Direction
from tureen.schema import Type
from tureen.testing.values import compare, identity, normalized

ORDERED = frozenset({"collect_list", "collect_set", "listagg", "mode", "percentile_cont", "percentile_disc"})

Arguments = tuple[Any, ...]


def ordered_aggregate(call: Aggregate, rows: Sequence[Arguments]) -> Any:
    """A list, a text or one of the values; the rows come in order of time and then arrival."""
    present = [row for row in rows if row[0] is not None]
    if call.distinct:
        unique = {identity(normalized(row[0])): (normalized(row[0]),) for row in reversed(present)}
        present = list(unique.values())
    values = [row[0] for row in rows_in_order(call, present)]
    match call.function:
        case "collect_list" | "collect_set":
            return values
        case "listagg":
            return call.separator.join(values) if values else None
        case "mode":
            return _most_frequent(values)
    return _quantile(call, values) if values else None


def rows_in_order(call: Aggregate, rows: Sequence[Arguments]) -> list[Arguments]:
    """The rows of an aggregate, sorted by its last arguments."""
    ordered = list(rows)
    types = [argument.type for argument in call.arguments]
    columns = range(len(types) - len(call.order), len(types))
    # Stable sorts from the last key to the first keep the order of rows that are equal in all keys.
    for column, direction in reversed(list(zip(columns, call.order, strict=True))):
        ordered = _sorted(ordered, column, types[column], direction)
    return ordered


def _sorted(rows: list[Arguments], column: int, type_: Type, direction: Direction) -> list[Arguments]:
    def order(left: Arguments, right: Arguments) -> int:
        first, second = left[column], right[column]
        if first is None or second is None:
            return compare(first, second, type_, direction.nulls_first)
        return compare(first, second, type_) * (-1 if direction.descending else 1)

    return sorted(rows, key=cmp_to_key(order))


def _most_frequent(values: list[Any]) -> Any:
    """The most frequent value; the first of several such values."""
    counts: dict[Any, int] = {}
    for value in values:
        counts[identity(normalized(value))] = counts.get(identity(normalized(value)), 0) + 1
    return max((normalized(value) for value in values), key=lambda value: counts[identity(value)], default=None)


def _quantile(call: Aggregate, values: list[float]) -> float:
    (fraction,) = call.parameters
    if call.function == "percentile_disc":
        return values[max(math.ceil(fraction * len(values)), 1) - 1]
    position = fraction * (len(values) - 1)
    below, above = values[math.floor(position)], values[math.ceil(position)]
    return (
        below
        if below == above or position == math.floor(position)
        else below + (position - math.floor(position)) * (above - below)
    )
