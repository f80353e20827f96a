"""When the groups of a query with EMIT FINAL are final: what each of its inputs must have closed.

The keys of a group fix the values of columns: a key that is a column, columns that the join or WHERE says are equal to
it, and columns that WHERE compares with a constant. A later tuple of an input can belong to a group only if it has
these values, and a time in the window and in the step of the group. If no input accepts such a tuple, it is final.

A group is final early if the inputs that do accept one cannot join it any more: another input, which is closed, has no
tuple left for it in its window at any time that a later tuple may have (PWJoin, Theorem 4.1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tureen.closed.closing_history import ClosingHistory
from tureen.closed.pattern import code_decimal
from tureen.closed.rules import Rules
from tureen.closed.tuple_groups import (
    GREATEST_TIME,
    LEAST_TIME,
    Mask,
    Times,
    TupleGroups,
    closed_groups,
    closed_times,
    least_open_time,
)
from tureen.join import Field, InnerJoin, JoinCompare, JoinTree, parse_field
from tureen.predicate import Compare, Key, Within
from tureen.query import Input, Query, RelationKind
from tureen.schema import INTEGRAL, Kind, Schema, Type
from tureen.window import At, Now, Window

Keys = Sequence[pa.Array]
"""The key columns of groups."""


@dataclass(frozen=True, slots=True)
class FixedColumn:
    """A column of an input that has one value for each group: that of a key, or a constant."""

    column: str
    type: Type
    key: int | None
    constant: Key | None = None

    def values(self, keys: Keys, count: int) -> pa.Array:
        """The value for each of some groups."""
        if self.key is not None:
            values = keys[self.key]
            values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
            return values if values.type == self.type.arrow else _narrowed(values, self.type)
        assert self.constant is not None
        return pa.repeat(_scalar(self.type, self.constant), count)


class StreamMoment(NamedTuple):
    """What is known of a stream at a position."""

    history: ClosingHistory
    number: int
    """The number of its next punctuation."""
    highest: int | None
    """The highest time of its tuples."""


class StepTimes(NamedTuple):
    """For each group, the first and the last time of its step; or of all steps, if there are none."""

    first: Times
    last: Times

    @classmethod
    def unlimited(cls, count: int) -> StepTimes:
        """No steps."""
        return cls(np.full(count, LEAST_TIME), np.full(count, GREATEST_TIME))


@dataclass(frozen=True)
class InputRule:
    """When an input accepts no later tuple of a group."""

    number: int
    """The number of the input."""
    schema: Schema
    rules: Rules
    window: Window
    fixed: tuple[FixedColumn, ...]

    @property
    def is_unique(self) -> bool:
        """Whether a group has at most one tuple of the input."""
        return bool(self.rules.unique) and {column.column for column in self.fixed} >= set(self.rules.unique)

    def groups(self, keys: Keys, bounds: StepTimes) -> TupleGroups:
        """The tuples of the input that may belong to groups."""
        count = len(bounds.first)
        begin, end = self.window.begin, self.window.end
        first = np.maximum(bounds.first, begin.micros if isinstance(begin, At) else LEAST_TIME)
        last = np.minimum(bounds.last, end.micros if isinstance(end, At) else GREATEST_TIME)
        values = {column.column: column.values(keys, count) for column in self.fixed}
        return TupleGroups(count, values, self._punctuated_time, first, last)

    @property
    def _punctuated_time(self) -> str | None:
        """The time column, if punctuations of it are about instants: not of an abstract clock."""
        return None if self.schema.has_abstract_clock else self.schema.time

    def closed(self, groups: TupleGroups, moment: StreamMoment) -> Mask:
        """Which groups get no later tuple; each of them has a tuple of this input."""
        mask = closed_groups(moment.history, groups, moment.number, self.least_late_time(moment))
        if self.is_unique:
            # It has the tuple with the key already; NULL is no key.
            has_key: Mask = np.ones(groups.size, np.bool_)
            for name in self.rules.unique:
                has_key &= groups.values[name].is_valid().to_numpy(zero_copy_only=False)
            mask |= has_key
        return mask

    def least_late_time(self, moment: StreamMoment) -> int | None:
        """The earliest time that the lateness of the stream accepts."""
        if self.rules.lateness is None or moment.highest is None:
            return None
        return moment.highest - self.rules.lateness

    def least_open_time(self, moment: StreamMoment) -> int:
        """The earliest time that a later tuple may have."""
        late_before = self.least_late_time(moment)
        return least_open_time(closed_times(moment.history, self._punctuated_time, moment.number, late_before))


LatestTimes = Callable[[InputRule, Keys, npt.NDArray[np.int64]], Times]
"""For some groups, by their numbers, the time of the latest tuple of an input that may belong to each."""


@dataclass(frozen=True)
class FinalRule:
    """When the groups of a query are final."""

    inputs: tuple[InputRule, ...]
    """Those that are streams; tables do not count."""

    @classmethod
    def of(cls, query: Query, schemas: Mapping[int, Schema], rules: Mapping[int, Rules]) -> FinalRule:
        """The rule of a query; schemas and rules of its streams by the number of the input."""
        assert query.grouping is not None
        equal = _equal_fields(query, schemas)
        fixed: dict[Field, tuple[int | None, Key | None]] = {}
        for number, schema in schemas.items():
            for column, constant in _constants(query.inputs[number]):
                assert schema.find(column) is not None
                for field in equal(Field(number, column)):
                    fixed[field] = None, constant
        for number, key in enumerate(query.grouping.keys):
            if key.column is not None:
                for field in equal(parse_field(key.column)):
                    fixed[field] = number, None
        return cls(
            tuple(
                InputRule(number, schema, rules[number], query.inputs[number].window, _columns(fixed, number, schema))
                for number, schema in schemas.items()
            )
        )

    def of_tuple(self, number: int) -> FinalRule:
        """The rule for all groups that a tuple of an input can belong to: with the columns that its values fix.

        Those of other inputs with their unique keys may not have arrived yet.
        """
        keys = {column.key for rule in self.inputs if rule.number == number for column in rule.fixed}
        return FinalRule(
            tuple(
                replace(
                    rule,
                    rules=rule.rules if rule.number == number else replace(rule.rules, unique=()),
                    fixed=tuple(column for column in rule.fixed if column.key is None or column.key in keys),
                )
                for rule in self.inputs
            )
        )

    def describe(self, query: Query) -> list[dict[str, Any]]:
        """For each input, the columns that groups fix: punctuations of these, or of the time, close a group."""
        return [
            {
                "input": query.inputs[rule.number].shown_name,
                "columns": [column.column for column in rule.fixed],
                "unique": rule.is_unique,
                "time": rule.schema.time if query.steps is not None or isinstance(rule.window.end, At) else None,
            }
            for rule in self.inputs
        ]

    def final(
        self, keys: Keys, bounds: StepTimes, moments: Mapping[int, StreamMoment], latest_times: LatestTimes
    ) -> Mask:
        """Which groups are final; `moments` has the streams of the inputs, by the numbers of the inputs."""
        count = len(bounds.first)
        closed = {rule.number: rule.closed(rule.groups(keys, bounds), moments[rule.number]) for rule in self.inputs}
        final: Mask = np.ones(count, np.bool_)
        for mask in closed.values():
            final &= mask
        if len(self.inputs) > 1:
            self._add_early(final, closed, keys, moments, latest_times)
        return final

    def _add_early(
        self,
        final: Mask,
        closed: Mapping[int, Mask],
        keys: Keys,
        moments: Mapping[int, StreamMoment],
        latest_times: LatestTimes,
    ) -> None:
        """Add the groups that no later tuple can join, because their tuples of a closed input have left its window."""
        begins = {rule.number: rule.window.begin for rule in self.inputs}
        least = {rule.number: rule.least_open_time(moments[rule.number]) for rule in self.inputs}
        some_closed: Mask = np.zeros(len(final), np.bool_)
        for rule in self.inputs:
            if isinstance(begins[rule.number], Now):
                some_closed |= closed[rule.number]
        for other in self.inputs:
            if least[other.number] == LEAST_TIME:
                # Any time may follow: where it is not closed, nothing is early.
                some_closed &= closed[other.number]
        candidates = np.flatnonzero(some_closed & ~final)
        if not len(candidates):
            return
        unreachable = {other.number: closed[other.number][candidates].copy() for other in self.inputs}
        for rule in self.inputs:
            begin = begins[rule.number]
            if not isinstance(begin, Now):
                continue
            latest = latest_times(rule, keys, candidates)
            for other in self.inputs:
                if other.number != rule.number and least[other.number] > LEAST_TIME:
                    has_left = latest < begin.at(least[other.number])
                    unreachable[other.number] |= closed[rule.number][candidates] & has_left
        final[candidates] = np.logical_and.reduce(list(unreachable.values()))


def _columns(
    fixed: Mapping[Field, tuple[int | None, Key | None]], number: int, schema: Schema
) -> tuple[FixedColumn, ...]:
    columns = []
    for field, (key, constant) in fixed.items():
        column = schema.find(field.column) if field.input == number else None
        if column is not None:
            columns.append(FixedColumn(column.name, column.type, key, constant))
    return tuple(columns)


def _equal_fields(query: Query, schemas: Mapping[int, Schema]) -> Callable[[Field], set[Field]]:
    """For a column, all columns that have its value in every row: of the same type, or all integers."""
    classes: dict[Field, set[Field]] = {}

    def type_of(field: Field) -> Type | None:
        column = schemas[field.input].find(field.column) if field.input in schemas else None
        return None if column is None else column.type

    def unite(left: Field, right: Field) -> None:
        kinds = {None if kind is None else kind.kind for kind in (type_of(left), type_of(right))}
        if type_of(left) is None or (type_of(left) != type_of(right) and not kinds <= INTEGRAL):
            return
        union = classes.get(left, {left}) | classes.get(right, {right})
        for field in union:
            classes[field] = union

    for factor in inner_factors(query.source):
        if isinstance(factor, JoinCompare) and factor.op == "=" and not factor.offset:
            unite(factor.left, factor.right)
    for number in schemas:
        for condition in query.inputs[number].clause:
            if isinstance(condition, Compare) and condition.op == "=" and not condition.offset:
                unite(Field(number, condition.left), Field(number, condition.right))
    return lambda field: classes.get(field, {field})


def inner_factors(tree: JoinTree) -> list[object]:
    """The conditions that every row of a tree of inner joins satisfies."""
    if not isinstance(tree, InnerJoin):
        return []
    return [*tree.factors, *(factor for side in tree.sides for factor in inner_factors(side))]


def _constants(entry: Input) -> list[tuple[str, Key]]:
    """The columns that WHERE compares with one constant."""
    constants: list[tuple[str, Key]] = []
    for factor in entry.clause:
        if isinstance(factor, Within) and len(factor.intervals) == 1:
            low, high = factor.intervals[0].low, factor.intervals[0].high
            is_open = factor.intervals[0].low_open or factor.intervals[0].high_open
            if low is not None and low == high and not is_open:
                constants.append((factor.column, low))
    return constants


def _scalar(column_type: Type, constant: Key) -> pa.Scalar:
    """A constant of a clause as a value of its column."""
    match column_type.kind:
        case Kind.DECIMAL:
            return pa.scalar(code_decimal(int(constant), column_type.scale), column_type.arrow)
        case Kind.BOOLEAN:
            return pa.scalar(bool(constant))
        case Kind.DATE:
            return pa.scalar(constant, pa.int32()).cast(column_type.arrow)
        case Kind.TIMESTAMP:
            return pa.scalar(constant, pa.int64()).cast(column_type.arrow)
    return pa.scalar(constant, column_type.arrow)


def _narrowed(values: pa.Array, column_type: Type) -> pa.Array:
    """Integers as integers of another size; NULL where a value does not fit, which no tuple can have."""
    narrow = pc.cast(values, column_type.arrow, safe=False)
    return pc.if_else(pc.equal(pc.cast(narrow, values.type, safe=False), values), narrow, None)


def stream_inputs(query: Query) -> list[int]:
    """The numbers of the inputs that are streams."""
    return [number for number, entry in enumerate(query.inputs) if entry.kind is RelationKind.STREAM]
