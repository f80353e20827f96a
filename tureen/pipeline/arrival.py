"""New data × old queries: a batch of tuples becomes runs, matched with a pinned Query SteM.

This is the body of the sink's tasks. It does not open the catalog: its inputs were pinned before, and it returns what
the commit needs with the new runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from tureen.errors import DamagedFile
from tureen.faults import crash_point
from tureen.matching import Buffers, Tuning, match_block
from tureen.pipeline.pinning import Pin
from tureen.pot.files import durable_file
from tureen.pot.runs import NewRun
from tureen.queries import QueryRun
from tureen.stems.index import Block
from tureen.stems.run import CellsOf, sort_by_time, write_run

TAIL_ROWS = 4096
"""The minimum rows of a run that is indexed and matched; smaller runs are scanned at invocation."""

KEYED_ROWS = 16_384
"""The minimum rows of a run that has key indexes in its file; those of a smaller one are built in a millisecond."""

DENSE_SHARE = 32
"""A clause of ranges only that matches more than one row in this number is read from the index, not from a cell: then
reading the rows takes most of an invocation's time."""

MAX_RUN_ROWS = 1 << 20
"""The maximum rows of a run, which limits a task's memory."""

MAX_RUN_BYTES = 1 << 28
"""The size of tuples at which a run is written, whatever its rows."""


class Arrivals:
    """Gathers the tuples of one stream in one task and writes them as runs."""

    def __init__(self, pinned: Pin, attempt: str, part: str) -> None:
        """Write files whose names start with the attempt and contain the part."""
        self._pin = pinned
        self._prefix = f"{attempt}-{part}-{pinned.stream_id}"
        self._tables: list[pa.Table] = []
        self._rows = 0
        self._bytes = 0
        self._runs: list[NewRun] = []

    def add(self, table: pa.Table) -> None:
        """Add stored tuples, in order of arrival."""
        while self._rows + len(table) >= MAX_RUN_ROWS:
            room = MAX_RUN_ROWS - self._rows
            self._tables.append(table.slice(0, room))
            self._rows += room
            table = table.slice(room)
            self._write()
        if len(table):
            self._tables.append(table)
            self._rows += len(table)
            self._bytes += table.nbytes
        if self._bytes >= MAX_RUN_BYTES:
            self._write()

    def finish(self) -> list[NewRun]:
        """Write the remaining tuples and return all runs."""
        if self._rows:
            self._write()
        return self._runs

    def _write(self) -> None:
        table = pa.concat_tables(self._tables)
        self._tables, self._rows, self._bytes = [], 0, 0
        name = f"streams/{self._pin.stream_id}/{self._prefix}-{len(self._runs)}.run"
        self._runs.append(write_tuples(self._pin, name, table))


def write_tuples(pinned: Pin, name: str, table: pa.Table) -> NewRun:
    """Write tuples as one run at a path relative to the pot: sorted, and matched if there are at least `TAIL_ROWS`."""
    tuples = sort_by_time(pinned.schema, table)
    indexed = len(table) >= TAIL_ROWS
    failures: dict[int, str] = {}
    root = Path(pinned.root)
    cells_of, matched = None, indexed
    damaged: tuple[tuple[str, str], ...] = ()
    if indexed and pinned.queries:
        try:
            cells_of = matcher([load_queries(root / path) for path in pinned.queries], failures)
        except DamagedFile as damage:
            # The cells are then owed, and computed later from the clauses in the catalog.
            matched, damaged = False, ((damage.file, damage.detail or ""),)
    path = root / name
    crash_point("run.before_write")
    with durable_file(path) as file:
        keys = pinned.keys if len(table) >= KEYED_ROWS else ()
        checksum = write_run(file, path.name, pinned.schema, tuples.table, cells_of, indexed=indexed, keys=keys)
        size = file.tell()
    crash_point("run.after_write")
    return NewRun(
        path=name,
        rows=len(table),
        min_time=tuples.min_time,
        max_time=tuples.max_time,
        indexed=indexed,
        matched_seq=pinned.queries_seq if matched else 0,
        bytes=size,
        checksum=checksum,
        failures=failures,
        damaged=damaged,
    )


def matcher(queries: Sequence[QueryRun], failures: dict[int, str]) -> CellsOf:
    """A function that matches blocks with query runs and adds the clauses that raised to `failures`."""

    def cells_of(block: Block) -> Iterator[pa.RecordBatch]:
        for run in queries:
            cell = match_block(block, run, _buffers())
            failures.update(cell.failures)
            yield cell.batch

    return cells_of


@lru_cache(maxsize=64)
def load_queries(path: Path) -> QueryRun:
    """A compiled query run, mapped once in each process."""
    return QueryRun.load(path)


@lru_cache(maxsize=1)
def _buffers() -> Buffers:
    # Allocating pages costs more than the matching itself, so a process reuses one set of output buffers.
    return Buffers(Tuning(dense_share=DENSE_SHARE))
