"""Answers from a derived stream that covers a query, instead of from its base stream.

A derived stream that selects some tuples of another one has what a narrower query needs, in fewer tuples. Its tuples
have ids of their own, but in the order of the base stream's, so the rows of an answer and their order are the same.
This is so only if nothing is missing and nothing is too much, which is checked for each answer: the derived stream
reflects exactly the tuples of the snapshot (`SyncPoint`). Otherwise, and without this fast path, the query is answered
from its base stream. The time of an answer is that of a stream with fewer tuples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from tureen.bounded_cache import BoundedCache
from tureen.errors import TureenError, UnknownStream
from tureen.fast_paths import FastPath, is_enabled
from tureen.join import parse_field
from tureen.language import bind_query
from tureen.pot.derived_streams import derived_streams, texts_of_queries
from tureen.pot.registered import Registered
from tureen.pot.relations import Relations
from tureen.pot.streams import Stream
from tureen.predicate import AllOf, columns_of, may_raise
from tureen.query import Query
from tureen.results.covers.composed_steps import Composition
from tureen.results.covers.shared_steps import SharedSteps
from tureen.results.covers.step_ledger import Recompute, StepReads
from tureen.results.covers.step_streams import StepStream, step_stream
from tureen.results.rows.ready import Ready
from tureen.results.snapshot.stream_state import Snapshot, StreamState
from tureen.results.snapshot.view import View
from tureen.sharing.covering import covers, residual
from tureen.sharing.properties import Properties
from tureen.window import WHOLE

KNOWN_QUERIES = 4096
"""The number of queries of which a process remembers what covers them."""

FEWER = 2
"""A derived stream is read if it has at most one in this many of the tuples of its base stream."""


class SyncPoint(NamedTuple):
    """How far a derived stream is: it has exactly the rows that follow from the tuples before these ids."""

    version: int
    """Changes whenever rows are pushed to it."""
    next_ids: Mapping[int, int]
    """For each of its inputs, the id of the next tuple that it does not reflect."""


class DerivedStates(Protocol):
    """What derives the streams of a pot in this process."""

    @property
    def stream_ids(self) -> frozenset[int]:
        """The derived streams."""
        ...

    def sync_point(self, stream_id: int) -> SyncPoint | None:
        """The state of a derived stream; None while rows are pushed to it."""
        ...

    def step_reads(self, stream_id: int) -> StepReads | None:
        """What a derived stream has read of the steps of its query; None if it has no steps."""
        ...


@dataclass(frozen=True)
class CoveringStream:
    """A derived stream that is a selection and projection of another one, with the columns under their own names."""

    stream: Stream
    base: Stream
    properties: Properties


@dataclass(frozen=True)
class Cover:
    """A derived stream from which a query is answered, and the query over it."""

    derived: CoveringStream
    ready: Ready


@dataclass(frozen=True)
class Reuse:
    """What an answer is computed from instead of the base stream, and both streams at one moment."""

    cover: Cover
    snapshot: Snapshot

    @property
    def state(self) -> StreamState:
        """The derived stream."""
        return self.snapshot.streams[self.cover.derived.stream.id]

    @property
    def tuples(self) -> int:
        """The number of tuples of the derived stream."""
        return _tuples(self.state)

    @property
    def base_tuples(self) -> int:
        """The number of tuples of the base stream."""
        return _tuples(self.snapshot.streams[self.cover.derived.base.id])


class _Known:
    """The derived streams of a set of ids, and the covers of queries."""

    def __init__(self, stream_ids: frozenset[int], by_base: Mapping[int, Sequence[CoveringStream]]) -> None:
        self.stream_ids = stream_ids
        self.by_base = by_base
        self.covers: BoundedCache[str, list[Cover]] = BoundedCache(KNOWN_QUERIES)


class CoveringStreams:
    """Finds the derived streams from which queries can be answered."""

    def __init__(
        self, view: View, count_rows: Callable[[Snapshot, CoveringStream], tuple[int, int]], recompute: Recompute
    ) -> None:
        """Look in that view.

        `count_rows` counts the tuples that a derived stream must have, and those that it has; `recompute` computes the
        rows of steps.
        """
        self._view = view
        self._count_rows = count_rows
        self._known = _Known(frozenset(), {})
        self._verified: dict[int, bool] = {}
        self._is_enabled = is_enabled(FastPath.REUSE)
        self._steps = SharedSteps(view, recompute)
        self.derived: DerivedStates | None = None
        """Set by what derives the streams; without it, nothing is known to be complete."""

    def find(self, registered: Registered, ready: Ready) -> Reuse | None:
        """The smallest derived stream that has exactly what a query needs now; None if there is none."""
        known = self._known_for(registered)
        if known is None or self.derived is None:
            return None
        listed = known.by_base.get(registered.stream_ids[0])
        if not listed:
            return None

        def covers_of_query() -> list[Cover]:
            return [cover for derived in listed if (cover := _cover(derived, ready.query)) is not None]

        candidates = known.covers.get(registered.id, covers_of_query) if registered.id else covers_of_query()
        usable = [reuse for cover in candidates if (reuse := self._synchronized(cover, self.derived)) is not None]
        return min(usable, key=lambda reuse: reuse.tuples, default=None)

    def find_steps(self, registered: Registered, ready: Ready) -> Composition | None:
        """The derived steps that those of a query can be composed of now; None if there are none."""
        if ready.query.steps is None or self._known_for(registered) is None or self.derived is None:
            return None
        return self._steps.find(registered, ready, self.derived.step_reads)

    def note_steps(self, registered: Registered, *, is_composed: bool) -> None:
        """Count an answer from derived steps; or its tuples were aggregated, which serves later answers."""
        self._steps.note(registered.id, is_composed=is_composed)

    def _known_for(self, registered: Registered) -> _Known | None:
        """The derived streams, as of now; None if a query does not need them."""
        if self.derived is None or not self._is_enabled or registered.stream.number is not None:
            return None  # the rows of an eager query are looked up
        stream_ids = self.derived.stream_ids
        if not stream_ids:
            return None
        known = self._known
        if known.stream_ids != stream_ids:
            self._known = known = self._read(stream_ids)
        return known

    def _read(self, stream_ids: frozenset[int]) -> _Known:
        """The derived streams that are a part of another one or steps of it, by the id of that one."""
        by_base: dict[int, list[CoveringStream]] = {}
        steps: dict[int, list[StepStream]] = {}
        with self._view.catalog.read() as tx:
            texts, relations = texts_of_queries(tx), Relations.of(tx)
            for entry in derived_streams(tx):
                if entry.stream.id in stream_ids:
                    derived = _covering_stream(entry.stream, texts[entry.query_id], relations)
                    if derived is not None:
                        by_base.setdefault(derived.base.id, []).append(derived)
                    in_steps = step_stream(entry.stream, texts[entry.query_id], relations)
                    if in_steps is not None:
                        steps.setdefault(in_steps.base.id, []).append(in_steps)
        self._steps.learn(steps)
        return _Known(stream_ids, by_base)

    def _synchronized(self, cover: Cover, states: DerivedStates) -> Reuse | None:
        """Both streams at one moment at which the derived one has exactly what follows from the other."""
        derived = cover.derived
        point = states.sync_point(derived.stream.id)
        if point is None:
            return None
        with suppress(UnknownStream):
            return self._snapshot(cover, states, point)
        return None  # it was dropped

    def _snapshot(self, cover: Cover, states: DerivedStates, point: SyncPoint) -> Reuse | None:
        derived = cover.derived
        snapshot = self._view.snapshot((derived.stream.id, derived.base.id))
        base, state = snapshot.streams[derived.base.id], snapshot.streams[derived.stream.id]
        after = states.sync_point(derived.stream.id)
        if after is None or after.version != point.version or point.next_ids.get(base.stream.id) != base.stream.next_id:
            return None
        if FEWER * _tuples(state) > _tuples(base) or not self._is_verified(snapshot, derived):
            return None
        return Reuse(cover, snapshot)

    def _is_verified(self, snapshot: Snapshot, derived: CoveringStream) -> bool:
        """Whether it has no tuples that its base stream lost, by a repair or in a copy; counted once per process."""
        is_verified = self._verified.get(derived.stream.id)
        if is_verified is None:
            try:
                expected, counted = self._count_rows(snapshot, derived)
            except TureenError:
                # Its selection raises, or a part of the base stream is damaged that this query may not need.
                expected, counted = 0, -1
            is_verified = self._verified[derived.stream.id] = expected == counted
        return is_verified


def _tuples(state: StreamState) -> int:
    return sum(segment.rows for segment in state.segments)


def _covering_stream(stream: Stream, sql: str, relations: Relations) -> CoveringStream | None:
    """A derived stream as a part of another one; None if its tuples are not those of one stream."""
    try:
        query = bind_query(sql, relations.describe, functions=relations.function)
    except TureenError:
        return None
    if query.joins or query.grouping is not None or query.steps is not None or query.stream.window != WHOLE:
        return None
    base = relations.find(query.stream.relation)
    # The tuples of a remote stream are in replicas, each of which has a part of them.
    if not isinstance(base, Stream) or base.home is not None:
        return None
    time = base.schema.time
    columns = frozenset(
        output.name
        for output in query.outputs
        if output.value.column is not None and parse_field(output.value.column).column == output.name
    )
    keeps_all = stream.retain is None or (base.retain is not None and stream.retain >= base.retain)
    # What queries over the base read from it is not among what it needs.
    keeps_all = keeps_all and not stream.keeps_needed
    if time is None or stream.schema.time != time or time not in columns or not keeps_all:
        return None
    return CoveringStream(stream, base, Properties(base.name, query.stream.clause, columns))


def _cover(derived: CoveringStream, query: Query) -> Cover | None:
    """A query over a derived stream; None if its answer may be another one."""
    if not _reads_rows_in_order(query):
        return None
    schema = derived.base.schema
    # A factor that raises for a tuple that the stream lacks must raise, so such factors imply nothing and stay.
    safe = tuple(factor for factor in query.stream.clause if not may_raise(factor))
    columns = frozenset(query.columns) | columns_of(AllOf(query.stream.clause))
    if not covers(schema, derived.properties, Properties(derived.base.name, safe, columns)):
        return None
    needed = residual(schema, derived.properties.clause, safe)
    clause = tuple(factor for factor in query.stream.clause if factor in needed or may_raise(factor))
    entry = replace(query.stream, relation=derived.stream.name, clause=clause)
    return Cover(derived, Ready.of(replace(query, inputs=(entry,)), derived.stream.schema))


def _reads_rows_in_order(query: Query) -> bool:
    """Whether a query is computed from the rows of its window alone, without groups or counting tuples."""
    window = query.stream.window
    return query.grouping is None and query.steps is None and not window.span(0).counts_rows and not query.joins
