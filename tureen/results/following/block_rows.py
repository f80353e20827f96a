"""The rows of many followed queries, taken from a block of joined tuples at once.

If a push has a few rows for each of a thousand queries, gathering columns and sorting takes longer by query than for
all together. So the joined tuples of a block are sorted by query first, for all queries whose rows have the same shape,
and each query gets a slice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tureen.errors import QueryFailed
from tureen.joining.join_input import Numbers
from tureen.joining.joined_block import JoinedBlock
from tureen.joining.lineages import bitmap_of
from tureen.position import Mark
from tureen.results.changes.join_changes import JoinedPart
from tureen.results.following.row_shape import RowOrder, RowShape

MOST_ROWS = 1 << 18
"""With more rows of all queries together, each query takes its own."""

KEPT_BLOCKS = 4
"""The number of blocks whose rows are kept: most followers read the last one."""


class SlotRows:
    """The rows of one query in a block."""

    def __init__(self, rows: pa.Table, part_of: Numbers, latest: Mapping[int, Numbers]) -> None:
        """The finished rows, in order; see `RowOrder` for the others."""
        self.rows, self._part_of, self._latest = rows, part_of, latest

    def is_ordered_since(self, since: Mapping[int, int], begin: Mapping[int, int]) -> bool:
        """Whether the rows have the same order for a follower from these marks on, which are before the block.

        A row with a tuple between the marks and the block is new by another stream for it, if that stream comes later.
        """
        for index, (stream, latest) in enumerate(self._latest.items()):
            mark = since[stream]
            if index and mark < begin[stream] and np.any((latest >= mark) & (self._part_of < index)):
                return False
        return True

    def parts(self, since: Mapping[int, int], ends: Mapping[int, int]) -> list[JoinedPart]:
        """The parts that the rows form."""
        return parts_of(self._part_of, self._latest, since, ends)


@dataclass(frozen=True)
class BlockRows:
    """The rows of several queries, sorted by query."""

    rows: pa.Table
    order: RowOrder
    slots: Numbers
    """The slot of the query of each row, ascending."""

    @classmethod
    def of(cls, shape: RowShape, block: JoinedBlock, slots: Sequence[int]) -> BlockRows | None:
        """The rows of the queries of some slots; None if there are too many, or an output fails on one of them."""
        tables, ids, of_rows = [], [], []
        total = 0
        for piece in block.pieces:
            bitmap = bitmap_of([slot for slot in slots if slot < piece.lineages.capacity], piece.lineages.words)
            candidates = shape.within_windows(piece, np.arange(len(piece)))
            pairs = piece.lineages.pairs(candidates, bitmap, MOST_ROWS - total)
            if pairs is None:
                return None
            rows, row_slots = pairs
            total += len(rows)
            if len(rows):
                tables.append(shape.table(piece, rows))
                ids.append(shape.ids(piece, rows))
                of_rows.append(row_slots)
        if not tables:
            return cls(shape.finish.each(_NO_COLUMNS), _NO_ORDER, _NO_NUMBERS)
        by_slot = np.concatenate(of_rows)
        order = RowOrder.of(shape, np.concatenate(ids, axis=1), block.begin, by_slot)
        table = order.table(pa.concat_tables(tables)).combine_chunks()
        try:
            return cls(shape.finish.each(table), order, by_slot if order.order is None else by_slot[order.order])
        except QueryFailed:
            # Only the query with that row fails.
            return None

    @cached_property
    def _bounds(self) -> dict[int, tuple[int, int]]:
        slots, first = np.unique(self.slots, return_index=True)
        ends = [*first.tolist()[1:], len(self.slots)]
        return dict(zip(slots.tolist(), zip(first.tolist(), ends, strict=True), strict=True))

    def of_slot(self, slot: int) -> SlotRows:
        """The rows of a query."""
        begin, end = self._bounds.get(slot, (0, 0))
        latest = {stream: of_rows[begin:end] for stream, of_rows in self.order.latest.items()}
        return SlotRows(self.rows.slice(begin, end - begin), self.order.part_of[begin:end], latest)


class ShapedQueries:
    """Followed queries over one join whose rows have the same shape.

    Queries come and go with the lock of their operator held; rows are read without it.
    """

    def __init__(self, shape: RowShape) -> None:
        """Start without queries."""
        self.shape = shape
        self._counts: Counter[int] = Counter()
        self._slots: tuple[int, ...] | None = None
        self._known: tuple[tuple[JoinedBlock, BlockRows | None], ...] = ()

    def add(self, slot: int) -> None:
        """Add a query; several may have the same slot."""
        self._counts[slot] += 1
        self._slots = None

    def remove(self, slot: int) -> None:
        """Remove a query."""
        self._counts[slot] -= 1
        if not self._counts[slot]:
            del self._counts[slot]
        self._slots = None

    @property
    def slots(self) -> tuple[int, ...]:
        """The slots of the queries."""
        if self._slots is None:
            self._slots = tuple(self._counts)
        return self._slots

    def rows_of(self, block: JoinedBlock, slots: Sequence[int]) -> BlockRows | None:
        """The rows of all these queries in a block; None if each must take its own."""
        for known, rows in self._known:
            if known is block:
                return rows
        rows = BlockRows.of(self.shape, block, slots)
        self._known = ((block, rows), *self._known[: KEPT_BLOCKS - 1])
        return rows

    def forget(self) -> None:
        """Drop the rows that were read."""
        self._known = ()


def parts_of(
    part_of: Numbers, latest: Mapping[int, Numbers], since: Mapping[int, int], ends: Mapping[int, int]
) -> list[JoinedPart]:
    """The parts of rows between two vectors of marks; see `RowOrder` for the other arguments."""
    parts, streams = [], list(latest)
    indexes = [] if not len(part_of) else range(int(part_of[0]), int(part_of[-1]) + 1)
    for index in indexes:
        if len(indexes) == 1:
            of_rows = latest
        else:
            begin, end = np.searchsorted(part_of, (index, index + 1)).tolist()
            if begin == end:
                continue
            of_rows = {stream: numbers[begin:end] for stream, numbers in latest.items()}
        stream = streams[index]
        marks = {other: Mark(ends[other] if other < stream else since[other]) for other in streams}
        parts.append(JoinedPart(stream, marks, _NO_COLUMNS, of_rows))
    return parts


_NO_NUMBERS: Numbers = np.empty(0, np.int64)
_NO_ORDER = RowOrder(None, _NO_NUMBERS, {})
_NO_COLUMNS = pa.table({"_none": pa.nulls(0)})
