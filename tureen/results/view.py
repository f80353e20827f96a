"""A process's view of the pot: what it last read from the catalog, and the files that it has mapped."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from sqlalchemy import Connection

from tureen.bounded_cache import BoundedCache
from tureen.errors import DamagedFile, PotError, UnknownStream
from tureen.handle import parse_member
from tureen.language.templates.member import member_text
from tureen.position import Mark, Position
from tureen.pot.catalog import Catalog, current_seq
from tureen.pot.damage import note_damage
from tureen.pot.members import Members, load_members
from tureen.pot.queries import Registered, find_query, standing_version
from tureen.pot.runs import Run, live_runs, replaced_files
from tureen.pot.streams import Stream, stream_by_id
from tureen.pot.templates import Template, find_template
from tureen.results.segment import Segment
from tureen.schema import Schema
from tureen.stems.run import OpenRun, in_memory, log, log_damage, open_cells, open_run, sort_by_time

OPEN_RUNS = 1024
"""The maximum number of runs and cell files that a process keeps mapped while they are live."""

KEPT_TEMPLATES = 64
"""The maximum number of templates whose members a process caches."""

KEPT_QUERIES = 100_000
"""The maximum number of standing queries that a process caches."""

Value = TypeVar("Value")


FileKey = tuple[str | int, ...]
"""The paths of the files that a value is derived from, and possibly numbers."""


class FileCache(BoundedCache[FileKey, Value]):
    """Values that are derived from files."""

    def files(self) -> set[str]:
        """The files of all values."""
        return {part for key in self.keys() for part in key if isinstance(part, str)}

    def drop_files(self, files: set[str]) -> None:
        """Remove the values that are derived from any of the files."""
        self.drop(lambda key: not files.isdisjoint(key))


@dataclass(frozen=True)
class StreamState:
    """A stream at one commit: a consistent set of runs, in order of tuple id."""

    seq: int
    stream: Stream
    segments: list[Segment]
    runs: list[Run]

    @cached_property
    def position(self) -> str:
        """The position of the answers that are computed from it."""
        return str(Position(self.seq, {self.stream.id: Mark(self.stream.next_id)}))


@dataclass(frozen=True)
class Snapshot:
    """Streams as of one commit; an answer is computed from one snapshot."""

    seq: int = -1
    streams: dict[int, StreamState] = field(default_factory=dict)
    """The streams that have been read."""


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
    """The state of the catalog, read again only after it changed."""

    def __init__(self, catalog: Catalog) -> None:
        """Read from that catalog."""
        self.catalog = catalog
        self._token = -1
        self._lock = threading.Lock()
        self._snapshot = Snapshot()
        self._cached = CachedQueries()
        self._maps: FileCache[Any] = FileCache(OPEN_RUNS)
        self._segments: FileCache[Segment] = FileCache(OPEN_RUNS)
        self._tails: FileCache[Segment] = FileCache(64)
        self._holding = threading.local()
        self._damaged: set[str] = set()
        self._members: BoundedCache[Hashable, Members] = BoundedCache(KEPT_TEMPLATES)

    def refresh(self) -> None:
        """Drop what may have changed since the last commit that was seen."""
        token = self.catalog.token()
        if token != self._token:
            with self._lock:
                self._snapshot = Snapshot()
                self._renew()
                self._token = token

    def forget(self) -> None:
        """Drop everything, so that it is read again."""
        with self._lock:
            self._snapshot, self._cached = Snapshot(), CachedQueries()

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

    def _release(self, tx: Connection) -> None:
        """Drop the maps of files that are no longer live, and what is derived from them."""
        caches: tuple[FileCache[Any], ...] = (self._maps, self._segments, self._tails)
        replaced = replaced_files(tx, list(set().union(*(cache.files() for cache in caches))))
        for cache in caches if replaced else ():
            cache.drop_files(replaced)

    def snapshot(self, stream_ids: Sequence[int]) -> Snapshot:
        """Streams as of one commit."""
        snapshot = self._snapshot
        for stream_id in stream_ids:
            if stream_id not in snapshot.streams:
                snapshot = self._read(snapshot, stream_ids)
                break
        if getattr(self._holding, "all", False):
            for stream_id in stream_ids:
                for segment in snapshot.streams[stream_id].segments:
                    segment.hold()
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

    def _read(self, before: Snapshot, stream_ids: Sequence[int]) -> Snapshot:
        """A snapshot with more streams, read in one transaction; of a later commit if there is one."""
        with self.catalog.read() as tx:
            seq = current_seq(tx)
            snapshot = before if before.seq == seq else Snapshot(seq)
            missing = [stream_id for stream_id in stream_ids if stream_id not in snapshot.streams]
            read = [(stream_by_id(tx, stream_id), live_runs(tx, stream_id)) for stream_id in missing]
        for stream, runs in read:
            if stream is None:
                raise UnknownStream("the stream of this query was dropped")
            snapshot.streams[stream.id] = StreamState(seq, stream, self._segments_of(stream, runs), runs)
        with self._lock:
            # After a refresh in the meantime, this snapshot is used for this answer only.
            if self._snapshot is before:
                self._snapshot = snapshot
        return snapshot

    def _segments_of(self, stream: Stream, runs: Sequence[Run]) -> list[Segment]:
        segments: list[Segment] = []
        tail: list[Run] = []
        for run in runs:
            if not run.indexed:
                tail.append(run)
                continue
            if tail:
                segments += self._tail(tail, stream.schema)
                tail = []
            segments.append(self._segment(run, stream.schema))
        if tail:
            segments += self._tail(tail, stream.schema)
        return segments

    def _segment(self, run: Run, schema: Schema) -> Segment:
        # What is derived from a run remains valid while its files are the same.
        key: FileKey = (run.matched_seq, run.path, *(cells.path for cells in run.cells))
        return self._segments.get(key, lambda: self._new_segment(run, schema))

    def _new_segment(self, run: Run, schema: Schema) -> Segment:
        return Segment(
            (run.id,),
            run.first_id,
            run.rows,
            run.min_time,
            run.max_time,
            lambda: self._open(run, schema),
            lambda: [self._cells(cells.path) for cells in run.cells],
            run.matched_seq if run.indexed else None,
            self._report,
        )

    def _tail(self, runs: list[Run], schema: Schema) -> list[Segment]:
        """Neighbouring runs of the tail as one segment; as separate segments if a file is damaged or missing."""
        try:
            return [self._tails.get(tuple(run.path for run in runs), lambda: self._join(runs, schema))]
        except (DamagedFile, FileNotFoundError):
            return [self._new_segment(run, schema) for run in runs]

    def _join(self, runs: list[Run], schema: Schema) -> Segment:
        tables = [self._open(run, schema).table(schema, run.first_id - runs[0].first_id) for run in runs]
        tuples = sort_by_time(schema, pa.concat_tables(tables))
        joined = in_memory(schema, tuples)
        key = tuple(run.id for run in runs)
        return Segment(
            key, runs[0].first_id, len(tuples.table), tuples.min_time, tuples.max_time, lambda: joined, list, None
        )

    def _open(self, run: Run, schema: Schema) -> OpenRun:
        opened: OpenRun = self._maps.get((run.path,), lambda: open_run(self._path(run.path), schema, self._report))
        return opened

    def _cells(self, path: str) -> Any:
        return self._maps.get((path,), lambda: open_cells(self._path(path)))

    def _path(self, path: str) -> Path:
        return self.catalog.root / path

    def _report(self, damage: DamagedFile) -> None:
        """Log damage that did not change an answer, and record it for the engine, which repairs it."""
        if damage.file in self._damaged:
            return
        self._damaged.add(damage.file)
        log_damage(damage)
        try:
            with self.catalog.write() as tx:
                note_damage(tx, damage.file, damage.detail)
        except PotError as error:
            log.warning("cannot record the damage of '%s': %s", damage.file, error)


def _members_key(template: Template) -> Hashable:
    """A key that changes whenever a template's queries or their descriptions change."""
    return template.id, template.version, template.name, template.shared
