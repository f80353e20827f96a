"""A process's view of the pot: what the catalog said last, and the maps of the runs in use."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from sqlalchemy import Connection

from tureen.bounded_cache import BoundedCache
from tureen.errors import DamagedFile, PotError, UnknownStream
from tureen.handle import parse_member
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
"""How many runs and cell files a process keeps mapped for the next look, as long as they are live."""

KEPT_TEMPLATES = 64
"""Of how many templates a process keeps which of their queries stand."""

KEPT_QUERIES = 100_000
"""How many standing queries a process keeps."""

Value = TypeVar("Value")


FileKey = tuple[str | int, ...]
"""The paths of the files that a value was made of, and perhaps numbers."""


class FileCache(BoundedCache[FileKey, Value]):
    """Values that were made of files."""

    def files(self) -> set[str]:
        """The files of all values."""
        return {part for key in self.keys() for part in key if isinstance(part, str)}

    def drop_files(self, files: set[str]) -> None:
        """Remove what was made of any of some files."""
        self.drop(lambda key: not files.isdisjoint(key))


@dataclass(frozen=True)
class StreamState:
    """A stream at one commit: a consistent set of runs, in order of tuple id."""

    seq: int
    stream: Stream
    segments: list[Segment]
    runs: list[Run]


@dataclass(frozen=True)
class Snapshot:
    """Streams as of one commit: all that one answer is computed from."""

    seq: int = -1
    streams: dict[int, StreamState] = field(default_factory=dict)
    """The streams that were read so far."""


@dataclass(frozen=True)
class Standing:
    """Standing queries as they are at a commit, by the handles and names that were asked for."""

    seq: int = -1
    version: int = -1
    queries: dict[str, Registered] = field(default_factory=dict)
    templates: dict[str, Members] = field(default_factory=dict)

    def add(self, handle_or_name: str, found: Registered) -> None:
        """Keep one more; all go where they would be too many."""
        if len(self.queries) >= KEPT_QUERIES:
            self.queries.clear()
        self.queries[handle_or_name] = found


class View:
    """What the catalog says, read again only when it changed."""

    def __init__(self, catalog: Catalog) -> None:
        """Look at that catalog."""
        self.catalog = catalog
        self._token = -1
        self._lock = threading.Lock()
        self._snapshot = Snapshot()
        self._standing = Standing()
        self._maps: FileCache[Any] = FileCache(OPEN_RUNS)
        self._segments: FileCache[Segment] = FileCache(OPEN_RUNS)
        self._tails: FileCache[Segment] = FileCache(64)
        self._holding = threading.local()
        self._damaged: set[str] = set()
        self._members: BoundedCache[Hashable, Members] = BoundedCache(KEPT_TEMPLATES)

    def refresh(self) -> None:
        """Forget what is no longer so."""
        token = self.catalog.token()
        if token != self._token:
            with self._lock:
                self._snapshot = Snapshot()
                self._renew()
                self._token = token

    def forget(self) -> None:
        """Read everything again, whatever the token says."""
        with self._lock:
            self._snapshot, self._standing = Snapshot(), Standing()

    def query(self, handle_or_name: str, at_least: int = 0) -> Registered:
        """A standing query, as it was at a commit or later.

        Judged by a younger view of the query, an older view of the runs is right: a cell that the query does
        not count on is evaluated. The other way round, one could be missed.
        """
        kept = self._standing_at(at_least)
        found = kept.queries.get(handle_or_name)
        if found is None:
            found, same = self._member(kept, handle_or_name, at_least)
            if found is None:
                with self.catalog.read() as tx:
                    found = find_query(tx, handle_or_name)
                    same = standing_version(tx) == kept.version
            if same:
                kept.add(handle_or_name, found)
        return found

    def members(self, handle_or_name: str, at_least: int = 0) -> Members | None:
        """The queries of a template, as they were at a commit or later; None where there is no such template.

        Judged by a younger view of the rules, an older view of the runs misses none: a rule that came after a tuple is
        not matched with it.
        """
        kept = self._standing_at(at_least)
        found = kept.templates.get(handle_or_name)
        if found is None:
            with self.catalog.read() as tx:
                template = find_template(tx, handle_or_name)
                if template is None:
                    return None
                found = self._members.get(_members_key(template), lambda: load_members(tx, self.catalog.root, template))
                same = standing_version(tx) == kept.version
            if same:
                kept.templates[handle_or_name] = found
        return found

    def _member(self, kept: Standing, handle_or_name: str, at_least: int) -> tuple[Registered | None, bool]:
        """A query of a template, and whether it is what the kept queries are of."""
        member = parse_member(handle_or_name)
        members = None if member is None else self.members(member.template, at_least)
        if member is None or members is None:
            return None, False
        return members.find(member.number), kept.templates.get(member.template) is members

    def _standing_at(self, at_least: int) -> Standing:
        kept = self._standing
        if kept.seq < at_least:
            with self._lock:
                kept = self._renew()
        return kept

    def _renew(self) -> Standing:
        """Keep the queries that were read before where none of them can have changed."""
        before = self._standing
        with self.catalog.read() as tx:
            seq, version = current_seq(tx), standing_version(tx)
            if seq != before.seq:
                self._release(tx)
        same = version == before.version
        self._standing = Standing(seq, version, before.queries, before.templates) if same else Standing(seq, version)
        return self._standing

    def _release(self, tx: Connection) -> None:
        """Let go of the maps of files that are live no longer, and of what was made of them."""
        caches: tuple[FileCache[Any], ...] = (self._maps, self._segments, self._tails)
        replaced = replaced_files(tx, list(set().union(*(cache.files() for cache in caches))))
        for cache in caches if replaced else ():
            cache.drop_files(replaced)

    def snapshot(self, stream_ids: Sequence[int]) -> Snapshot:
        """Some streams as of one commit."""
        snapshot = self._snapshot
        if not all(stream_id in snapshot.streams for stream_id in stream_ids):
            snapshot = self._read(snapshot, stream_ids)
        if getattr(self._holding, "all", False):
            for stream_id in stream_ids:
                for segment in snapshot.streams[stream_id].segments:
                    segment.hold()
        return snapshot

    def stream(self, stream_id: int) -> StreamState:
        """One stream and its runs."""
        return self.snapshot((stream_id,)).streams[stream_id]

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Within the block, this thread gets snapshots with all files mapped, so that removing them does not matter."""
        self._holding.all = True
        try:
            yield
        finally:
            self._holding.all = False

    def _read(self, before: Snapshot, stream_ids: Sequence[int]) -> Snapshot:
        """A snapshot with some more streams, in one read transaction; of a later commit if there was one."""
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
            # A refresh in between starts from nothing, and this snapshot is for this answer alone.
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
        # A run that did not change since the last look keeps what was derived from it.
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
        """Neighbouring unindexed runs as one segment, scanned together; one by one where one is damaged or missing."""
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
        """Log damage that did not change an answer, and let the process that feeds the pot repair it."""
        if damage.file in self._damaged:
            return
        self._damaged.add(damage.file)
        log_damage(damage)
        try:
            with self.catalog.write() as tx:
                note_damage(tx, damage.file, damage.detail)
        except PotError as error:
            log.warning("the damage of '%s' could not be noted: %s", damage.file, error)


def _members_key(template: Template) -> Hashable:
    """What is another when anything that is said of a template's queries is."""
    return template.id, template.version, template.name, template.shared
