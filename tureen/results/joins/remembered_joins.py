"""Remembered joins: the joined rows of queries over kept joins, as a process found them before.

Of a query, all joined rows are remembered whose tuples come before some id of their stream: those of join runs and
those that were owed, with the columns of the answer. Neither a tuple nor a clause ever changes. So an invocation joins
only the tuples that came since, and compares the remembered rows with the windows at its NOW. Commits and merges leave
ids as they are; of rows whose tuples were dropped, none remains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from weakref import ref

import numpy as np
import pyarrow as pa

from tureen.bounded_cache import BoundedCache
from tureen.errors import DamagedFile, QueryFailed
from tureen.pot.kept_joins import Ids, KeptJoin
from tureen.results.joins.few_new_tuples import few_joined
from tureen.results.joins.join_ready import ReadyJoin
from tureen.results.joins.kept_rows import KeptRows
from tureen.results.joins.remembered_part import RememberedPart, TimeWindow, combined
from tureen.results.rows.gather import no_rows
from tureen.results.rows.placed_tuples import find_tuples, placed_by_id
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


@dataclass(frozen=True, eq=False)
class RememberedJoin:
    """The joined rows of a query whose tuples come before some ids, as far as they are in some windows."""

    ends: Ids
    """For each stream, the id after the last tuple that was joined."""
    windows: tuple[TimeWindow, ...]
    """For each stream, the times of tuples that were joined; open if all tuples that existed were."""
    keys: Keys
    """The segments in which the tuples were last found."""
    parts: tuple[RememberedPart, ...] = ()
    refused: KeptJoin | None = None
    """The kept join with more rows than can be remembered; None if they are remembered."""
    refused_rows: int = 0
    """The number of its rows."""
    checked: list[ref[Snapshot]] = field(default_factory=list)
    """The snapshot whose tuples these are."""

    @property
    def nbytes(self) -> int:
        """Its size in memory."""
        return ENTRY_BYTES + sum(part.nbytes for part in self.parts)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(len(part) for part in self.parts)

    def covers(self, windows: Sequence[TimeWindow]) -> bool:
        """Whether all joined rows in some windows are remembered."""
        return all(known.contains(window) for known, window in zip(self.windows, windows, strict=True))


class RememberedJoins:
    """The remembered joins of a process, by query."""

    def __init__(self, max_bytes: int = REMEMBERED_BYTES, most_rows: int = MOST_ROWS) -> None:
        """Remember rows up to that size, and up to that number of one query."""
        self._max_bytes, self._most_rows = max_bytes, most_rows
        self._joins: BoundedCache[str, RememberedJoin] = BoundedCache(max_bytes, lambda join: join.nbytes)

    @property
    def bytes(self) -> int:
        """The memory of all rows."""
        return self._joins.size

    def find(self, query: str) -> RememberedJoin | None:
        """What is remembered of a query."""
        return self._joins.find(query)

    def table(
        self,
        query: str,
        snapshot: Snapshot,
        ready: ReadyJoin,
        kept: JoinState,
        windows: Sequence[TimeWindow],
        read: Callable[[], KeptRows] | None,
    ) -> pa.Table | None:
        """The joined rows of a query in windows, in order; None if they have to be computed otherwise.

        `read` gives the kept rows in these windows, from which more is remembered; None if nothing is to be.
        """
        known = self._joins.find(query)
        if known is None or not known.checked or known.checked[0]() is not snapshot or not known.covers(windows):
            try:
                known = self._current(query, known, snapshot, ready, kept, windows, read)
            except (QueryFailed, DamagedFile):
                # Clauses were evaluated for tuples outside the windows, or a file is damaged.
                return None
        if known is None or known.refused is not None:
            return None
        if not known.parts:
            return no_rows(ready.fields)
        table = pa.Table.from_batches([part.in_windows(windows) for part in known.parts])
        # What DuckDB computes from is one array for each column.
        return table if ready.finish.sql is None and not ready.query.overs else table.combine_chunks()

    def _current(
        self,
        query: str,
        known: RememberedJoin | None,
        snapshot: Snapshot,
        ready: ReadyJoin,
        kept: JoinState,
        windows: Sequence[TimeWindow],
        read: Callable[[], KeptRows] | None,
    ) -> RememberedJoin | None:
        """The joined rows of a query in a snapshot, remembered again if they are not those of another one."""
        part = ready.stream_join
        assert part is not None
        states = [snapshot.streams[stream] for stream in part.join.streams]
        if not is_within(part.reach, kept.join.reach) or not all(_is_complete(state) for state in states):
            return None
        keys = tuple(state.committed_keys for state in states)
        if known is not None and known.refused is not None:
            if read is None or known.refused == kept.join:
                return None
            if 2 * read().selected_rows() > known.refused_rows:
                self._joins.put(query, replace(known, refused=kept.join))
                return None
            known = None
        if known is not None and known.keys != keys:
            known = replace(known, parts=_existing(known.parts, states), keys=keys, checked=[])
        ends = tuple(state.stream.next_id for state in states)
        if known is not None and any(joined > end for joined, end in zip(known.ends, ends, strict=True)):
            # Another thread has seen later tuples.
            return None
        if known is not None and not known.covers(windows):
            known = None
        if known is None or known.ends != ends:
            if read is None:
                return None
            known = self._read_on(known, keys, ready, kept, read())
        known.checked[:] = [ref(snapshot)]
        self._joins.put(query, known)
        return known

    def _read_on(
        self, known: RememberedJoin | None, keys: Keys, ready: ReadyJoin, kept: JoinState, rows: KeptRows
    ) -> RememberedJoin:
        """What was remembered with the joined rows of new tuples; all of them, if nothing was."""
        windows = tuple(_read_times(selection) for selection in rows.selections)
        if known is None:
            if (selected := rows.selected_rows()) > self._most_rows:
                return RememberedJoin(rows.ends, windows, keys, refused=kept.join, refused_rows=selected)
            new = [rows.existing(number)[1] for number in range(len(rows.runs))]
            parts = _parts(rows, [*new, *rows.joined_since(kept.join.progress)], ready.fields)
        else:
            windows = tuple(each.common(other) for each, other in zip(known.windows, windows, strict=True))
            few = few_joined(rows, known.ends)
            if few is None:
                parts = _parts(rows, rows.joined_since(known.ends), ready.fields)
            else:
                parts = [RememberedPart.of(few, rows.numbers, ready.fields)] if few else []
            parts = [*known.parts, *parts]
        result = RememberedJoin(rows.ends, windows, keys, combined(parts, rows.numbers))
        if result.rows > self._most_rows or result.nbytes > self._max_bytes // 4:
            return RememberedJoin(rows.ends, windows, keys, refused=kept.join, refused_rows=result.rows)
        return result


def _is_complete(state: StreamState) -> bool:
    """Whether all tuples before the stream's next id are known: rows with reserved ids may be read later."""
    return not state.reserved and not state.pending.damaged


def _read_times(selection: Selection) -> TimeWindow:
    """The times of the tuples of a selection; open where it ends because there are no others."""
    segments = selection.state.segments
    begins = all(first == 0 for first, _ in selection.ranges)
    ends = all(last == segment.rows for segment, (_, last) in zip(segments, selection.ranges, strict=True))
    return TimeWindow(None if begins else selection.begin, None if ends else selection.end)


def _parts(rows: KeptRows, tuples: Sequence[JoinedTuples], fields: pa.Schema) -> list[RememberedPart]:
    """Joined tuples as one part, if there are any."""
    if not any(map(len, tuples)):
        return []
    of_streams = [np.concatenate(ids) for ids in zip(*(part.ids for part in tuples), strict=True)]
    placed = [
        placed_by_id(selection.state.stream.schema, selection.state.segments, ids)
        for selection, ids in zip(rows.selections, of_streams, strict=True)
    ]
    return [RememberedPart.of(placed, rows.numbers, fields)]


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
