"""The inputs of a join: tuples of a stream, rows of a table, or the answer of a block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.joining.join_input import Flags, Numbers, take_or_null
from tureen.keys import KeyColumns
from tureen.matching import Selector
from tureen.results.joins.key_indexes import KeyIndexes, whole_column
from tureen.results.rows.gather import StreamMatches
from tureen.results.rows.placed_tuples import PlacedTuples, placed_rows
from tureen.results.snapshot.segment import Hits, Segment
from tureen.schema import Schema
from tureen.stems.index import BLOCK_ROWS, Block
from tureen.stems.key_index import KeyIndex, ProbeKeys
from tureen.stems.run import times_of

Ids = tuple[int, int]
"""The first tuple id of an interval, and the one after its last."""

IndexedSegment = tuple[Segment, KeyIndex]
"""A segment and its index by some columns."""

PROBE_SHARE = 8
"""An input is probed by its key index if it has more than this many times the rows of the other side."""

PROBE_COST = 4
"""With few keys, probing a segment's index with one of them costs as much as scanning this many tuples."""

MANY_KEYS_COST = 8
"""With many keys, which read an index sequentially, this many probes cost as much as scanning one tuple."""

MOST_ROWS_PER_TUPLE = 2
"""Many keys do not probe the indexes of segments that have more rows than this for each tuple of the input."""


class StreamInput:
    """The tuples of a stream that satisfy a clause within a window, in order of tuple id."""

    def __init__(self, matches: StreamMatches, indexes: KeyIndexes | None = None) -> None:
        """Join these tuples; with `indexes`, by key where that is cheaper."""
        self.matches = matches
        self._size = len(matches)
        self._columns: dict[str, pa.Array] = {}
        self._indexes = indexes
        self._asked: tuple[Numbers, PlacedTuples] | None = None

    def __len__(self) -> int:
        """The number of tuples."""
        return self._size

    def of_part(self, matches: StreamMatches) -> StreamInput:
        """An input of some of its tuples."""
        return StreamInput(matches, self._indexes)

    def column(self, name: str) -> pa.Array:
        """A column of all tuples."""
        if name not in self._columns:
            self._columns[name] = self.matches.column(name)
        return self._columns[name]

    def columns_at(self, names: Sequence[str], rows: Numbers) -> list[pa.Array]:
        """Columns of some tuples; a row of -1 has NULLs."""
        if len(rows) > self._size:
            return [take_or_null(self.column(name), rows) for name in names]
        exists = rows >= 0
        if exists.all():
            placed = self._placed(rows)
            return [placed.column(name) for name in names]
        placed, numbers = self._placed(rows[exists]), np.where(exists, np.cumsum(exists) - 1, -1)
        return [take_or_null(placed.column(name), numbers) for name in names]

    @cached_property
    def times(self) -> Numbers:
        """The times of all tuples."""
        return times_of(self.column(self.matches.schema.time_column))

    @cached_property
    def ids(self) -> Numbers:
        """The tuple ids."""
        parts = [hit.segment.ids_at(hit.positions()) for hit in self.matches.hits]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def times_at(self, rows: Numbers) -> Numbers:
        """The times of some tuples."""
        return self.times[rows] if self._is_most(rows) else self._placed(rows).times

    def ids_at(self, rows: Numbers) -> Numbers:
        """The ids of some tuples."""
        return self.ids[rows] if self._is_most(rows) else self._placed(rows).ids

    def _is_most(self, rows: Numbers) -> bool:
        """Whether reading all tuples, one after the other, takes less time than finding some."""
        return 2 * len(rows) > self._size

    def _placed(self, rows: Numbers) -> PlacedTuples:
        """Some tuples, by their positions in their segments."""
        if self._asked is None or self._asked[0] is not rows:
            # Times, ids and columns are mostly asked for of the same rows.
            self._asked = rows, placed_rows(self.matches, rows)
        return self._asked[1]

    def may_probe(self, keys: int) -> bool:
        """Whether there are few keys, or the indexes have few other tuples."""
        return self._indexes is not None and (self._are_few(keys) or self._are_worth_it(keys))

    def _are_few(self, keys: int) -> bool:
        """Whether there are so few keys that an index is worth building."""
        return keys * PROBE_SHARE < self._size and keys * len(self.matches.hits) * PROBE_COST <= self._size

    def _are_worth_it(self, keys: int) -> bool:
        """Whether probing indexes that exist takes less time than hashing the keys and all tuples."""
        hits = self.matches.hits
        return (
            0 < keys * len(hits) <= MANY_KEYS_COST * self._size
            and sum(hit.segment.rows for hit in hits) <= MOST_ROWS_PER_TUPLE * self._size
        )

    def probe(self, columns: KeyColumns, keys: Numbers, valid: Flags) -> tuple[Numbers, Numbers] | None:
        """Tuples by key, from the indexes of the segments."""
        if self._indexes is None:
            return None
        is_ready = self._indexes.is_ready
        if not self._are_few(len(valid)) and not all(is_ready(hit.segment, columns) for hit in self.matches.hits):
            return None
        probes = ProbeKeys.in_hash_order(keys, valid)
        probing, rows = [], []
        begin = 0
        for hit in self.matches.hits:
            keys_at, positions = self._indexes.of_segment(hit.segment, columns).find(probes)
            numbers, is_hit = numbers_of(hit, positions)
            probing.append(keys_at[is_hit])
            rows.append(numbers[is_hit] + begin)
            begin += len(hit.rows)
        return np.concatenate(probing), np.concatenate(rows)

    def indexed_segments(self, columns: KeyColumns) -> list[IndexedSegment] | None:
        """The segments with their indexes; None if one has none yet, or has tuples that are not of the input."""
        indexes, hits = self._indexes, self.matches.hits
        if indexes is None or any(len(hit.rows) < hit.segment.rows for hit in hits):
            return None
        if not all(indexes.is_ready(hit.segment, columns) for hit in hits):
            return None
        return [(hit.segment, indexes.of_segment(hit.segment, columns)) for hit in hits]

    def subset(self, rows: Numbers) -> StreamMatches:
        """Some of the tuples, in ascending order of their numbers."""
        hits = []
        begin = 0
        for hit in self.matches.hits:
            end = begin + len(hit.rows)
            inside = rows[np.searchsorted(rows, begin) : np.searchsorted(rows, end)] - begin
            if len(inside):
                hits.append(Hits(hit.segment, hit.run, hit.rows[inside], np.searchsorted(inside, hit.starts)))
            begin = end
        return StreamMatches(self.matches.schema, hits)


def numbers_of(hit: Hits, positions: Numbers) -> tuple[Numbers, Flags]:
    """The numbers among a segment's hits of tuples, given by their positions in it, and which of them are hits."""
    count = len(hit.rows)
    first, last = _first_and_last(hit)
    if last - first + 1 == count:
        # All tuples of an interval.
        return positions - first, (positions >= first) & (positions <= last)
    selected = hit.positions()
    numbers = np.searchsorted(selected, positions)
    return numbers, selected[np.minimum(numbers, count - 1)] == positions


def _first_and_last(hit: Hits) -> tuple[int, int]:
    """The positions of the first and the last hit of a segment."""
    first_block = int(np.searchsorted(hit.starts, 0, side="right")) - 1
    last_block = int(np.searchsorted(hit.starts, len(hit.rows), side="left")) - 1
    return hit.run.starts[first_block] + int(hit.rows[0]), hit.run.starts[last_block] + int(hit.rows[-1])


def with_ids(hits: Hits, ids: Ids) -> Hits:
    """The hits whose tuple ids lie in an interval."""
    of_hits = hits.segment.ids_at(hits.positions())
    kept = (of_hits >= ids[0]) & (of_hits < ids[1])
    if kept.all():
        return hits
    before = np.concatenate([[0], np.cumsum(kept)])
    return Hits(hits.segment, hits.run, hits.rows[kept], before[hits.starts])


def matches_within(
    schema: Schema, segments: Sequence[Segment], next_id: int, ids: Ids, select: Callable[[int], Hits | None]
) -> StreamMatches:
    """The tuples of a stream with ids in an interval, of those that `select` finds in the segment of a number.

    `next_id` is the id after the stream's last tuple.
    """
    ends = [*(segment.first_id for segment in segments), next_id][1:]
    hits = []
    for number, (segment, end) in enumerate(zip(segments, ends, strict=True)):
        hit = select(number) if end > ids[0] and segment.first_id < ids[1] else None
        if hit is not None:
            is_whole = ids[0] <= segment.first_id and end <= ids[1]
            hits.append(hit if is_whole else with_ids(hit, ids))
    return StreamMatches(schema, [hit for hit in hits if len(hit.rows)])


class TableInput:
    """Rows of a table or of a block's answer that satisfy a clause; they have no time."""

    times = None

    def __init__(self, table: pa.Table, rows: Numbers | None = None, indexes: KeyIndexes | None = None) -> None:
        """Join these rows of a table, ascending, or all of them; with `indexes`, by key where that is cheaper."""
        self._table, self._rows, self._indexes = table, rows, indexes
        self._columns: dict[str, pa.Array] = {}

    def __len__(self) -> int:
        """The number of rows."""
        return self._table.num_rows if self._rows is None else len(self._rows)

    def column(self, name: str) -> pa.Array:
        """A column of all rows."""
        if name not in self._columns:
            column = whole_column(self._table, name)
            self._columns[name] = column if self._rows is None else column.take(pa.array(self._rows))
        return self._columns[name]

    def columns_at(self, names: Sequence[str], rows: Numbers) -> list[pa.Array]:
        """Columns of some rows; a row of -1 has NULLs."""
        return [take_or_null(self.column(name), rows) for name in names]

    @cached_property
    def ids(self) -> Numbers:
        """The numbers of the rows in the table."""
        return np.arange(self._table.num_rows) if self._rows is None else self._rows

    def times_at(self, rows: Numbers) -> None:
        """None: rows have no time."""

    def ids_at(self, rows: Numbers) -> Numbers:
        """The numbers of some rows."""
        return self.ids[rows]

    def may_probe(self, keys: int) -> bool:
        """Whether there are few keys."""
        return self._indexes is not None and keys * PROBE_SHARE < len(self) and keys * PROBE_COST <= len(self)

    def probe(self, columns: KeyColumns, keys: Numbers, valid: Flags) -> tuple[Numbers, Numbers] | None:
        """Rows by key, from the index of the table's content."""
        if self._indexes is None:
            return None
        if not self._indexes.can_keep(self._table.num_rows, columns):
            return None
        keys_at, rows = self._indexes.of_table(self._table, columns).find(ProbeKeys.of(keys, valid))
        if self._rows is None:
            return keys_at, rows
        numbers = np.searchsorted(self._rows, rows)
        is_row = self._rows[np.minimum(numbers, len(self._rows) - 1)] == rows
        return keys_at[is_row], numbers[is_row]


def rows_satisfying(table: pa.Table, selector: Selector) -> Numbers:
    """The numbers of the rows of a table that satisfy a clause."""
    parts: list[npt.NDArray[np.int64]] = [np.empty(0, np.int64)]
    start = 0
    for batch in table.combine_chunks().to_batches(max_chunksize=BLOCK_ROWS):
        parts.append(selector.rows(Block(batch)).astype(np.int64) + start)
        start += batch.num_rows
    return np.concatenate(parts)
