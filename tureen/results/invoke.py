"""Invocation: handle → window at NOW → the query's tuples in each run → gathered rows.

No Spark job, and no scan of what did not match: cells that are published are looked up, owed and lazy ones are
evaluated from the index, and only the tail is scanned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tureen.errors import QueryFailed
from tureen.language import bind_query
from tureen.matching import Selector
from tureen.pot.catalog import Catalog, micros_now
from tureen.pot.position import Position
from tureen.pot.queries import Registered
from tureen.pot.streams import Stream
from tureen.query import Query
from tureen.results.answer import Answer, Bounds
from tureen.results.gather import gather
from tureen.results.ranges import Range, ranges_of
from tureen.results.segment import Hits
from tureen.results.view import Cache, StreamState, View
from tureen.schema import Column, Schema
from tureen.window import Span

BOUND_QUERIES = 4096
"""How many queries a process keeps bound and ready."""


@dataclass(frozen=True)
class Ready:
    """A query that is bound to its stream and ready to be looked for in blocks."""

    query: Query
    selector: Selector


class Invoker:
    """Answers standing queries of one pot; needs neither the lease nor Spark."""

    def __init__(self, catalog: Catalog, clock: Callable[[], int] = micros_now) -> None:
        """Answer from that catalog, with NOW from that clock."""
        self.view = View(catalog)
        self._clock = clock
        self._ready: Cache[Ready] = Cache(BOUND_QUERIES)

    def invoke(self, handle: str, now: int | None = None) -> Answer:
        """The answer of a query at `now`, or at the stream's own NOW."""
        for _ in range(5):
            self.view.refresh()
            try:
                return self._answer(handle, now)
            except FileNotFoundError:
                # The files of an older view were merged away and swept; look again.
                self.view.forget()
        return self._answer(handle, now)

    def schema_of(self, handle: str) -> Schema:
        """The columns of a query's answers."""
        self.view.refresh()
        registered = self.view.query(handle)
        schema = self.view.stream(registered.stream_id).stream.schema
        query = self._bound(registered, schema).query
        found = [(output.name, schema.find(output.column)) for output in query.outputs]
        return Schema(tuple(Column(name, column.type) for name, column in found if column))

    def _answer(self, handle: str, now: int | None) -> Answer:
        registered, state = self._look_up(handle)
        _check_standing(registered)
        ready = self._bound(registered, state.stream.schema)
        moment = self.now_of(state.stream) if now is None else now
        span = ready.query.window.span(moment)
        horizon = state.stream.horizon(self._clock())
        ranges = ranges_of(state.segments, span, horizon)
        hits = _hits(state, ranges, registered, ready.selector)
        return Answer(
            table=gather(state.stream.schema, ready.query.outputs, hits),
            window=Bounds.of(span.begin, span.end if span.until is None else _sooner(span.end, span.until)),
            position=str(Position(state.seq)),
            complete=_complete(state, span, ranges, horizon),
        )

    def now_of(self, stream: Stream) -> int:
        """What NOW means for a stream: the wall clock, or the highest time seen."""
        if stream.clock == "stream" and stream.last_time is not None:
            return stream.last_time
        return self._clock()

    def explain(self, handle: str) -> dict[str, Any]:
        """How the query is answered: its factors, who shares them, and where its cells are."""
        self.view.refresh()
        registered, state = self._look_up(handle)
        ready = self._bound(registered, state.stream.schema)
        span = ready.query.window.span(self.now_of(state.stream))
        ranges = ranges_of(state.segments, span, state.stream.horizon(self._clock()))
        paths = {"published": 0, "owed": 0, "lazy": 0, "tail": 0}
        for segment, (first, last) in zip(state.segments, ranges, strict=True):
            if last > first:
                paths[_path(segment.matched_seq, registered)] += last - first
        return {
            "id": registered.id,
            "name": registered.name,
            "sql": registered.sql,
            "state": registered.state,
            "error": registered.error,
            "stream": state.stream.name,
            "factors": [str(factor) for factor in ready.query.clause],
            "materialized": registered.eager,
            "clause": registered.clause_id,
            "tuples_by_path": paths,
            "runs_in_window": sum(1 for first, last in ranges if last > first),
        }

    def _look_up(self, handle: str) -> tuple[Registered, StreamState]:
        state = self.view.stream(self.view.query(handle).stream_id)
        return self.view.query(handle, at_least=state.seq), state

    def _bound(self, registered: Registered, schema: Schema) -> Ready:
        def make() -> Ready:
            query = bind_query(registered.sql, lambda name: (name, schema))
            return Ready(query, Selector(query.clause, schema))

        return self._ready.get(registered.id, make)


def _hits(state: StreamState, ranges: list[Range], registered: Registered, selector: Selector) -> list[Hits]:
    hits: list[Hits] = []
    for segment, (first, last) in zip(state.segments, ranges, strict=True):
        if last > first:
            found = segment.hits(registered, selector, first, last)
            if len(found.rows):
                hits.append(found)
    return hits


def _check_standing(registered: Registered) -> None:
    if registered.error is not None:
        raise QueryFailed(
            f"query '{registered.name or registered.id}' was stopped",
            detail=registered.error,
            hint="unregister it, and register it again with the expression mended",
        )


def _complete(state: StreamState, span: Span, ranges: list[Range], horizon: int | None) -> bool:
    """Whether all that the window asks for is still there."""
    if horizon is None:
        return True
    if span.begin is not None and span.begin < horizon:
        return False
    if span.take is None:
        return True
    found = sum(last - first for first, last in ranges)
    return found + span.skip >= span.take or state.stream.next_id <= span.take


def _sooner(end: int | None, until: int) -> int:
    return until if end is None else min(end, until)


def _path(matched_seq: int | None, registered: Registered) -> str:
    if matched_seq is None:
        return "tail"
    if not registered.eager:
        return "lazy"
    return "published" if registered.clause_seq <= matched_seq else "owed"
