"""The inputs of a join: tuples of a stream, rows of a table, or the answer of a block."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.joining.join_input import Numbers, take_or_null
from tureen.matching import Selector
from tureen.results.gather import StreamMatches, fields_of
from tureen.results.segment import Hits
from tureen.stems.index import BLOCK_ROWS, Block

SUBSET = 4
"""If fewer than one in this many rows are asked for, only their values are gathered."""


class StreamInput:
    """The tuples of a stream that satisfy a clause within a window, in order of tuple id."""

    def __init__(self, matches: StreamMatches) -> None:
        """Join these tuples."""
        self._matches = matches
        self._size = len(matches)
        self._columns: dict[str, pa.Array] = {}

    def __len__(self) -> int:
        """The number of tuples."""
        return self._size

    def column(self, name: str) -> pa.Array:
        """A column of all tuples."""
        if name not in self._columns:
            self._columns[name] = _gathered(self._matches, name)
        return self._columns[name]

    def columns_at(self, names: Sequence[str], rows: Numbers) -> list[pa.Array]:
        """Columns of some tuples; a row of -1 has NULLs."""
        if len(rows) * SUBSET >= self._size or not self._size:
            return [take_or_null(self.column(name), rows) for name in names]
        needed, positions = np.unique(rows, return_inverse=True)
        if len(needed) and needed[0] < 0:
            needed, positions = needed[1:], positions - 1
        subset = self._subset(needed)
        return [
            take_or_null(self._columns[name], rows)
            if name in self._columns
            else take_or_null(_gathered(subset, name), positions)
            for name in names
        ]

    @cached_property
    def times(self) -> Numbers:
        """The times of all tuples."""
        column = self.column(self._matches.schema.time_column)
        times: Numbers = column.cast(pa.int64()).to_numpy()
        return times

    @cached_property
    def ids(self) -> Numbers:
        """The tuple ids."""
        parts = [hit.segment.ids_at(hit.positions()) for hit in self._matches.hits]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def _subset(self, rows: Numbers) -> StreamMatches:
        """Some of the tuples, in ascending order of their numbers."""
        hits = []
        begin = 0
        for hit in self._matches.hits:
            end = begin + len(hit.rows)
            inside = rows[np.searchsorted(rows, begin) : np.searchsorted(rows, end)] - begin
            if len(inside):
                hits.append(Hits(hit.segment, hit.run, hit.rows[inside], np.searchsorted(inside, hit.starts)))
            begin = end
        return StreamMatches(self._matches.schema, hits)


class TableInput:
    """Rows of a table or of a block's answer that satisfy a clause; they have no time."""

    times = None

    def __init__(self, table: pa.Table, rows: Numbers | None = None) -> None:
        """Join these rows of a table, or all of them."""
        self._table, self._rows = table, rows
        self._columns: dict[str, pa.Array] = {}

    def __len__(self) -> int:
        """The number of rows."""
        return self._table.num_rows if self._rows is None else len(self._rows)

    def column(self, name: str) -> pa.Array:
        """A column of all rows."""
        if name not in self._columns:
            column = self._table.column(name)
            column = column if self._rows is None else column.take(pa.array(self._rows))
            self._columns[name] = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        return self._columns[name]

    def columns_at(self, names: Sequence[str], rows: Numbers) -> list[pa.Array]:
        """Columns of some rows; a row of -1 has NULLs."""
        return [take_or_null(self.column(name), rows) for name in names]

    @cached_property
    def ids(self) -> Numbers:
        """The numbers of the rows in the table."""
        return np.arange(self._table.num_rows) if self._rows is None else self._rows


def rows_satisfying(table: pa.Table, selector: Selector) -> Numbers:
    """The numbers of the rows of a table that satisfy a clause."""
    parts: list[npt.NDArray[np.int64]] = [np.empty(0, np.int64)]
    start = 0
    for batch in table.combine_chunks().to_batches(max_chunksize=BLOCK_ROWS):
        parts.append(selector.rows(Block(batch)).astype(np.int64) + start)
        start += batch.num_rows
    return np.concatenate(parts)


def _gathered(matches: StreamMatches, name: str) -> pa.Array:
    (column,) = matches.columns(fields_of(matches.schema, [name]))
    return column
