"""The oracle: evaluates every query alone, from scratch, over all tuples so far.

The shared engine must return the same answers at every step, for any arrival order, any batching, and queries
registered before or after the data.
"""

from __future__ import annotations

import time as clocks
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from tureen.errors import DuplicateName, InvalidRows, InvalidSchema, UnknownQuery, UnknownStream
from tureen.functions.function_lookup import NamedFunctions
from tureen.functions.function_source import function_of
from tureen.functions.user_function import UserFunction, function_key
from tureen.join import InnerJoin
from tureen.language import bind_query
from tureen.predicate import AllOf, Opaque
from tureen.query import NOW, NamedRelation, Query, RelationKind, block_column
from tureen.schema import ARRIVAL, CLOCK, Column, Schema, name_key
from tureen.testing.evaluate import define, types_of
from tureen.testing.grouped import StreamRows, answer
from tureen.testing.joins import InputRow, JoinedInput, JoinRows, block_input, check_scalar, numbered_rows
from tureen.testing.steps import WindowView
from tureen.testing.truth import holds
from tureen.testing.tuples import OracleStream, Tuple, in_window
from tureen.testing.values import stored_value
from tureen.window import from_micros, to_micros

_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}


def wall_clock() -> int:
    """The wall clock, in microseconds since the epoch."""
    return clocks.time_ns() // 1000


@dataclass(frozen=True)
class Handle:
    """A registered query."""

    id: int
    query: Query
    oracle: Oracle = field(repr=False, compare=False)

    def invoke(self, now: datetime | int | None = None) -> list[dict[str, Any]]:
        """The answer over the current window."""
        return self.oracle.invoke(self, now)

    def unregister(self) -> None:
        """Unregister the query."""
        self.oracle.unregister(self)


class Oracle:
    """A reference implementation of the embedded soup, for queries over one stream.

    >>> oracle = Oracle()
    >>> oracle.create_stream("trades", "sym STRING, price DOUBLE")
    >>> cheap = oracle.register("SELECT sym FROM trades WHERE price < 2")
    >>> oracle.push("trades", [{"sym": "a", "price": 1.0}, {"sym": "b", "price": 3.0}])
    >>> cheap.invoke()
    [{'sym': 'a'}]
    """

    def __init__(self, clock: Callable[[], int] = wall_clock) -> None:
        """Start empty; `clock` returns the wall clock in microseconds."""
        self._clock = clock
        self._streams: dict[str, OracleStream] = {}
        self._tables: dict[str, OracleTable] = {}
        self._functions: dict[str, UserFunction] = {}
        self._handles: dict[int, Handle] = {}
        self._registered = 0

    def create_stream(
        self,
        name: str,
        schema: str | Schema,
        time: str | None = None,
        clock: str = "wall",
        retain: str | timedelta | None = None,
    ) -> None:
        """Create a stream; its schema is text as in Spark SQL."""
        if name.lower() in self._streams:
            raise DuplicateName(f"stream '{name}' already exists")
        if clock not in ("wall", "stream"):
            raise InvalidSchema(f"clock must be 'wall' or 'stream', got '{clock}'")
        bound = schema if isinstance(schema, Schema) else Schema.parse(schema, time)
        self._streams[name.lower()] = OracleStream(name, bound, clock, _interval(retain))

    def create_table(self, name: str, schema: str | Schema, rows: Iterable[Mapping[str, Any]]) -> None:
        """Create a table."""
        bound = schema if isinstance(schema, Schema) else Schema.parse(schema)
        self._tables[name_key(name)] = OracleTable(name, bound, [_values(row, bound) for row in rows])

    def create_function(self, name: str, function: Callable[..., Any], returns: str, *, arguments: str) -> None:
        """Create a function, which is called as it is, once for each row that needs it."""
        definition = function_of(name, function, returns, arguments)
        self._functions[function_key(name)] = definition
        define(definition, function)

    def replace_table(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Replace all rows of a table."""
        table = self._tables[name_key(name)]
        self.create_table(table.name, table.schema, rows)

    def push(
        self, name: str, rows: Iterable[Mapping[str, Any]] | pa.Table | pa.RecordBatch, at: int | None = None
    ) -> None:
        """Append rows, all or none; `at` is their arrival time where the stream has no time column."""
        stream = self._stream(name)
        row_dicts = rows.to_pylist() if isinstance(rows, pa.Table | pa.RecordBatch) else list(rows)
        arrival = from_micros(self._clock() if at is None else at)
        stored_rows = [_stored_row(row, stream.schema, arrival) for row in row_dicts]
        for values in stored_rows:
            moment = to_micros(values[stream.schema.time_column])
            stream.tuples.append(Tuple(len(stream.tuples), moment, values))

    def register(self, sql: str | Query) -> Handle:
        """Register a query, given as text or bound."""
        query = (
            sql if isinstance(sql, Query) else bind_query(sql, self._lookup, functions=NamedFunctions(self._functions))
        )
        self._registered += 1
        handle = Handle(self._registered, query, self)
        self._handles[handle.id] = handle
        return handle

    def unregister(self, handle: Handle) -> None:
        """Unregister a query."""
        if self._handles.pop(handle.id, None) is None:
            raise UnknownQuery(f"no query {handle.id}")

    def invoke(self, handle: Handle, now: datetime | int | None = None) -> list[dict[str, Any]]:
        """The answer at `now` (microseconds or a datetime): window → WHERE → groups → outputs and their order."""
        if handle.id not in self._handles:
            raise UnknownQuery(f"no query {handle.id}")
        query = handle.query
        wall = self._clock()
        if now is None:
            streams = [self._stream(entry.relation) for entry in query.leaves if entry.kind is RelationKind.STREAM]
            now = now_of(streams, wall)
        elif isinstance(now, datetime):
            now = to_micros(now)
        return self._answer(query, now, wall)

    def _answer(self, query: Query, now: int, wall: int) -> list[dict[str, Any]]:
        if query.joins:
            called = _called(query)
            inputs = [self._input(query, number, now, wall, called) for number in range(len(query.inputs))]
            return answer(JoinRows(query, inputs, now, answer, called))
        stream, span = self._stream(query.stream.relation), query.stream.window.span(now)
        view = WindowView(stream, span, now, wall, in_window(stream.retained(wall), span))
        return answer(StreamRows(query, view))

    def _input(
        self, query: Query, number: int, now: int, wall: int, called: Sequence[tuple[int, Opaque]]
    ) -> JoinedInput:
        entry = query.inputs[number]
        if entry.is_lateral:
            assert entry.block is not None
            return JoinedInput([], {block_column(0): entry.block.outputs[0].value.type})
        if entry.block is not None:
            source = block_input(entry.block, lambda block: self._answer(block, now, wall))
            check_scalar(entry, source.rows)
        elif entry.kind is RelationKind.TABLE:
            table = self._tables[name_key(entry.relation)]
            source = JoinedInput(
                numbered_rows(table.rows), {column.name: column.type for column in table.schema.columns}
            )
        else:
            stream, span = self._stream(entry.relation), entry.window.span(now)
            rows = [
                InputRow(tuple_.time, tuple_.number, tuple_.values) for tuple_ in in_window(stream.retained(wall), span)
            ]
            horizon = stream.horizon(wall)
            begin = max((time for time in (span.begin, horizon) if time is not None), default=None)
            types = {name: type_ for name, type_ in types_of(stream.schema).items() if name != NOW}
            source = JoinedInput(rows, types, replace(span, begin=begin))
        columns = Schema(tuple(Column(name, type_) for name, type_ in source.types.items()))
        clause = AllOf(tuple(factor for factor in entry.clause if (number, factor) not in called))
        return replace(source, rows=[row for row in source.rows if holds(clause, row.values, columns)])

    def tuples(self, name: str) -> list[Tuple]:
        """All tuples that were ever pushed to a stream, in arrival order."""
        return list(self._stream(name).tuples)

    def _stream(self, name: str) -> OracleStream:
        stream = self._streams.get(name.lower())
        if stream is None:
            raise UnknownStream(f"no stream '{name}'")
        return stream

    def _lookup(self, name: str) -> NamedRelation:
        table = self._tables.get(name_key(name))
        if table is not None:
            return NamedRelation(table.name, table.schema, RelationKind.TABLE)
        stream = self._stream(name)
        return NamedRelation(stream.name, stream.schema)


@dataclass(frozen=True)
class OracleTable:
    """A table and its rows."""

    name: str
    schema: Schema
    rows: list[dict[str, Any]]


def _called(query: Query) -> list[tuple[int, Opaque]]:
    """The factors of the inputs of an inner join that call functions."""
    source = query.source
    if not isinstance(source, InnerJoin) or len(source.sides) < 2:
        return []
    sides = [side for side in source.sides if isinstance(side, int) and query.inputs[side].block is None]
    return [
        (side, factor)
        for side in sides
        for factor in query.inputs[side].clause
        if isinstance(factor, Opaque) and factor.functions
    ]


def now_of(streams: list[OracleStream], wall: int) -> int:
    """The highest time seen if all streams have that clock, otherwise the wall clock."""
    if len(streams) == 1:
        return streams[0].now(wall)
    times = [stream.highest_time() for stream in streams if stream.clock == "stream"]
    known = [time for time in times if time is not None]
    return max(known) if known and len(times) == len(streams) else wall


def _values(row: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """The stored values of a row, by the declared names of all columns."""
    present: dict[str, Any] = {}
    for name, value in row.items():
        column = schema.find(name)
        if column is None:
            raise InvalidRows(f"unknown column '{name}'")
        present[column.name] = stored_value(value, column.type)
    return {column.name: present.get(column.name) for column in schema.columns}


def _stored_row(row: Mapping[str, Any], schema: Schema, arrival: datetime) -> dict[str, Any]:
    values = _values(row, schema)
    if schema.time is None:
        values[ARRIVAL] = arrival
    if schema.time is not None and values[schema.time] is None:
        raise InvalidRows(f"the time column '{schema.time}' is NULL")
    if schema.has_abstract_clock:
        values[CLOCK] = from_micros(round(values[str(schema.time)] * 1_000_000))
    return values


def _interval(text: str | timedelta | None) -> int | None:
    """A duration in microseconds: a timedelta, or a text such as `10 minutes`."""
    if text is None:
        return None
    if isinstance(text, timedelta):
        return text // timedelta(microseconds=1)
    count, unit = text.lower().split()
    return int(count) * _UNITS[unit.removesuffix("s")] * 1_000_000
