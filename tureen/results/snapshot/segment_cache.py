"""Segments of a pot's runs: files are mapped once per process, and what is derived from them is kept."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from tureen.bounded_cache import BoundedCache
from tureen.errors import DamagedFile, PotError
from tureen.pot.catalog import Catalog
from tureen.pot.damage import note_damage
from tureen.pot.kept_joins import KeptJoin
from tureen.pot.key_files import KeyFile
from tureen.pot.parts import missing_file
from tureen.pot.runs import Run, replaced_files
from tureen.pot.transaction import Transaction
from tureen.results.snapshot.segment import Segment
from tureen.results.snapshot.stream_state import JoinState
from tureen.schema import Schema
from tureen.stems.join_run import OpenJoinRun
from tureen.stems.run import OpenRun, in_memory, log, log_damage, open_cells, open_run, sort_by_time
from tureen.stems.stored_keys import StoredKeys, open_key_index

OPEN_RUNS = 1024
"""The maximum number of runs and cell files that a process keeps mapped while they are live."""

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


class SegmentCache:
    """The files of a pot that a process has mapped, and the segments that are derived from them."""

    def __init__(self, catalog: Catalog) -> None:
        """Open files of the catalog's pot."""
        self._catalog = catalog
        self._maps: FileCache[Any] = FileCache(OPEN_RUNS)
        self._segments: FileCache[Segment] = FileCache(OPEN_RUNS)
        self._tails: FileCache[Segment] = FileCache(64)
        self._damaged: set[str] = set()

    def release(self, tx: Transaction) -> None:
        """Drop the maps of files that are no longer live, and what is derived from them."""
        caches: tuple[FileCache[Any], ...] = (self._maps, self._segments, self._tails)
        replaced = replaced_files(tx, list(set().union(*(cache.files() for cache in caches))))
        for cache in caches if replaced else ():
            cache.drop_files(replaced)

    def segments(self, schema: Schema, runs: Sequence[Run]) -> list[Segment]:
        """Runs in order of tuple id as segments."""
        segments: list[Segment] = []
        tail: list[Run] = []
        for run in runs:
            # Pending rows may have the ids of a gap.
            if tail and (run.indexed or run.first_id != tail[-1].first_id + tail[-1].rows):
                segments += self._tail(tail, schema)
                tail = []
            if run.indexed:
                segments.append(self._segment(run, schema))
            else:
                tail.append(run)
        if tail:
            segments += self._tail(tail, schema)
        return segments

    def _segment(self, run: Run, schema: Schema) -> Segment:
        # What is derived from a run remains valid while its files are the same.
        added = [*(cells.path for cells in run.cells), *(file.path for file in run.key_files)]
        key: FileKey = (run.matched_seq, run.path, *added)
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
            self.report,
            {file.columns: partial(self._key_file, run, file) for file in run.key_files},
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
        opened: OpenRun = self._maps.get((run.path,), lambda: open_run(self._path(run.path), schema, self.report))
        return opened

    def join_state(self, join: KeptJoin) -> JoinState | None:
        """A kept join with its runs; None if its results are not kept, or one of its files is damaged."""
        if not any(join.progress):
            return None
        try:
            return JoinState(join, [self._join_run(run.path) for run in join.runs])
        except DamagedFile as damage:
            self.report(damage)
            return None
        except FileNotFoundError as error:
            missing = missing_file(error)
            with self._catalog.read() as tx:
                if replaced_files(tx, [missing.file]):
                    raise
            self.report(missing)
            return None

    def _join_run(self, path: str) -> OpenJoinRun:
        opened: OpenJoinRun = self._maps.get((path,), lambda: OpenJoinRun(self._path(path), self.report))
        return opened

    def _cells(self, path: str) -> Any:
        return self._maps.get((path,), lambda: open_cells(self._path(path)))

    def _key_file(self, run: Run, file: KeyFile) -> StoredKeys | None:
        """A key file; None if it is damaged, which is reported, or missing: the engine writes it again."""
        path = self._path(file.path)
        try:
            opened: StoredKeys = self._maps.get(
                (file.path,), lambda: open_key_index(path, file.columns, run.rows, self.report)
            )
        except DamagedFile as damage:
            self.report(damage)
            return None
        except FileNotFoundError:
            return None
        return opened

    def _path(self, path: str) -> Path:
        return self._catalog.root / path

    def report(self, damage: DamagedFile) -> None:
        """Log damage that did not change an answer, and record it for the engine, which repairs it."""
        if damage.file in self._damaged:
            return
        self._damaged.add(damage.file)
        log_damage(damage)
        try:
            with self._catalog.write() as tx:
                note_damage(tx, damage.file, damage.detail)
        except PotError as error:
            log.warning("cannot record the damage of '%s': %s", damage.file, error)
