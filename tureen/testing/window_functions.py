"""Window functions, slowly: every row by itself, over the rows of its partition in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cmp_to_key
from typing import Any

from tureen.query import Over, Query, over_name
from tureen.schema import Kind, Type
from tureen.testing.aggregates import aggregate
from tureen.testing.evaluate import Row, Types, value_of
from tureen.testing.values import compare, compare_ordered, identity, key_of, merged, order, taken


def with_overs(query: Query, rows: Sequence[Row], types: Types) -> list[Row]:
    """The rows with the values of the query's window functions, and those of them for which QUALIFY is TRUE."""
    columns = {over_name(number): over_values(over, rows, types) for number, over in enumerate(query.overs)}
    found = [{**row, **{name: values[place] for name, values in columns.items()}} for place, row in enumerate(rows)]
    known = over_types(query, types)
    return [row for row in found if query.qualify is None or value_of(query.qualify, row, known) is True]


def over_types(query: Query, types: Types) -> Types:
    """The columns of rows with window functions."""
    return {**types, **{over_name(number): over.call.type for number, over in enumerate(query.overs)}}


def over_values(over: Over, rows: Sequence[Row], types: Types) -> list[Any]:
    """The value of a window function for each row."""
    partitions: dict[tuple[Any, ...], list[int]] = {}
    for place, row in enumerate(rows):
        key = tuple(identity(merged(value_of(one, row, types))) for one in over.partition)
        partitions.setdefault(key, []).append(place)
    values: list[Any] = [None] * len(rows)
    for places in partitions.values():
        found = _Partition(over, [rows[place] for place in places], types)
        for sorted_place, original in enumerate(found.sorted):
            values[places[original]] = found.value(sorted_place)
    return values


class _Partition:
    """The rows of one partition, in their order; those that it does not tell apart stay as they were."""

    def __init__(self, over: Over, rows: Sequence[Row], types: Types) -> None:
        self.over = over
        keys = [tuple(value_of(one.value, row, types) for one in over.order) for row in rows]

        def by_order(left: int, right: int) -> int:
            return compare_ordered(keys[left], keys[right], over.order)

        self.sorted = sorted(range(len(rows)), key=cmp_to_key(by_order))
        self.keys = [keys[place] for place in self.sorted]
        self.arguments = [
            tuple(value_of(one, rows[place], types) for one in over.call.arguments) for place in self.sorted
        ]

    def value(self, place: int) -> Any:
        """The function's value for the row at that place of the order."""
        call = self.over.call
        if self.over.frame is None:
            return _RANKS[call.function](self, place)
        frame = [self.arguments[other] for other in range(len(self.keys)) if self._is_in_frame(place, other)]
        if call.function.startswith("nth_value"):
            values = [one[0] for one in frame if one[0] is not None or call.function == "nth_value"]
            number = int(call.parameters[0])
            return values[number - 1] if number <= len(values) else None
        return aggregate(call, frame)

    def _is_in_frame(self, place: int, other: int) -> bool:
        frame = self.over.frame
        assert frame is not None
        if frame.rows:
            distance = other - place
            return (frame.start is None or distance >= int(frame.start)) and (
                frame.end is None or distance <= int(frame.end)
            )
        return (frame.start is None or self._against(other, place, frame.start) >= 0) and (
            frame.end is None or self._against(other, place, frame.end) <= 0
        )

    def _against(self, other: int, place: int, offset: Any) -> int:
        """How another row lies to this one, moved by an offset of the value that they are ordered by."""
        if offset == 0:
            return compare_ordered(self.keys[other], self.keys[place], self.over.order)
        by = self.over.order[0]
        there, here = self.keys[other][0], self.keys[place][0]
        if there is None or here is None:
            return compare(there, here, by.value.type, by.nulls_first)
        moved = _moved(here, by.value.type, -offset if by.descending else offset)
        sign = order(key_of(there, by.value.type), moved)
        return -sign if by.descending else sign

    def is_peer(self, place: int, other: int) -> bool:
        """Whether the order does not tell two rows apart."""
        return compare_ordered(self.keys[place], self.keys[other], self.over.order) == 0


def _moved(value: Any, type_: Type, offset: Any) -> Any:
    """A value's key, moved; FLOATs are added as FLOATs."""
    key = key_of(value, type_)
    assert not isinstance(key, str)
    return taken(key + offset, type_) if type_.kind is Kind.FLOAT else key + offset


def _rank(partition: _Partition, place: int) -> int:
    return 1 + next(other for other in range(place + 1) if partition.is_peer(place, other))


def _dense_rank(partition: _Partition, place: int) -> int:
    return 1 + sum(not partition.is_peer(other, other + 1) for other in range(place))


def _percent_rank(partition: _Partition, place: int) -> float:
    others = len(partition.keys) - 1
    return (_rank(partition, place) - 1) / others if others else 0.0


def _cume_dist(partition: _Partition, place: int) -> float:
    rows = range(len(partition.keys))
    return sum(other <= place or partition.is_peer(place, other) for other in rows) / len(rows)


def _ntile(partition: _Partition, place: int) -> int:
    """The number of the bucket; the first ones have a row more where they cannot be of one size."""
    buckets = int(partition.over.call.parameters[0])
    size, larger = divmod(len(partition.keys), buckets)
    if place < larger * (size + 1):
        return place // (size + 1) + 1
    return larger + (place - larger * (size + 1)) // size + 1


def _beside(step: int, *, present: bool = False) -> Callable[[_Partition, int], Any]:
    """The value so many rows before or after, or the default; `present`: counted are those that are not NULL."""

    def value(partition: _Partition, place: int) -> Any:
        call = partition.over.call
        count, other = int(call.parameters[0]), place
        while count > 0 and 0 <= other + step < len(partition.keys):
            other += step
            count -= not present or partition.arguments[other][0] is not None
        if count > 0:
            return partition.arguments[place][1] if len(call.arguments) > 1 else None
        return partition.arguments[other][0]

    return value


_RANKS: dict[str, Callable[[_Partition, int], Any]] = {
    "row_number": lambda _, place: place + 1,
    "rank": _rank,
    "dense_rank": _dense_rank,
    "percent_rank": _percent_rank,
    "cume_dist": _cume_dist,
    "ntile": _ntile,
    "lag": _beside(-1),
    "lead": _beside(1),
    "lag_present": _beside(-1, present=True),
    "lead_present": _beside(1, present=True),
}
