"""Aggregates that order their rows, in plain Python: lists, joined texts, and those with WITHIN GROUP."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cmp_to_key
from typing import Any

from tureen.query import Aggregate, Direction
from tureen.schema import Type
from tureen.testing.values import compare, identity, merged

Arguments = tuple[Any, ...]


def ordered_aggregate(wanted: Aggregate, rows: Sequence[Arguments]) -> Any:
    """A list, a text or one of the values, of rows in order of time and then arrival."""
    present = [row for row in rows if row[0] is not None]
    if wanted.distinct:
        unique = {identity(merged(row[0])): (merged(row[0]),) for row in reversed(present)}
        present = list(unique.values())
    types = [argument.type for argument in wanted.arguments]
    places = range(len(types) - len(wanted.order), len(types))
    # A stable sort by the last key first leaves those that are equal in all keys as they were.
    for place, direction in reversed(list(zip(places, wanted.order, strict=True))):
        present = _sorted(present, place, types[place], direction)
    values = [row[0] for row in present]
    match wanted.function:
        case "collect_list" | "collect_set":
            return values
        case "listagg":
            return wanted.separator.join(values) if values else None
        case "mode":
            return _most_frequent(values)
    return _quantile(wanted, values) if values else None


def _sorted(rows: list[Arguments], place: int, type_: Type, direction: Direction) -> list[Arguments]:
    def order(left: Arguments, right: Arguments) -> int:
        one, other = left[place], right[place]
        if one is None or other is None:
            return compare(one, other, type_, direction.nulls_first)
        return compare(one, other, type_) * (-1 if direction.descending else 1)

    return sorted(rows, key=cmp_to_key(order))


def _most_frequent(values: list[Any]) -> Any:
    """The most frequent value, and of several the first."""
    counts: dict[Any, int] = {}
    for value in values:
        counts[identity(merged(value))] = counts.get(identity(merged(value)), 0) + 1
    return max((merged(value) for value in values), key=lambda value: counts[identity(value)], default=None)


def _quantile(wanted: Aggregate, values: list[float]) -> float:
    (share,) = wanted.parameters
    if wanted.function == "percentile_disc":
        return values[max(math.ceil(share * len(values)), 1) - 1]
    place = share * (len(values) - 1)
    below, above = values[math.floor(place)], values[math.ceil(place)]
    return (
        below if below == above or place == math.floor(place) else below + (place - math.floor(place)) * (above - below)
    )
