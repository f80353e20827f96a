"""PSoup-C: each query's results of the current window, maintained as tuples arrive (§5).

The paper has a linked list of pointers for each query. Here it is a ring buffer of tuple ids, so that adding and
dropping move nothing, and both are compiled: a match is added when its tuple arrives, after dropping the tuples that
have left the window by then. After a batch, every query's ring contains exactly the window. Nothing is written to disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.matching import Buffers, CellReader, Selector, match_block
from tureen.queries import QueryRun
from tureen.stems.cells.container_kernels import entry_rows
from tureen.stems.index import Block
from tureen.stems.sort_kernels import Int, pointer
from tureen.stems.stored import CELL_SCHEMA

F = TypeVar("F", bound=Callable[..., Any])

CellOf = Callable[[Block], pa.RecordBatch]
"""Matches one block."""

EMPTY_CELL = pa.RecordBatch.from_arrays([pa.nulls(0, column.type) for column in CELL_SCHEMA], schema=CELL_SCHEMA)
"""The cell of a run whose results are in memory."""


def fresh(function: F) -> F:
    """Compile a function in every process, without a cache, because functions that it calls may have changed."""
    return cast(F, numba.njit(nogil=True)(function))


class WindowResults:
    """The results of some queries over the current window; all windows have the same length."""

    def __init__(self, queries: int, max_tuples: int, span: int, *, lazily: bool = False) -> None:
        """Store results no older than `span` microseconds, which are at most `max_tuples` tuples.

        With `lazily`, update results once a batch, without tuples that leave the window within the batch.
        """
        # Pages without results are never touched, so they cost nothing.
        self._rings = np.empty((queries, 1 << (max_tuples - 1).bit_length()), np.uint32)
        self._ends = np.zeros((queries, 2), np.int64)
        self._span = span
        self._lazily = lazily
        self._times: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self._arrived = 0

    def shared(self, run: QueryRun, time: str) -> CellOf:
        """A matcher of blocks that matches all queries at once and stores their results."""
        buffers = Buffers()

        def add(block: Block) -> pa.RecordBatch:
            oldest, first = self._begin(block, time)
            reader = CellReader(match_block(block, run, buffers).batch, block.rows)
            add_cell(reader.addresses, block.rows, self._rings, self._ends, self._arrived, oldest, first)
            return self._finish(block, oldest)

        return add

    def unshared(self, selectors: Sequence[Selector], time: str) -> CellOf:
        """The same with queries that are evaluated one by one."""

        def add(block: Block) -> pa.RecordBatch:
            oldest, first = self._begin(block, time)
            for query, selector in enumerate(selectors):
                rows = selector.rows(block, first)
                add_rows(self._rings[query], self._ends[query], self._arrived, rows, oldest)
            return self._finish(block, oldest)

        return add

    def ids(self, query: int) -> npt.NDArray[np.int64]:
        """The tuples in a query's result, numbered in order of arrival."""
        first, last = self._ends[query]
        ids: npt.NDArray[np.int64] = self._rings[query][np.arange(first, last) & (self._rings.shape[1] - 1)].astype(int)
        return ids

    def located(
        self, query: int, starts: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.int64]]:
        """The same as row numbers within blocks that begin at those tuples; and where each block's rows begin."""
        return located(self._rings[query], self._ends[query], starts)

    @property
    def count(self) -> int:
        """The number of stored results of all queries."""
        return int((self._ends[:, 1] - self._ends[:, 0]).sum())

    def _begin(self, block: Block, time: str) -> tuple[npt.NDArray[np.int64], int]:
        """For each row the first tuple of the window when the row arrives; and the first row to match."""
        times = np.concatenate([self._times, block.keys(time)])
        before = len(self._times)
        oldest = window_begins(times, before, self._span)
        self._times = times[oldest[-1] :]
        oldest += self._arrived - before
        if not self._lazily:
            return oldest, 0
        drop(self._rings, self._ends, oldest[-1])
        return oldest, max(int(oldest[-1]) - self._arrived, 0)

    def _finish(self, block: Block, oldest: npt.NDArray[np.int64]) -> pa.RecordBatch:
        drop(self._rings, self._ends, oldest[-1])
        self._arrived += block.rows
        return EMPTY_CELL


@fresh
def window_begins(times: np.ndarray, before: Int, span: Int) -> np.ndarray:
    """For each tuple from `before` on, the first tuple that is at most `span` older."""
    begins = np.empty(times.size - before, np.int64)
    first = 0
    for row_index in range(before, times.size):
        while times[first] < times[row_index] - span:
            first += 1
        begins[row_index - before] = first
    return begins


@fresh
def add_rows(ring: np.ndarray, ends: np.ndarray, arrived: Int, rows: np.ndarray, oldest: np.ndarray) -> None:
    """Add a query's rows of a block, one by one, after dropping tuples that have left the window by then."""
    mask = ring.size - 1
    first, last = ends[0], ends[1]
    for row in rows:
        limit = oldest[row]
        while first < last and ring[first & mask] < limit:
            first += 1
        ring[last & mask] = arrived + row
        last += 1
    ends[0], ends[1] = first, last


@fresh
def add_cell(
    places: tuple[int, ...],
    block_rows: Int,
    rings: np.ndarray,
    ends: np.ndarray,
    arrived: Int,
    oldest: np.ndarray,
    begin: Int,
) -> None:
    """Add the rows from `begin` on of every query in a cell, whose clauses are numbered like the rings."""
    clause_at, rows_at, offset_at, data_at, entries, data_bytes = places
    if entries == 0:
        return
    for clause in numba.carray(pointer(clause_at), entries, np.int64):
        rows = entry_rows(
            clause_at, rows_at, offset_at, data_at, entries, data_bytes, block_rows, clause, begin, block_rows
        )
        add_rows(rings[clause], ends[clause], arrived, rows, oldest)


@fresh
def drop(rings: np.ndarray, ends: np.ndarray, limit: Int) -> None:
    """Drop every query's tuples before a tuple."""
    mask = rings.shape[1] - 1
    for query in range(rings.shape[0]):
        first, last = ends[query, 0], ends[query, 1]
        while first < last and rings[query, first & mask] < limit:
            first += 1
        ends[query, 0] = first


@fresh
def located(ring: np.ndarray, ends: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A ring's tuples as rows of blocks that begin at those tuples."""
    mask = ring.size - 1
    first, last = ends[0], ends[1]
    rows = np.empty(last - first, np.uint16)
    begins = np.zeros(starts.size + 1, np.int64)
    block = 0
    for position in range(first, last):
        tuple_id = ring[position & mask]
        while block + 1 < starts.size and tuple_id >= starts[block + 1]:
            block += 1
            begins[block] = position - first
        rows[position - first] = tuple_id - starts[block]
    begins[block + 1 :] = last - first
    return rows, begins
