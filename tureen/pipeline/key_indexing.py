"""Key indexes in advance: which ones standing joins need, and those of runs that were written before.

New and merged runs have them in their files. Those of other runs are written to files of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from tureen.errors import DamagedFile, TureenError
from tureen.faults import crash_point
from tureen.joining.key_columns import columns_of_streams
from tureen.keys import KeyColumns
from tureen.language.languages import bind_text
from tureen.pipeline import arrival
from tureen.pot.catalog import Catalog, check_attempt
from tureen.pot.files import durable_file, new_attempt
from tureen.pot.key_files import KeyFile, drop_unneeded_key_files, publish_key_files
from tureen.pot.needed_keys import StreamKeys, all_keys, set_keys
from tureen.pot.queries import last_registration, standing_version, texts_of_joins
from tureen.pot.relations import Relations, StoredRelation
from tureen.pot.runs import Run, live_runs, streams_with_large_runs
from tureen.pot.streams import Stream, stream_by_id, taken_offsets
from tureen.pot.transaction import Transaction
from tureen.results.joins.key_indexes import KeyIndexes, key_index_of_run
from tureen.results.snapshot.segment import Segment
from tureen.results.snapshot.segment_cache import SegmentCache
from tureen.stems.key_index import KeyIndex, ProbeKeys
from tureen.stems.stored_keys import write_key_index

ROWS_AT_ONCE = 1 << 21
"""The maximum rows, counted for each of their indexes, that are indexed before other upkeep continues."""

SHAPES_AT_ONCE = 64
"""The maximum number of shapes of joins that are bound before other upkeep continues."""


class KeyIndexer:
    """Writes the key indexes of one pot, in the process that has its engine."""

    def __init__(self, catalog: Catalog, segments: SegmentCache, indexes: KeyIndexes) -> None:
        """Index the segments of the process, which may have built some indexes in memory."""
        self._catalog, self._segments, self._indexes = catalog, segments, indexes
        self._planned_at = -1, -1
        self._by_shape: dict[str, frozenset[StreamKeys]] = {}
        self._needed: frozenset[StreamKeys] = frozenset()
        self.is_behind = False
        """Whether something remains to be done, although nothing has changed."""

    def plan(self) -> None:
        """Find out which indexes the standing joins need, and drop files that only unregistered ones needed.

        Writers of runs are told by the catalog. Queries of one shape need the same, so one of them is bound.
        """
        with self._catalog.read() as tx:
            state = standing_version(tx), last_registration(tx)
            if state == self._planned_at:
                return
            texts, streams = texts_of_joins(tx), set(taken_offsets(tx))
            by_shape = {
                shape: columns
                for shape, columns in self._by_shape.items()
                if shape in texts and streams.issuperset(stream_id for stream_id, _ in columns)
            }
            unknown = [shape for shape in texts if shape not in by_shape]
            for shape in unknown[:SHAPES_AT_ONCE]:
                by_shape[shape] = _columns_of(tx, *texts[shape])
            stored = all_keys(tx)
        self._by_shape = by_shape
        self._planned_at = (-1, -1) if len(unknown) > SHAPES_AT_ONCE else state
        needed = frozenset().union(*by_shape.values())
        self._needed = needed
        if self._planned_at == state and stored != needed:
            crash_point("keys.before_commit")
            with self._catalog.write() as tx:
                set_keys(tx, needed)
                drop_unneeded_key_files(tx, needed)
                crash_point("keys.in_commit")
            crash_point("keys.after_commit")

    def build(self) -> bool:
        """Write the indexes that large runs lack, and verify those that were not yet; True if there were any."""
        rows = 0
        written: list[tuple[int, KeyFile]] = []
        attempt = new_attempt()
        self.is_behind = self._planned_at[0] < 0
        for segment, run, columns in self._large_runs():
            if rows >= ROWS_AT_ONCE:
                self.is_behind = True
                break
            try:
                stored = segment.stored_keys(columns)
                if stored is not None and stored.is_open(columns):
                    continue
                index = None if stored is None else stored.find(columns)
                if index is None:
                    index = key_index_of_run(segment.run(), columns)
                    path = f"streams/{run.stream_id}/{attempt}-{len(written)}.keys"
                    written.append((run.id, self._write(path, columns, index)))
                # Loads the compiled loops, which an invocation would wait for.
                keys, valid = np.zeros((len(columns), 1), np.int64), np.ones(1, np.bool_)
                index.find(ProbeKeys.in_hash_order(keys, valid))
                self._indexes.drop(segment.run(), columns)
                rows += segment.rows
            except DamagedFile as damage:
                self._segments.report(damage)
            except FileNotFoundError:
                continue  # merged or dropped in the meantime
        if written:
            self._publish(attempt, written)
        return rows > 0

    def _write(self, path: str, columns: KeyColumns, index: KeyIndex) -> KeyFile:
        crash_point("key_file.before_write")
        with durable_file(self._catalog.root / path) as file:
            write_key_index(file, Path(path).name, index)
            size = file.tell()
        crash_point("key_file.after_write")
        return KeyFile(columns, path, size)

    def _publish(self, attempt: str, written: Sequence[tuple[int, KeyFile]]) -> None:
        crash_point("key_file.before_commit")
        with self._catalog.write() as tx:
            check_attempt(tx, attempt)
            publish_key_files(tx, written)
            crash_point("key_file.in_commit")
        crash_point("key_file.after_commit")

    def _large_runs(self) -> Iterator[tuple[Segment, Run, KeyColumns]]:
        """The large runs of streams with the columns of their indexes, the newest of each stream first."""
        if not self._needed:
            return
        with self._catalog.read() as tx:
            large = streams_with_large_runs(tx, arrival.KEYED_ROWS)
            streams = {stream_id: stream_by_id(tx, stream_id) for stream_id, _ in self._needed if stream_id in large}
            runs = {stream_id: live_runs(tx, stream_id) for stream_id in streams}
            # With their indexes; an invocation does the same, but there may be none for a long time.
            self._segments.release(tx)
        for stream_id, columns in sorted(self._needed):
            stream = streams.get(stream_id)
            if stream is None:
                continue
            for run in reversed(runs[stream_id]):
                if run.indexed and run.rows >= arrival.KEYED_ROWS:
                    (segment,) = self._segments.segments(stream.schema, [run])
                    yield segment, run, columns


def _columns_of(tx: Transaction, text: str, language: str) -> frozenset[StreamKeys]:
    """The indexes that a query needs; none if it cannot be bound any more."""
    relations = Relations.of(tx)
    try:
        query = bind_text(text, language, relations.describe, relations.function)
    except TureenError:
        return frozenset()
    return columns_of_streams(query, [_stored_stream(relations.find(leaf.relation)) for leaf in query.leaves])


def _stored_stream(relation: StoredRelation) -> int | None:
    """The id of a stream; None for a table, and for a remote stream, of which queries may read different replicas."""
    return relation.id if isinstance(relation, Stream) and relation.home is None else None
