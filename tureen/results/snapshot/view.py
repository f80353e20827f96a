"""A process's view of the pot: what it last read from the catalog and the inbox."""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from tureen.bounded_cache import BoundedCache
from tureen.errors import UnknownStream, UnknownTable
from tureen.handle import parse_member
from tureen.language.templates.member import member_text
from tureen.pot.catalog import Catalog, current_seq
from tureen.pot.heads import HeadsReader, log_directory
from tureen.pot.home_progress import latest
from tureen.pot.kept_joins import find_join
from tureen.pot.members import Members, load_members
from tureen.pot.queries import find_query, standing_version
from tureen.pot.registered import Registered
from tureen.pot.reserved_ids import reservations
from tureen.pot.runs import live_runs
from tureen.pot.streams import stream_by_id, taken_offsets
from tureen.pot.tables import Dimension, dimension_by_id
from tureen.pot.templates import Template, find_template
from tureen.pot.transaction import Transaction
from tureen.results.snapshot.pending import PendingRows
from tureen.results.snapshot.segment_cache import SegmentCache
from tureen.results.snapshot.stream_state import JoinState, RecentSnapshots, Snapshot, StreamState

NOT_RECEIVED = "this process does not receive streams of other servers"
"""The note of an answer over a remote stream in a process that only reads the pot."""

KEPT_TEMPLATES = 64
"""The maximum number of templates whose members a process caches."""

KEPT_QUERIES = 100_000
"""The maximum number of standing queries that a process caches."""


@dataclass(frozen=True)
class CachedStreams:
    """Streams as of one commit, as far as they were read."""

    token: int = -1
    """The catalog's token before they were read."""
    seq: int = -1
    committed: dict[int, StreamState] = field(default_factory=dict)
    """Without pending rows."""
    states: dict[int, StreamState] = field(default_factory=dict)
    """With the pending rows of the last time they were asked for."""
    tables: dict[str, Dimension] = field(default_factory=dict)
    joins: dict[int, JoinState | None] = field(default_factory=dict)
    """None for joins whose results are not kept."""
    recent: RecentSnapshots = field(default_factory=RecentSnapshots)


@dataclass(frozen=True)
class CachedQueries:
    """Standing queries and templates as of a commit, by the handles and names that were looked up."""

    seq: int = -1
    version: int = -1
    queries: dict[str, Registered] = field(default_factory=dict)
    templates: dict[str, Members] = field(default_factory=dict)

    def add(self, handle_or_name: str, query: Registered) -> None:
        """Add a query; the cache is cleared when it is full."""
        if len(self.queries) >= KEPT_QUERIES:
            self.queries.clear()
        self.queries[handle_or_name] = query


class View:
    """The state of the catalog and the inbox, read again only after it changed."""

    def __init__(self, catalog: Catalog) -> None:
        """Read from that catalog."""
        self.catalog = catalog
        self.trouble_of_replica: Callable[[int], str | None] = lambda _: NOT_RECEIVED
        """Why tuples of a stream that lives at another server may be missing; None if none are."""
        self._lock = threading.Lock()
        self._streams = CachedStreams()
        self._cached = CachedQueries()
        self.segments = SegmentCache(catalog)
        self._holding = threading.local()
        self._members: BoundedCache[Hashable, Members] = BoundedCache(KEPT_TEMPLATES)
        self._heads = HeadsReader(catalog.root / "inbox")
        self._pending: dict[int, PendingRows] = {}
        self._pending_lock = threading.Lock()

    def refresh(self) -> None:
        """Drop what may have changed since the last commit that was seen."""
        token = self.catalog.token()
        if token != self._streams.token:
            self._heads.refresh()
            with self._lock:
                self._renew()
                self._streams = CachedStreams(token)

    def stamp(self) -> tuple[int, int]:
        """The last refresh and the count of pushes: while they are the same, so are snapshots."""
        return self._streams.token, self._heads.pushes()

    @property
    def version(self) -> int:
        """The version of the standing queries at the last refresh."""
        return self._cached.version

    def forget(self) -> None:
        """Drop everything, so that it is read again."""
        with self._lock:
            self._streams, self._cached = CachedStreams(), CachedQueries()

    def query(self, handle_or_name: str, at_least: int = 0) -> Registered:
        """A standing query, as of the commit `at_least` or later.

        The query must not be older than the runs it is answered from. With a younger query, cells that it does not know
        to be written are evaluated. With an older one, it could expect cells that are not written.
        """
        cached = self._cached_at(at_least)
        query = cached.queries.get(handle_or_name)
        if query is None:
            query, is_current = self._member(cached, handle_or_name, at_least)
            if query is None:
                with self.catalog.read() as tx:
                    query = find_query(tx, handle_or_name)
                    is_current = standing_version(tx) == cached.version
            if is_current:
                cached.add(handle_or_name, query)
        return query

    def members(self, handle_or_name: str, at_least: int = 0) -> Members | None:
        """The queries of a template, as of the commit `at_least` or later; None if there is no such template.

        The template must not be older than the runs, or queries could be missed. A younger one is correct: a query that
        was added after a tuple is not matched with it.
        """
        cached = self._cached_at(at_least)
        members = cached.templates.get(handle_or_name)
        if members is None:
            with self.catalog.read() as tx:
                template = find_template(tx, handle_or_name)
                if template is None:
                    return None
                members = self._members.get(
                    _members_key(template), lambda: load_members(tx, self.catalog.root, template)
                )
                is_current = standing_version(tx) == cached.version
            if is_current:
                cached.templates[handle_or_name] = members
        return members

    def _member(self, cached: CachedQueries, handle_or_name: str, at_least: int) -> tuple[Registered | None, bool]:
        """A query of a template, and whether it has the version of the cached queries."""
        member = parse_member(handle_or_name)
        members = None if member is None else self.members(member.template, at_least)
        if member is None or members is None:
            return None, False
        return members.find(member.number, member_text), cached.templates.get(member.template) is members

    def _cached_at(self, at_least: int) -> CachedQueries:
        cached = self._cached
        if cached.seq < at_least:
            with self._lock:
                cached = self._renew()
        return cached

    def _renew(self) -> CachedQueries:
        """Read the current commit, and drop the cached queries if any may have changed."""
        before = self._cached
        with self.catalog.read() as tx:
            seq, version = current_seq(tx), standing_version(tx)
            if seq != before.seq:
                self._release(tx)
        if version == before.version:
            self._cached = CachedQueries(seq, version, before.queries, before.templates)
        else:
            self._cached = CachedQueries(seq, version)
        return self._cached

    def _release(self, tx: Transaction) -> None:
        """Drop the maps of files that are no longer live, and the pending rows of dropped streams."""
        self.segments.release(tx)
        if self._pending:
            live = taken_offsets(tx)
            with self._pending_lock:
                self._pending = {stream_id: rows for stream_id, rows in self._pending.items() if stream_id in live}

    def snapshot(
        self, stream_ids: Sequence[int], table_ids: Sequence[str] = (), join_ids: Sequence[int] = ()
    ) -> Snapshot:
        """Streams, tables and joins as of the last known commit, with all rows whose pushes have returned."""
        # Before the rows are read: a stream that gets the last missing ones meanwhile is not complete in this snapshot.
        troubles = self._troubles(stream_ids)
        snapshot = self._current(stream_ids, table_ids, join_ids)
        return replace(snapshot, troubles=troubles) if troubles else snapshot

    def _troubles(self, stream_ids: Sequence[int]) -> dict[int, str]:
        """Why tuples may be missing, of streams that are replicas or not known yet."""
        states = self._streams.states
        unknown = [
            number
            for number in stream_ids
            if (state := states.get(number)) is None or state.stream.replica_of is not None
        ]
        return {number: why for number in unknown if (why := self.trouble_of_replica(number)) is not None}

    def _current(self, stream_ids: Sequence[int], table_ids: Sequence[str], join_ids: Sequence[int]) -> Snapshot:
        cached, pushes = self._streams, self._heads.pushes()
        key, holds = (tuple(stream_ids), tuple(table_ids), tuple(join_ids)), getattr(self._holding, "all", False)
        known = None if holds else cached.recent.find(key, pushes)
        if known is not None:
            return known
        streams = {}
        for stream_id in stream_ids:
            state = cached.states.get(stream_id)
            if state is None or state.pushes != pushes:
                return self._read(stream_ids, table_ids, join_ids)
            streams[stream_id] = state
        if not stream_ids or not _has(cached.tables, table_ids) or not _has(cached.joins, join_ids):
            return self._read(stream_ids, table_ids, join_ids)
        if holds:
            _hold(streams)
        tables = {table_id: cached.tables[table_id] for table_id in table_ids} if table_ids else {}
        snapshot = Snapshot(cached.seq, pushes, streams, tables, _kept(cached, join_ids))
        cached.recent.add(key, snapshot)
        return snapshot

    def stream(self, stream_id: int) -> StreamState:
        """A stream and its runs."""
        return self.snapshot((stream_id,)).streams[stream_id]

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Map all files of the snapshots that this thread reads in the block, so that they may be removed."""
        self._holding.all = True
        try:
            yield
        finally:
            self._holding.all = False

    def _read(self, stream_ids: Sequence[int], table_ids: Sequence[str], join_ids: Sequence[int]) -> Snapshot:
        """A snapshot that includes all commits and pushes up to now."""
        while True:
            cached = self._read_committed(stream_ids, table_ids, join_ids)
            pushes = self._heads.pushes()
            streams = {stream_id: self._with_pending(cached, stream_id, pushes) for stream_id in stream_ids}
            unmoved = self.catalog.token() == cached.token
            seq = cached.seq if unmoved else self._unmoved_seq(cached, stream_ids, table_ids)
            if seq is not None:
                break
            self.refresh()
        self._keep_pending(streams)
        if seq == cached.seq:
            cached.states.update(streams)
        else:
            # Queries and templates must be as of a commit that is not before the last pushes.
            streams = {stream_id: replace(state, seq=seq) for stream_id, state in streams.items()}
        if getattr(self._holding, "all", False):
            _hold(streams)
        tables = {table_id: cached.tables[table_id] for table_id in table_ids}
        snapshot = Snapshot(seq, pushes, streams, tables, _kept(cached, join_ids))
        if seq == cached.seq:
            cached.recent.add((tuple(stream_ids), tuple(table_ids), tuple(join_ids)), snapshot)
        return snapshot

    def _with_pending(self, cached: CachedStreams, stream_id: int, pushes: int) -> StreamState:
        """A stream with the rows of its log that are not in runs."""
        committed, before = cached.committed[stream_id], cached.states.get(stream_id)
        end = max(self._heads.end(stream_id), committed.stream.taken)
        if before is not None and before.pending.end >= end:
            return before.at_pushes(pushes)
        pending = self._read_pending(committed, end)
        segments = [piece.segment for piece in pending.pieces]
        stream = committed.stream
        if segments or pending.home_time is not None:
            last_time = latest(stream.last_time, pending.home_time, *(segment.max_time for segment in segments))
            next_id = max([stream.next_id, *(piece.next_id for piece in pending.pieces)])
            stream = replace(stream, next_id=next_id, last_time=last_time)
        # Rows with reserved ids come before later ones that are in runs.
        segments = sorted([*committed.segments, *segments], key=lambda segment: segment.first_id)
        return replace(committed, stream=stream, segments=segments, pushes=pushes, pending=pending)

    def _read_pending(self, committed: StreamState, end: int) -> PendingRows:
        stream = committed.stream
        pending = self._shared_pending(committed)
        if pending.end < end:
            directory = log_directory(self.catalog.root, stream.id)
            pending = pending.read_to(directory, stream, committed.reserved, end)
            if pending.damaged and self._has_moved(committed):
                raise FileNotFoundError(f"the inbox of stream '{stream.name}' was trimmed")
        return pending

    def _shared_pending(self, committed: StreamState) -> PendingRows:
        """The pending rows after a commit that were read already: one object for all threads, which reads on once."""
        stream = committed.stream
        with self._pending_lock:
            pending = self._pending.get(stream.id)
            if pending is not None and pending.start > stream.taken:
                # Another thread has read a later commit.
                return committed.pending
            pending = (committed.pending if pending is None else pending).after(stream.taken)
            self._pending[stream.id] = pending
            return pending

    def _keep_pending(self, streams: Mapping[int, StreamState]) -> None:
        """Keep the pending rows that were read, unless another thread has read more."""
        with self._pending_lock:
            for stream_id, state in streams.items():
                known, new = self._pending.get(stream_id), state.pending
                if known is None or (new.start, new.end) > (known.start, known.end):
                    self._pending[stream_id] = new

    def _unmoved_seq(self, cached: CachedStreams, stream_ids: Sequence[int], table_ids: Sequence[str]) -> int | None:
        """The current commit; None if a commit to one of the relations may have come before the last pushes."""
        with self.catalog.read() as tx:
            seq = current_seq(tx)
            if any(dimension_by_id(tx, table_id) != cached.tables[table_id] for table_id in table_ids):
                return None
        return None if any(self._has_moved(cached.committed[stream_id]) for stream_id in stream_ids) else seq

    def _has_moved(self, committed: StreamState) -> bool:
        """Whether a later commit has added rows to a stream, or dropped it."""
        with self.catalog.read() as tx:
            current = stream_by_id(tx, committed.stream.id)
        before = committed.stream
        return current is None or (current.next_id, current.taken) != (before.next_id, before.taken)

    def _read_committed(
        self, stream_ids: Sequence[int], table_ids: Sequence[str], join_ids: Sequence[int]
    ) -> CachedStreams:
        """The cached streams and these, read in one transaction; of a later commit if there is one."""
        before = self._streams
        if _has(before.committed, stream_ids) and _has(before.tables, table_ids) and _has(before.joins, join_ids):
            return before
        with self.catalog.read() as tx:
            seq = current_seq(tx)
            cached = before if before.seq == seq else CachedStreams(before.token, seq)
            missing = [stream_id for stream_id in stream_ids if stream_id not in cached.committed]
            read = [
                (stream_by_id(tx, stream_id), live_runs(tx, stream_id), reservations(tx, stream_id))
                for stream_id in missing
            ]
            tables = {table_id: dimension_by_id(tx, table_id) for table_id in table_ids}
            joins = {join_id: find_join(tx, join_id) for join_id in join_ids if join_id not in cached.joins}
        for join_id, join in joins.items():
            cached.joins[join_id] = None if join is None else self.segments.join_state(join)
        for table_id, table in tables.items():
            if table is None:
                raise UnknownTable("a table of this query was dropped")
            cached.tables[table_id] = table
        for stream, runs, reserved in read:
            if stream is None:
                raise UnknownStream("the stream of this query was dropped")
            segments = self.segments.segments(stream.schema, runs)
            pending = PendingRows(stream.taken, stream.taken)
            keys = tuple(segment.key for segment in segments)
            cached.committed[stream.id] = StreamState(
                seq, stream, segments, runs, pending, reserved, committed_keys=keys
            )
        with self._lock:
            # After a refresh in the meantime, they are used for this answer only.
            if self._streams is before:
                self._streams = cached
        return cached


def _hold(streams: Mapping[int, StreamState]) -> None:
    for state in streams.values():
        for segment in state.segments:
            segment.hold()


def _has(cached: Container[Any], ids: Sequence[Any]) -> bool:
    return not ids or all(key in cached for key in ids)


def _kept(cached: CachedStreams, join_ids: Sequence[int]) -> dict[int, JoinState]:
    states = {join_id: cached.joins[join_id] for join_id in join_ids}
    return {join_id: state for join_id, state in states.items() if state is not None}


def _members_key(template: Template) -> Hashable:
    """A key that changes whenever a template's queries or their descriptions change."""
    return template.id, template.version, template.name, template.shared
