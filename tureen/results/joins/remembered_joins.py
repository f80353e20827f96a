"""Remembered joins: the joined rows of queries over kept joins, as a process found them before.

Of a query, all joined rows are remembered whose tuples come before some id of their stream: those of join runs and
those that were owed, with the columns of the answer. Neither a tuple nor a clause ever changes. So an invocation joins
only the tuples that came since, and compares the remembered rows with the windows at its NOW. Commits and merges leave
ids as they are; of rows whose tuples were dropped, none remains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import gt
from typing import NamedTuple
from weakref import ref

import numpy as np
import pyarrow as pa

from tureen.bounded_cache import BoundedCache
from tureen.errors import DamagedFile, QueryFailed
from tureen.fast_paths import FastPath, is_enabled
from tureen.pot.kept_joins import Ids, KeptJoin
from tureen.results.joins.few_new_tuples import few_joined
from tureen.results.joins.join_ready import ReadyJoin
from tureen.results.joins.kept_rows import KeptRows
from tureen.results.joins.key_indexes import KeyIndexes
from tureen.results.joins.remembered_part import OPEN, RememberedPart, TimeWindow, combined
from tureen.results.rows.gather import no_rows
from tureen.results.rows.placed_tuples import PlacedTuples, find_tuples, placed_by_id
from tureen.results.rows.selection import Selection
from tureen.results.snapshot.stream_state import JoinState, Snapshot, StreamState
from tureen.stems.join_run import JoinedTuples
from tureen.stream_join import is_within

REMEMBERED_BYTES = 1 << 26
"""The memory for the joined rows of a process; those of the least recently invoked queries are dropped."""

MOST_ROWS = 1 << 17
"""Queries with more joined rows are not remembered."""

ENTRY_BYTES = 1 << 10
"""The memory of a remembered join without its rows, about."""

Keys = tuple[tuple[tuple[int, ...], ...], ...]
"""For each stream, the keys of the segments that are in runs."""


class KeptJoinInvocation(NamedTuple):
    """An invocation of a query over a kept join."""

    query: str
    ready: ReadyJoin
    kept: JoinState
    snapshot: Snapshot
    states: Sequence[StreamState]
    """The streams of the join."""
    windows: tuple[TimeWindow, ...]
    """The window of each of them."""
    indexes: KeyIndexes
    read: Callable[[], KeptRows] | None
    """Gives the kept rows in these windows; None if nothing is to be remembered."""


class RememberedJoin(NamedTuple):
    """The joined rows of a query whose tuples come before some ids, as far as they are in some windows."""

    ends: Ids
    """For each stream, the id after the last tuple that was joined."""
    windows: tuple[TimeWindow, ...]
    """For each stream, the times of tuples that were joined; open if all tuples that existed were."""
    keys: Keys
    """The segments in which the tuples were last found."""
    parts: tuple[RememberedPart, ...] = ()
    rows: int = 0
    """The number of rows."""
    nbytes: int = ENTRY_BYTES
    """Its size in memory."""
    refused: KeptJoin | None = None
    """The kept join with more rows than can be remembered; None if they are remembered."""
    snapshot: ref[Snapshot] | None = None
    """The snapshot whose tuples these are."""

    def covers(self, windows: tuple[TimeWindow, ...]) -> bool:
        """Whether all joined rows in some windows are remembered."""
        return self.windows == windows or all(map(TimeWindow.contains, self.windows, windows))

    def with_parts(self, parts: tuple[RememberedPart, ...]) -> RememberedJoin:
        """With other rows."""
        nbytes = ENTRY_BYTES + sum(part.nbytes for part in parts)
        return self._replace(parts=parts, rows=sum(map(len, parts)), nbytes=nbytes)

    def refuse(self, kept: KeptJoin) -> RememberedJoin:
        """With the number of its rows only, because they are too many."""
        return RememberedJoin(self.ends, self.windows, self.keys, rows=self.rows, refused=kept)


class RememberedJoins:
    """The remembered joins of a process, by query."""

    def __init__(self, max_bytes: int = REMEMBERED_BYTES, most_rows: int = MOST_ROWS) -> None:
        """Remember rows up to that size, and up to that number of one query."""
        self._max_bytes, self._most_rows = max_bytes, most_rows
        self._is_fast = is_enabled(FastPath.FEW_NEW_TUPLES)
        self._joins: BoundedCache[str, RememberedJoin] = BoundedCache(max_bytes, lambda join: join.nbytes)

    @property
    def bytes(self) -> int:
        """The memory of all rows."""
        return self._joins.size

    def find(self, query: str) -> RememberedJoin | None:
        """What is remembered of a query."""
        return self._joins.find(query)

    def table(self, invocation: KeptJoinInvocation) -> pa.Table | None:
        """The joined rows of a query in its windows, in order; None if they have to be computed otherwise."""
        windows, ready = invocation.windows, invocation.ready
        known = self._joins.find(invocation.query)
        is_current = known is not None and known.snapshot is not None and known.snapshot() is invocation.snapshot
        if known is None or not is_current or not known.covers(windows):
            try:
                known = self._current(known, invocation)
            except (QueryFailed, DamagedFile):
                # Clauses were evaluated for tuples outside the windows, or a file is damaged.
                return None
        if known is None or known.refused is not None:
            return None
        if not known.parts:
            return no_rows(ready.remembered_schema)
        if windows.count(OPEN) == len(windows):
            table = pa.Table.from_batches([part.columns for part in known.parts])
        else:
            table = pa.Table.from_batches([part.in_windows(windows) for part in known.parts])
        # What DuckDB computes from is one array for each column.
        return table if ready.finish.selects_columns else table.combine_chunks()

    def _current(self, known: RememberedJoin | None, invocation: KeptJoinInvocation) -> RememberedJoin | None:
        """The joined rows of a query in a snapshot, remembered again if they are not those of another one."""
        query, ready, kept, snapshot, states, windows, _, read = invocation
        part = ready.stream_join
        assert part is not None
        if not is_within(part.reach, kept.join.reach):
            return None
        for state in states:
            if state.reserved or state.pending.damaged:
                # Tuples before the stream's next id may be read later.
                return None
        if known is not None and known.refused is not None:
            if read is None or known.refused == kept.join:
                return None
            if 2 * read().selected_rows() > known.rows:
                self._joins.put(query, known._replace(refused=kept.join))
                return None
            known = None
        ends = tuple([state.stream.next_id for state in states])
        keys = tuple([state.committed_keys for state in states])
        if known is not None and known.keys != keys:
            known = known.with_parts(_existing(known.parts, states))._replace(keys=keys)
        if known is not None and known.ends != ends and any(map(gt, known.ends, ends)):
            # Another thread has seen later tuples.
            return None
        if known is not None and not known.covers(windows):
            known = None
        if known is None or known.ends != ends:
            if read is None:
                return None
            known = self._first(invocation, keys, read()) if known is None else self._later(known, invocation, ends)
        else:
            known = known._replace(snapshot=ref(snapshot))
        self._joins.put(query, known)
        return known

    def _first(self, invocation: KeptJoinInvocation, keys: Keys, rows: KeptRows) -> RememberedJoin:
        """All joined rows of a query."""
        windows, kept = tuple(map(_read_times, rows.selections)), invocation.kept
        known = RememberedJoin(rows.ends, windows, keys)
        if (selected := rows.selected_rows()) > self._most_rows:
            return known._replace(rows=selected).refuse(kept.join)
        new = [rows.existing(number)[1] for number in range(len(rows.runs))]
        placed = _placed(rows, [*new, *rows.joined_since(kept.join.progress)])
        return self._with(known, placed, invocation, rows.ends, windows)

    def _later(self, known: RememberedJoin, invocation: KeptJoinInvocation, ends: Ids) -> RememberedJoin:
        """What was remembered with the joined rows of new tuples."""
        join = invocation.ready.key_join if self._is_fast else None
        few = None if join is None else few_joined(join, invocation.states, known.ends, invocation.indexes)
        if few is not None:
            # All their partners were found, in windows or not.
            return self._with(known, few, invocation, ends, known.windows)
        assert invocation.read is not None
        rows = invocation.read()
        windows = tuple(map(TimeWindow.common, known.windows, map(_read_times, rows.selections)))
        return self._with(known, _placed(rows, rows.joined_since(known.ends)), invocation, ends, windows)

    def _with(
        self,
        known: RememberedJoin,
        new: Sequence[Sequence[PlacedTuples]],
        invocation: KeptJoinInvocation,
        ends: Ids,
        windows: tuple[TimeWindow, ...],
    ) -> RememberedJoin:
        """A remembered join with more rows, as the tuples of each stream; refused if these are too many."""
        parts, rows, nbytes, ready = known.parts, known.rows, known.nbytes, invocation.ready
        for placed in new:
            part = RememberedPart.of(placed, ready.stream_order, ready.remembered_columns, ready.remembered_schema)
            parts = combined((*parts, part), ready.stream_order)
            rows += len(part.times[0])
            nbytes += part.nbytes
        result = RememberedJoin(ends, windows, known.keys, parts, rows, nbytes, snapshot=ref(invocation.snapshot))
        is_large = rows > self._most_rows or nbytes > self._max_bytes // 4
        return result.refuse(invocation.kept.join) if is_large else result


def _read_times(selection: Selection) -> TimeWindow:
    """The times of the tuples of a selection; open where it ends because there are no others."""
    segments = selection.state.segments
    begins = all(first == 0 for first, _ in selection.ranges)
    ends = all(last == segment.rows for segment, (_, last) in zip(segments, selection.ranges, strict=True))
    return TimeWindow(None if begins else selection.begin, None if ends else selection.end)


def _placed(rows: KeptRows, tuples: Sequence[JoinedTuples]) -> list[list[PlacedTuples]]:
    """Joined tuples as the tuples of each stream, if there are any."""
    if not any(map(len, tuples)):
        return []
    of_streams = [np.concatenate(ids) for ids in zip(*(part.ids for part in tuples), strict=True)]
    return [
        [
            placed_by_id(selection.state.stream.schema, selection.state.segments, ids)
            for selection, ids in zip(rows.selections, of_streams, strict=True)
        ]
    ]


def _existing(parts: Sequence[RememberedPart], states: Sequence[StreamState]) -> tuple[RememberedPart, ...]:
    """The rows of parts whose tuples were not dropped from their streams."""
    existing = []
    for part in parts:
        remaining = part
        for stream, state in enumerate(states):
            if len(remaining) and not _has_all_from(state, remaining.least_ids[stream]):
                exists = find_tuples(state.segments, remaining.tuples.ids[stream]).segments >= 0
                remaining = remaining if exists.all() else remaining.take(np.flatnonzero(exists))
        if len(remaining):
            existing.append(remaining)
    return tuple(existing)


def _has_all_from(state: StreamState, first_id: int) -> bool:
    """Whether a stream has all tuples from an id on."""
    segments = state.segments
    if not segments or segments[0].first_id > first_id:
        return False
    ends = [*(segment.first_id for segment in segments), state.stream.next_id][1:]
    return all(segment.first_id + segment.rows == end for segment, end in zip(segments, ends, strict=True))
