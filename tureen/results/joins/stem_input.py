"""The SteMs of continuous joins: streams seen through their runs and pending rows, and tables, found by key index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tureen.joining.join_input import Flags, Numbers
from tureen.joining.stem import Ids
from tureen.joining.tuple_id_set import TupleIdSet
from tureen.keys import KeyColumns
from tureen.results.joins.join_inputs import TableInput
from tureen.results.joins.key_indexes import KeyIndexes
from tureen.results.rows.placed_tuples import PlacedTuples
from tureen.results.snapshot.segment import Segment
from tureen.results.snapshot.stream_state import StreamState
from tureen.stems.key_index import KeyIndex, ProbeKeys

GROUPED_ROWS = 4
"""The number of rows for each key from which on rows are examined by key."""


class _Part(NamedTuple):
    """A segment whose rows have the numbers from `first` on, and the tuple id after its last."""

    segment: Segment
    first: int
    end: int
    has_purged: bool
    """Whether there are purged tuples in it that are to be left out."""


@dataclass(frozen=True)
class KeyGroups:
    """The rows of a segment with equal keys, one group after the other."""

    part: _Part
    index: KeyIndex

    def __len__(self) -> int:
        """The number of groups."""
        return len(self.index.starts) - 1

    def first_rows(self) -> Numbers:
        """A row of each group."""
        return self.part.first + self.index.rows[self.index.starts[:-1]].astype(np.int64)

    def ids_of(self, chosen: Flags, interval: Ids) -> Numbers:
        """The tuple ids of some groups that lie in an interval."""
        ids = self.part.segment.ids_at(self.index.rows[np.repeat(chosen, np.diff(self.index.starts))].astype(np.int64))
        return ids[(ids >= interval[0]) & (ids < interval[1])]


class StreamStem:
    """The tuples of a stream with ids in an interval; see `tureen.joining.stem.Stem`.

    Rows are those of all segments that have such tuples, in order of tuple id.
    """

    def __init__(
        self,
        state: StreamState,
        ids: Ids,
        earliest: int | None,
        indexes: KeyIndexes,
        purged: TupleIdSet | None = None,
        *,
        finds_purged: bool = False,
    ) -> None:
        """Read from a stream; with `earliest`, segments that end before that time are left out.

        Segments of which all tuples are purged are left out too. Other purged tuples are left out by `probe`, which
        costs a look-up of each pair, unless it may find them.
        """
        self._schema, self._ids, self._indexes = state.stream.schema, ids, indexes
        self._purged = purged if purged else None
        self._parts: list[_Part] = []
        self._size = 0
        self._asked: tuple[Numbers, PlacedTuples] | None = None
        ends = [*(segment.first_id for segment in state.segments), state.stream.next_id][1:]
        for segment, end in zip(state.segments, ends, strict=True):
            is_recent = earliest is None or segment.max_time >= earliest
            if segment.rows and is_recent and end > ids[0] and segment.first_id < ids[1]:
                purged_rows = 0 if self._purged is None else self._purged.count_between(segment.first_id, end)
                # Purged tuples between segments may have been freed: they do not count.
                if purged_rows < segment.rows or not self._is_purged(segment):
                    self._parts.append(_Part(segment, self._size, end, purged_rows > 0 and not finds_purged))
                    self._size += segment.rows

    def _is_purged(self, segment: Segment) -> bool:
        """Whether all tuples of a segment are purged."""
        assert self._purged is not None
        if segment.run().in_order:
            return self._purged.count_between(segment.first_id, segment.first_id + segment.rows) == segment.rows
        return bool(self._purged.contains(segment.ids_at(np.arange(segment.rows))).all())

    def __len__(self) -> int:
        """The number of rows of the segments."""
        return self._size

    def rows_within(self) -> Numbers:
        """The rows with ids in the interval that are not purged."""
        rows = self.rows_between(self._ids)
        return rows if self._purged is None else rows[~self._purged.contains(self.ids_at(rows))]

    def rows_between(self, interval: Ids) -> Numbers:
        """The rows with ids in an interval within that of all of them."""
        rows = [_NONE]
        for part in self._parts:
            first, end = max(interval[0], part.segment.first_id), min(interval[1], part.end)
            if end > first:
                rows.append(part.first + part.segment.positions_between(first, end))
        return np.concatenate(rows)

    def count_since(self, earliest: int | None) -> int:
        """The number of tuples in the interval that are not purged and not before a time."""
        count = 0
        for part in self._parts:
            low = 0 if earliest is None else part.segment.rows_before(earliest, inclusive=False)
            count += part.segment.rows - low
            if part.has_purged or part.end > self._ids[1]:
                ids = part.segment.ids_at(np.arange(low, part.segment.rows))
                is_absent = (ids >= self._ids[1]) | (ids < self._ids[0])
                if self._purged is not None:
                    is_absent |= self._purged.contains(ids)
                count -= int(is_absent.sum())
        return count

    def rows_in_time(self, first: int | None, end: int) -> Numbers:
        """The rows of tuples in the interval with times from `first` to before `end`."""
        rows = [_NONE]
        for part in self._parts:
            low = 0 if first is None else part.segment.rows_before(first, inclusive=False)
            high = part.segment.rows_before(end, inclusive=False)
            ids = part.segment.ids_at(np.arange(low, high)) if high > low else _NONE
            rows.append(part.first + low + np.flatnonzero((ids >= self._ids[0]) & (ids < self._ids[1])))
        return np.concatenate(rows)

    def least_time(self) -> int | None:
        """A time before which no tuple in it is that is not purged."""
        times = []
        for part in self._parts:
            segment, first = part.segment, part.segment.first_id
            if self._purged is not None and segment.run().in_order:
                first = self._purged.first_absent(first)
            row = first - segment.first_id
            times.append(segment.min_time if row == 0 else int(segment.times(row, row + 1)[0]))
        return min(times, default=None)

    def rows_of(self, ids: Numbers) -> Numbers:
        """The rows with some ids; -1 where there is none."""
        rows = np.full(len(ids), -1)
        for part in self._parts:
            here = np.flatnonzero((ids >= part.segment.first_id) & (ids < part.end))
            if len(here):
                positions = part.segment.positions_of(ids[here])
                rows[here] = np.where(positions >= 0, part.first + positions, -1)
        return rows

    def may_probe(self, keys: int) -> bool:  # noqa: ARG002
        """Always."""
        return True

    def probe(self, columns: KeyColumns, keys: Numbers, valid: Flags) -> tuple[Numbers, Numbers]:
        """Rows by key, from the indexes of the segments."""
        probing, rows = [_NONE], [_NONE]
        probes = ProbeKeys.of(keys, valid)
        for part in self._parts:
            keys_at, positions = self._indexes.of_segment(part.segment, columns).find(probes)
            is_partly_within = part.end > self._ids[1] or part.segment.first_id < self._ids[0]
            if is_partly_within or part.has_purged:
                ids = part.segment.ids_at(positions)
                is_within = (ids >= self._ids[0]) & (ids < self._ids[1])
                if part.has_purged and self._purged is not None:
                    is_within &= ~self._purged.contains(ids)
                keys_at, positions = keys_at[is_within], positions[is_within]
            if len(keys_at):
                probing.append(keys_at)
                rows.append(part.first + positions)
        return _in_order_of_keys(np.concatenate(probing), np.concatenate(rows), parts=len(rows) - 1)

    def key_groups(self, columns: KeyColumns, interval: Ids) -> tuple[list[KeyGroups], Numbers]:
        """The rows with ids in an interval: by key where an index tells that keys repeat, and all others.

        Groups may have rows outside of the interval, and do not have those whose key has a NULL.
        """
        groups, others = [], [_NONE]
        for part in self._parts:
            first, end = max(interval[0], part.segment.first_id), min(interval[1], part.end)
            if end <= first:
                continue
            if self._indexes.is_ready(part.segment, columns):
                of_part = KeyGroups(part, self._indexes.of_segment(part.segment, columns))
                if GROUPED_ROWS * len(of_part) <= end - first:
                    groups.append(of_part)
                    continue
            others.append(part.first + part.segment.positions_between(first, end))
        return groups, np.concatenate(others)

    def column(self, name: str) -> pa.Array:
        """A column of all rows."""
        return self.columns_at([name], np.arange(self._size))[0]

    def columns_at(self, names: Sequence[str], rows: Numbers) -> list[pa.Array]:
        """Columns of some rows."""
        placed = self._placed(rows)
        return [placed.column(name) for name in names]

    @property
    def times(self) -> Numbers:
        """The times of all rows."""
        return self.times_at(np.arange(self._size))

    @property
    def ids(self) -> Numbers:
        """The tuple ids of all rows."""
        return self.ids_at(np.arange(self._size))

    def times_at(self, rows: Numbers) -> Numbers:
        """The times of some rows."""
        return self._placed(rows).times

    def ids_at(self, rows: Numbers) -> Numbers:
        """The ids of some rows."""
        return self._placed(rows).ids

    def _placed(self, rows: Numbers) -> PlacedTuples:
        if self._asked is None or self._asked[0] is not rows:
            # Times, ids and columns are mostly asked for of the same rows.
            self._asked = rows, PlacedTuples.among(self._schema, [part.segment for part in self._parts], rows)
        return self._asked[1]


def _in_order_of_keys(keys_at: Numbers, rows: Numbers, parts: int) -> tuple[Numbers, Numbers]:
    """Pairs of a key and a row by key, given several parts that are; rows of a key stay in their order."""
    if parts < 2:
        return keys_at, rows
    # numpy sorts 16 bits in linear time.
    codes = keys_at.astype(np.uint16) if keys_at.max() < 1 << 16 else keys_at
    order = np.argsort(codes, kind="stable")
    return keys_at[order], rows[order]


class TableStem(TableInput):
    """All rows of a table, found by the index of its content."""

    def __init__(self, table: pa.Table, indexes: KeyIndexes) -> None:
        """Read from a table."""
        super().__init__(table)
        self._content, self._stems = table, indexes

    def rows_within(self) -> Numbers:
        """All rows."""
        return np.arange(len(self))

    def least_time(self) -> None:
        """None: rows have no time."""

    def rows_of(self, ids: Numbers) -> Numbers:
        """The rows with some ids, which are their numbers."""
        return np.where(ids < len(self), ids, -1)

    def may_probe(self, keys: int) -> bool:  # noqa: ARG002
        """Always."""
        return True

    def probe(self, columns: KeyColumns, keys: Numbers, valid: Flags) -> tuple[Numbers, Numbers]:
        """Rows by key."""
        return self._stems.of_table(self._content, columns).find(ProbeKeys.of(keys, valid))


_NONE: Numbers = np.empty(0, np.int64)
