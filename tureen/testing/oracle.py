"""The oracle: evaluates every query alone, from scratch, over all tuples so far.

The shared engine must return the same answers at every step, for any arrival order, any batching, and queries
registered before or after the data.
"""

from __future__ import annotations

import time as clocks
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from tureen.errors import DuplicateName, InvalidRows, InvalidSchema, UnknownQuery, UnknownStream
from tureen.language import bind_query
from tureen.query import Query
from tureen.schema import ARRIVAL, Schema
from tureen.testing.evaluate import types_of
from tureen.testing.grouped import grouped_rows, grouped_types, stepped_rows, stepped_types
from tureen.testing.outputs import finish
from tureen.testing.steps import WindowView
from tureen.testing.truth import selected_rows
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
        query = sql if isinstance(sql, Query) else bind_query(sql, self._lookup)
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
        stream = self._stream(query.stream.relation)
        wall = self._clock()
        if now is None:
            now = stream.now(wall)
        elif isinstance(now, datetime):
            now = to_micros(now)
        span = query.stream.window.span(now)
        window = in_window(stream.retained(wall), span)
        view = WindowView(stream, span, now, wall, window)
        if query.grouping is not None:
            return finish(query, grouped_rows(query, query.grouping, view), grouped_types(query.grouping))
        if query.steps is not None:
            return finish(query, stepped_rows(query, query.steps, view), stepped_types(stream.schema))
        rows = selected_rows(query, window, stream.schema, now)
        return finish(query, rows, types_of(stream.schema))

    def tuples(self, name: str) -> list[Tuple]:
        """All tuples that were ever pushed to a stream, in arrival order."""
        return list(self._stream(name).tuples)

    def _stream(self, name: str) -> OracleStream:
        stream = self._streams.get(name.lower())
        if stream is None:
            raise UnknownStream(f"no stream '{name}'")
        return stream

    def _lookup(self, name: str) -> tuple[str, Schema]:
        stream = self._stream(name)
        return stream.name, stream.schema


def _stored_row(row: Mapping[str, Any], schema: Schema, arrival: datetime) -> dict[str, Any]:
    present: dict[str, Any] = {}
    for name, value in row.items():
        column = schema.find(name)
        if column is None:
            raise InvalidRows(f"unknown column '{name}'")
        present[column.name] = stored_value(value, column.type)
    values = {column.name: present.get(column.name) for column in schema.columns}
    if schema.time is None:
        values[ARRIVAL] = arrival
    if values[schema.time_column] is None:
        raise InvalidRows(f"the time column '{schema.time}' is NULL")
    return values


def _interval(text: str | timedelta | None) -> int | None:
    """A duration in microseconds: a timedelta, or a text such as `10 minutes`."""
    if text is None:
        return None
    if isinstance(text, timedelta):
        return text // timedelta(microseconds=1)
    count, unit = text.lower().split()
    return int(count) * _UNITS[unit.removesuffix("s")] * 1_000_000
