"""PSoup-C: each query's results of the current window, kept up to date as tuples come (§5).

The paper keeps a linked list of pointers for each query. Here it is a ring of tuple ids, so that neither adding nor
dropping moves anything, and both are compiled: a match is added when its tuple comes, and what left the window by then
is dropped first. When a batch is done, every query's ring holds exactly the window. Nothing of it is on the disk.
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

NO_CELL = pa.RecordBatch.from_arrays([pa.nulls(0, one.type) for one in CELL_SCHEMA], schema=CELL_SCHEMA)
"""What is written with a run whose results are kept elsewhere."""


def fresh(function: F) -> F:
    """Compile a function anew in every process, which is safe whatever changed in the loops that it calls."""
    return cast(F, numba.njit(nogil=True)(function))


class Kept:
    """The results of some queries over the current window, all of one length."""

    def __init__(self, queries: int, most: int, span: int, *, lazily: bool = False) -> None:
        """Keep what is no older than `span` microseconds, which is never more than `most` tuples.

        `lazily`: bring results up to date once a batch, and never add what leaves the window within it.
        """
        # Pages that no result reaches are never touched, so they cost nothing.
        self._rings = np.empty((queries, 1 << (most - 1).bit_length()), np.uint32)
        self._ends = np.zeros((queries, 2), np.int64)
        self._span = span
        self._lazily = lazily
        self._times: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self._came = 0

    def shared(self, run: QueryRun, time: str) -> CellOf:
        """A matcher of blocks that keeps what all queries, matched at once, find."""
        buffers = Buffers()

        def keep(block: Block) -> pa.RecordBatch:
            oldest, first = self._begin(block, time)
            reader = CellReader(match_block(block, run, buffers).batch, block.rows)
            keep_cell(reader.places, block.rows, self._rings, self._ends, self._came, oldest, first)
            return self._finish(block, oldest)

        return keep

    def unshared(self, selectors: Sequence[Selector], time: str) -> CellOf:
        """The same by queries that are evaluated one by one."""

        def keep(block: Block) -> pa.RecordBatch:
            oldest, first = self._begin(block, time)
            for query, selector in enumerate(selectors):
                rows = selector.rows(block, first)
                keep_rows(self._rings[query], self._ends[query], self._came, rows, oldest)
            return self._finish(block, oldest)

        return keep

    def ids(self, query: int) -> npt.NDArray[np.int64]:
        """The tuples in a query's result, numbered in order of arrival."""
        first, last = self._ends[query]
        ids: npt.NDArray[np.int64] = self._rings[query][np.arange(first, last) & (self._rings.shape[1] - 1)].astype(int)
        return ids

    def located(
        self, query: int, starts: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.int64]]:
        """The same, numbered within blocks that begin at those tuples; and where each block's rows begin."""
        return located(self._rings[query], self._ends[query], starts)

    @property
    def results(self) -> int:
        """How many results are kept, of all queries."""
        return int((self._ends[:, 1] - self._ends[:, 0]).sum())

    def _begin(self, block: Block, time: str) -> tuple[npt.NDArray[np.int64], int]:
        """For each row the first tuple in the window when it comes; and the first row worth looking at."""
        times = np.concatenate([self._times, block.keys(time)])
        before = len(self._times)
        oldest = window_begins(times, before, self._span)
        self._times = times[oldest[-1] :]
        oldest += self._came - before
        if not self._lazily:
            return oldest, 0
        drop(self._rings, self._ends, oldest[-1])
        return oldest, max(int(oldest[-1]) - self._came, 0)

    def _finish(self, block: Block, oldest: npt.NDArray[np.int64]) -> pa.RecordBatch:
        drop(self._rings, self._ends, oldest[-1])
        self._came += block.rows
        return NO_CELL


@fresh
def window_begins(times: np.ndarray, before: Int, span: Int) -> np.ndarray:
    """For each tuple from `before` on, the first one that is no more than `span` older."""
    found = np.empty(times.size - before, np.int64)
    first = 0
    for place in range(before, times.size):
        while times[first] < times[place] - span:
            first += 1
        found[place - before] = first
    return found


@fresh
def keep_rows(ring: np.ndarray, ends: np.ndarray, came: Int, rows: np.ndarray, oldest: np.ndarray) -> None:
    """Add a query's rows of a block, one by one, after dropping what left the window by then."""
    mask = ring.size - 1
    first, last = ends[0], ends[1]
    for row in rows:
        limit = oldest[row]
        while first < last and ring[first & mask] < limit:
            first += 1
        ring[last & mask] = came + row
        last += 1
    ends[0], ends[1] = first, last


@fresh
def keep_cell(
    places: tuple[int, ...],
    block_rows: Int,
    rings: np.ndarray,
    ends: np.ndarray,
    came: Int,
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
        keep_rows(rings[clause], ends[clause], came, rows, oldest)


@fresh
def drop(rings: np.ndarray, ends: np.ndarray, limit: Int) -> None:
    """Drop every query's tuples before that one."""
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
    for place in range(first, last):
        tuple_id = ring[place & mask]
        while block + 1 < starts.size and tuple_id >= starts[block + 1]:
            block += 1
            begins[block] = place - first
        rows[place - first] = tuple_id - starts[block]
    begins[block + 1 :] = last - first
    return rows, begins
