"""The variants of adding a batch that PSoup compares (§5.2.4), each with the engine's kernels and run writer.

All of them write the same run: tuples in order of time, every column indexed, durable when `take` returns. They
differ in which queries are matched and where the results go:

* *NoMat* stores no results. The paper omits it, because queries cost it nothing; here it is the cost of the rest.
* *PSoup-P shared* is the engine itself: all clauses at once, their cells behind the tuples.
* *PSoup-P unshared* evaluates each query alone (one compiled call, from the index that all queries use) and writes
  the same cells.
* *PSoup-C shared* and *unshared* match in the same two ways, and store the current window's results in memory.
* *PSoup-C shared, once a batch* updates results once per batch, so they are current only between batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.psoup_window_results import CellOf, WindowResults, fresh
from benchmarks.psoup_workload import Workload
from tureen.matching import RunCells, Selector, select
from tureen.pipeline.arrival import write_tuples
from tureen.pipeline.pinning import Pin
from tureen.pot.files import durable_file
from tureen.predicate import Clause
from tureen.queries import QueryRun, compile_clauses
from tureen.schema import Schema
from tureen.stems.cells.bitmaps import list_limit
from tureen.stems.index import BLOCK_ROWS, Block
from tureen.stems.run import open_run, sort_by_time, write_run
from tureen.stems.sort_kernels import Int
from tureen.stems.stored import CELL_SCHEMA

NOMAT = "NoMat"
P_SHARED, P_UNSHARED = "PSoup-P shared", "PSoup-P unshared"
C_SHARED, C_UNSHARED, C_LAZILY = "PSoup-C shared", "PSoup-C unshared", "PSoup-C shared, once a batch"
WRITTEN = (P_SHARED, P_UNSHARED)
IN_MEMORY = (C_SHARED, C_UNSHARED, C_LAZILY)

Ids = npt.NDArray[np.int64]


class Variant:
    """A variant of adding batches; the run of the last batch exists until the next one."""

    def __init__(self, name: str, root: Path, workload: Workload, clauses: Sequence[Clause], window: int) -> None:
        """Add tuples of a workload for queries with these clauses, over windows of `window` tuples."""
        self.name = name
        self.bytes = 0
        """The size of the last run."""
        self.window_results: WindowResults | None = None
        self._root = root
        self._workload = workload
        self._clauses = clauses
        self._batches = 0
        self._path: Path | None = None
        self._cell_of: CellOf | None = None
        schema = workload.schema
        run = compile_clauses(range(len(clauses)), clauses, schema)
        root.mkdir(parents=True)
        with durable_file(root / "queries") as file:
            run.write(file, "queries")
        self._pin = Pin(str(root), 1, schema, ("queries",) if name == P_SHARED else (), 1)
        selectors = [Selector(clause, schema) for clause in clauses] if name in (P_UNSHARED, C_UNSHARED) else []
        if name == P_UNSHARED:
            self._cell_of = evaluate_separately(selectors)
        elif name in IN_MEMORY:
            self.window_results = WindowResults(
                len(clauses), _max_tuples(workload, window), workload.span(window), lazily=name == C_LAZILY
            )
            self._cell_of = _storing(self.window_results, run, selectors, workload.time)

    def take(self, table: pa.Table) -> None:
        """Add a batch: it is on disk when this returns, and its results are stored."""
        name = f"{self._batches}.run"
        self._batches += 1
        if self._cell_of is None:
            self.bytes = write_tuples(self._pin, name, table).bytes
        else:
            self.bytes = store(self._root / name, self._workload.schema, table, self._cell_of)
        self._path = self._root / name

    def forget(self) -> None:
        """Remove the last run; not timed."""
        if self._path is not None:
            self._path.unlink()
            self._path = None

    def written(self) -> Callable[[int], Ids]:
        """The rows of each query in the last run: from its cells, or from its index if the cells refer to it."""
        assert self._path is not None
        run = open_run(self._path, self._workload.schema)
        sizes = [block.rows for block in run.blocks]
        cells = RunCells(run.cells, sizes)

        def rows(query: int) -> Ids:
            rows_and_starts = cells.rows_of(query, 0, sum(sizes))
            if rows_and_starts is None:
                parts = [select(block, self._clauses[query]) for block in run.blocks]
                rows_and_starts = np.concatenate(parts), np.cumsum([0, *map(len, parts)])
            blocks = np.repeat(np.arange(len(sizes)), np.diff(rows_and_starts[1]))
            return np.asarray(rows_and_starts[0] + blocks * BLOCK_ROWS, np.int64)

        return rows


def store(path: Path, schema: Schema, table: pa.Table, cell_of: CellOf) -> int:
    """Like `write_tuples`, with another method of matching; returns the size of the file."""
    tuples = sort_by_time(schema, table)
    with durable_file(path) as file:
        write_run(file, path.name, schema, tuples.table, lambda block: [cell_of(block)], indexed=True)
        return file.tell()


def evaluate_separately(selectors: Sequence[Selector]) -> CellOf:
    """A matcher of blocks that evaluates each query alone, and returns the engine's cell."""
    words: npt.NDArray[np.uint64] = np.empty(0, np.uint64)

    def cell_of(block: Block) -> pa.RecordBatch:
        nonlocal words
        width = (block.rows + 63) // 64
        if words.size < width * len(selectors):
            words = np.empty(width * len(selectors), np.uint64)
        clauses, counts, offsets, used = [], [], [0], 0
        for query, selector in enumerate(selectors):
            rows = selector.rows(block)
            if len(rows):
                used = put_rows(words, used, rows, block.rows)
                clauses.append(query)
                counts.append(len(rows))
                offsets.append(8 * used)
        ids = [None, pa.py_buffer(np.array(offsets, np.int64)), pa.py_buffer(words[:used])]
        columns = [
            pa.array(clauses, pa.int64()),
            pa.array(counts, pa.int32()),
            pa.Array.from_buffers(pa.large_binary(), len(clauses), ids),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=CELL_SCHEMA)

    return cell_of


@fresh
def put_rows(words: np.ndarray, used: Int, rows: np.ndarray, block_rows: Int) -> Int:
    """Write a container, a list or a bitmap, from the word `used` on; returns where the next one begins."""
    is_list = rows.size <= list_limit(block_rows)
    after = used + ((rows.size + 3) >> 2 if is_list else (block_rows + 63) >> 6)
    for index in range(used, after):
        words[index] = 0
    for index, row in enumerate(rows):
        if is_list:
            words[used + (index >> 2)] |= np.uint64(row) << np.uint64((index & 3) << 4)
        else:
            words[used + (row >> 6)] |= np.uint64(1) << np.uint64(row & 63)
    return after


def _storing(results: WindowResults, run: QueryRun, selectors: Sequence[Selector], time: str) -> CellOf:
    return results.unshared(selectors, time) if selectors else results.shared(run, time)


def _max_tuples(workload: Workload, window: int) -> int:
    """The maximum number of tuples in a window: whole reports."""
    return -(-window // workload.per_step) * workload.per_step
