"""Window functions in their simplest form: each row by itself, over the ordered rows of its partition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cmp_to_key
from typing import Any

from tureen.query import Over, Query, over_name
from tureen.schema import Kind, Type
from tureen.testing.aggregates import aggregate
from tureen.testing.evaluate import Row, Types, value_of
from tureen.testing.values import compare, compare_ordered, identity, key_of, normalized, order, stored_value


def with_overs(query: Query, rows: Sequence[Row], types: Types) -> list[Row]:
    """The rows with the values of the query's window functions, filtered by QUALIFY."""
    columns = {over_name(number): over_values(over, rows, types) for number, over in enumerate(query.overs)}
    extended = [
        {**row, **{name: values[row_index] for name, values in columns.items()}} for row_index, row in enumerate(rows)
    ]
    all_types = over_types(query, types)
    return [row for row in extended if query.qualify is None or value_of(query.qualify, row, all_types) is True]


def over_types(query: Query, types: Types) -> Types:
    """The columns of rows with window functions."""
    return {**types, **{over_name(number): over.call.type for number, over in enumerate(query.overs)}}


def over_values(over: Over, rows: Sequence[Row], types: Types) -> list[Any]:
    """The value of a window function for each row."""
    partitions: dict[tuple[Any, ...], list[int]] = {}
    for row_index, row in enumerate(rows):
        key = tuple(identity(normalized(value_of(expression, row, types))) for expression in over.partition)
        partitions.setdefault(key, []).append(row_index)
    values: list[Any] = [None] * len(rows)
    for row_indexes in partitions.values():
        partition = _Partition(over, [rows[row_index] for row_index in row_indexes], types)
        for rank, original in enumerate(partition.sorted):
            values[row_indexes[original]] = partition.value(rank)
    return values


class _Partition:
    """The rows of a partition in their order; the sort is stable."""

    def __init__(self, over: Over, rows: Sequence[Row], types: Types) -> None:
        self.over = over
        keys = [tuple(value_of(order_item.value, row, types) for order_item in over.order) for row in rows]

        def by_order(left: int, right: int) -> int:
            return compare_ordered(keys[left], keys[right], over.order)

        self.sorted = sorted(range(len(rows)), key=cmp_to_key(by_order))
        self.keys = [keys[row_index] for row_index in self.sorted]
        self.arguments = [
            tuple(value_of(argument, rows[row_index], types) for argument in over.call.arguments)
            for row_index in self.sorted
        ]

    def value(self, position: int) -> Any:
        """The function's value for the row at a position of the order."""
        call = self.over.call
        if self.over.frame is None:
            return _RANKS[call.function](self, position)
        frame = [self.arguments[other] for other in range(len(self.keys)) if self._is_in_frame(position, other)]
        if call.function.startswith("nth_value"):
            values = [arguments[0] for arguments in frame if arguments[0] is not None or call.function == "nth_value"]
            number = int(call.parameters[0])
            return values[number - 1] if number <= len(values) else None
        return aggregate(call, frame)

    def _is_in_frame(self, position: int, other: int) -> bool:
        frame = self.over.frame
        assert frame is not None
        if frame.rows:
            distance = other - position
            return (frame.start is None or distance >= int(frame.start)) and (
                frame.end is None or distance <= int(frame.end)
            )
        return (frame.start is None or self._against(other, position, frame.start) >= 0) and (
            frame.end is None or self._against(other, position, frame.end) <= 0
        )

    def _against(self, other: int, position: int, offset: Any) -> int:
        """Compares another row with this row, after adding an offset to this row's ordering value."""
        if offset == 0:
            return compare_ordered(self.keys[other], self.keys[position], self.over.order)
        order_item = self.over.order[0]
        other_value, value = self.keys[other][0], self.keys[position][0]
        if other_value is None or value is None:
            return compare(other_value, value, order_item.value.type, order_item.nulls_first)
        limit = _moved(value, order_item.value.type, -offset if order_item.descending else offset)
        sign = order(key_of(other_value, order_item.value.type), limit)
        return -sign if order_item.descending else sign

    def is_peer(self, position: int, other: int) -> bool:
        """Whether two rows are equal in the order."""
        return compare_ordered(self.keys[position], self.keys[other], self.over.order) == 0


def _moved(value: Any, type_: Type, offset: Any) -> Any:
    """A value's key plus an offset; FLOATs are added as FLOATs."""
    key = key_of(value, type_)
    assert not isinstance(key, str)
    return stored_value(key + offset, type_) if type_.kind is Kind.FLOAT else key + offset


def _rank(partition: _Partition, position: int) -> int:
    return 1 + next(other for other in range(position + 1) if partition.is_peer(position, other))


def _dense_rank(partition: _Partition, position: int) -> int:
    return 1 + sum(not partition.is_peer(other, other + 1) for other in range(position))


def _percent_rank(partition: _Partition, position: int) -> float:
    others = len(partition.keys) - 1
    return (_rank(partition, position) - 1) / others if others else 0.0


def _cume_dist(partition: _Partition, position: int) -> float:
    rows = range(len(partition.keys))
    return sum(other <= position or partition.is_peer(position, other) for other in rows) / len(rows)


def _ntile(partition: _Partition, position: int) -> int:
    """The number of the bucket; the first buckets have one more row if the sizes differ."""
    buckets = int(partition.over.call.parameters[0])
    size, larger = divmod(len(partition.keys), buckets)
    if position < larger * (size + 1):
        return position // (size + 1) + 1
    return larger + (position - larger * (size + 1)) // size + 1


def _beside(step: int, *, skip_nulls: bool = False) -> Callable[[_Partition, int], Any]:
    """The value N rows before or after, or the default; `skip_nulls` counts only rows that are not NULL."""

    def value(partition: _Partition, position: int) -> Any:
        call = partition.over.call
        count, other = int(call.parameters[0]), position
        while count > 0 and 0 <= other + step < len(partition.keys):
            other += step
            count -= not skip_nulls or partition.arguments[other][0] is not None
        if count > 0:
            return partition.arguments[position][1] if len(call.arguments) > 1 else None
        return partition.arguments[other][0]

    return value


_RANKS: dict[str, Callable[[_Partition, int], Any]] = {
    "row_number": lambda _, position: position + 1,
    "rank": _rank,
    "dense_rank": _dense_rank,
    "percent_rank": _percent_rank,
    "cume_dist": _cume_dist,
    "ntile": _ntile,
    "lag": _beside(-1),
    "lead": _beside(1),
    "lag_present": _beside(-1, skip_nulls=True),
    "lead_present": _beside(1, skip_nulls=True),
}
