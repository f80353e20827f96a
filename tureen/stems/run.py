"""Data runs as files: tuples in time order, cut into indexed blocks, with their cells behind them.

A run is a file of checksummed parts (`tureen.pot.parts`):

```
for each block     its tuples as an Arrow record batch: the stored columns, and `_nth` if they did not arrive in order
                   of time; then, if the run is indexed, `_perm_<column>` and `_rank_<column>`
for each block     a record batch per query run: its cells (absent if the run was not matched)
for each list of columns that joins compare   the arrays of a key index
```

The file's metadata is its layout as JSON: the rows of each block, the time of its last tuple, and which of these parts
exist.

A part is verified when a process first uses it. A damaged index, key index or cell is computed again from the tuples.
"""

from __future__ import annotations

import json
import logging
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa

from tureen.errors import DamagedFile
from tureen.keys import KeyColumns
from tureen.pot.parts import Parts, PartsWriter
from tureen.schema import Schema
from tureen.stems.index import BLOCK_ROWS, AddressTable, Block, index_block
from tureen.stems.key_index import KeyIndex
from tureen.stems.sort_kernels import selects_any
from tureen.stems.stored import NTH, StoredBlock, StoredCells, index_batch
from tureen.stems.stored_keys import PARTS_OF_INDEX, Report, StoredKeys, add_key_index

log = logging.getLogger("tureen")

CellsOf = Callable[[Block], Iterable[pa.RecordBatch]]
"""Matches one block with each query run in turn; batches share buffers, so each is written before the next."""

Numbers = np.ndarray[Any, np.dtype[np.int64]]

_MAX_TABLES = 64

_map_lock = threading.Lock()


def log_damage(damage: DamagedFile) -> None:
    """Log that a damaged part was computed again."""
    log.warning("%s (%s): computed again from the tuples", damage.message, damage.detail)


@dataclass(frozen=True, slots=True)
class SortedTuples:
    """Tuples of one stream in time order."""

    table: pa.Table
    min_time: int
    max_time: int


def sort_by_time(schema: Schema, table: pa.Table) -> SortedTuples:
    """Sort stored tuples by time; tuples of equal time stay in order of arrival.

    If that changes their order, the column `NTH` is added, unless they have it already.
    """
    times = times_of(table.column(schema.time_column))
    if len(times) > 1 and not bool(np.all(times[:-1] <= times[1:])):
        order = np.argsort(times, kind="stable")
        if NTH not in table.column_names:
            table = table.append_column(NTH, pa.array(np.arange(len(table), dtype=np.uint32)))
        table, times = table.take(pa.array(order)), times[order]
    return SortedTuples(table, int(times[0]), int(times[-1]))


def times_of(column: pa.Array | pa.ChunkedArray) -> Numbers:
    """A time column, which has no NULLs, as microseconds."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    # Not `to_numpy`, for which Arrow imports pandas (docs/decisions/0029).
    times = [
        np.frombuffer(chunk.buffers()[1], np.int64, len(chunk), 8 * chunk.offset) for chunk in chunks if len(chunk)
    ]
    return times[0] if len(times) == 1 else np.concatenate([np.empty(0, np.int64), *times])


def cut(table: pa.Table) -> list[pa.RecordBatch]:
    """The tuples in batches of at most BLOCK_ROWS rows, each contiguous in memory."""
    contiguous = table.combine_chunks()
    return [
        pa.Table.from_batches([batch]).combine_chunks().to_batches()[0] if batch.num_rows != len(contiguous) else batch
        for batch in contiguous.to_batches(max_chunksize=BLOCK_ROWS)
    ]


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a run's file: the rows of each block, the time of its last tuple, and which parts exist."""

    rows: list[int]
    ends: list[int]
    indexed: bool
    nth: bool
    keys: Sequence[KeyColumns] = ()
    """The columns of its key indexes."""

    @classmethod
    def of(cls, parts: Parts) -> Layout:
        """The layout of a run's file."""
        fields = json.loads(parts.about)
        keys = [tuple((name, domain) for name, domain in columns) for columns in fields.pop("keys", ())]
        return cls(**fields, keys=keys)

    def holds_tuples(self, part: int) -> bool:
        """Whether a part holds tuples, and not an index or cells."""
        return part < len(self.rows) * self.step and part % self.step == 0

    @property
    def step(self) -> int:
        """The number of parts of a block without its cells."""
        return 2 if self.indexed else 1


def write_run(
    file: BinaryIO,
    name: str,
    schema: Schema,
    table: pa.Table,
    cells_of: CellsOf | None,
    *,
    indexed: bool,
    keys: Sequence[KeyColumns] = (),
) -> int:
    """Write tuples in time order, optionally with an index, cells and key indexes; returns the file's checksum."""
    names = schema.names if indexed else []
    nth = not is_in_order(table)
    stored = [*schema.stored.names, NTH] if nth else schema.stored.names
    parts = PartsWriter(file, name)
    blocks: list[Block] = []
    for batch in cut(table.select(stored)):
        index = index_block(batch, names)
        parts.add(batch.serialize())
        if indexed:
            parts.add(index_batch(index).serialize())
        blocks.append(Block(batch, index if indexed else None))
    if cells_of is not None:
        _add_cells(parts, blocks, cells_of)
    for columns in keys:
        of_rows = [(table.column(name).combine_chunks(), domain) for name, domain in columns]
        add_key_index(parts, KeyIndex.of(of_rows))
    ends = [int(times_of(block.column(schema.time_column))[-1]) for block in blocks]
    layout = Layout([block.rows for block in blocks], ends, indexed, nth, keys)
    return parts.finish(json.dumps(asdict(layout)).encode())


def is_in_order(table: pa.Table) -> bool:
    """Whether tuples are in their order of arrival, without gaps."""
    if NTH not in table.column_names:
        return True
    return bool(np.array_equal(table.column(NTH).to_numpy(), np.arange(len(table))))


def write_cells(file: BinaryIO, name: str, blocks: Iterable[Block], cells_of: CellsOf) -> int:
    """Write the cells of all blocks to a separate file; returns its checksum."""
    parts = PartsWriter(file, name)
    _add_cells(parts, blocks, cells_of)
    return parts.finish()


def _add_cells(parts: PartsWriter, blocks: Iterable[Block], cells_of: CellsOf) -> None:
    for block in blocks:
        for batch in cells_of(block):
            parts.add(batch.serialize())


class Addresses(NamedTuple):
    """Column addresses in the mapped blocks; replaced, not changed, when more are mapped, as threads may read it."""

    unmapped: np.ndarray[Any, np.dtype[np.bool_]]
    """Which blocks are not mapped; empty once all are."""
    columns: dict[str, Numbers | None]


class IndexTables(NamedTuple):
    """The address tables of a run's blocks for compiled loops; replaced, not changed, when more blocks are read."""

    lines: Numbers
    """For each block the address of its table, the number of tuples before it, and that of its tuples."""
    owners: list[AddressTable | None]
    """The tables, of which the addresses are valid as long as they exist; None for blocks that were not read."""
    is_complete: bool


class OpenRun:
    """A memory-mapped run, or tuples in memory with the same interface."""

    def __init__(
        self,
        blocks: Sequence[Block],
        ends: Sequence[int],
        time_column: str,
        cells: Sequence[Sequence[pa.RecordBatch]] = (),
        *,
        in_order: bool = True,
        keys: StoredKeys | None = None,
    ) -> None:
        """A run of these blocks, whose last tuples have the times `ends`; with the key indexes of its file.

        `cells` are those written with the run: for each query run one batch per block. `in_order` says that tuples are
        in their order of arrival, without gaps.
        """
        self.blocks, self.ends, self.cells, self.in_order, self.keys = blocks, ends, cells, in_order, keys
        self.starts: list[int] = [0, *np.cumsum([block.rows for block in blocks]).tolist()]
        """The number of tuples before each block, and at the end their total."""
        self.block_starts: Numbers = np.array(self.starts[:-1], np.int64)
        self._time_column = time_column
        unmapped = np.array([not block.mapped for block in blocks], np.bool_)
        self._addresses = Addresses(unmapped if unmapped.any() else unmapped[:0], {})
        self._index_tables: dict[tuple[str, ...], IndexTables] = {}

    def column(self, name: str) -> pa.Array:
        """A column of all tuples."""
        return pa.concat_arrays([block.column(name) for block in self.blocks])

    def times(self, number: int) -> Numbers:
        """The times of one block's tuples."""
        return self.blocks[number].keys(self._time_column)

    def nth(self, number: int) -> Numbers:
        """The position of each tuple of a block in the run's order of arrival."""
        nth = self.blocks[number].nth
        return np.arange(self.starts[number], self.starts[number + 1]) if nth is None else nth.astype(np.int64)

    def parts(self, first: int, last: int) -> Iterator[tuple[int, int, int]]:
        """The blocks that overlap an interval of tuples, with the interval within each."""
        for number, start in enumerate(self.starts[:-1]):
            end = self.starts[number + 1]
            if first < end and last > start:
                yield number, max(first - start, 0), min(last, end) - start

    def index_tables(self, names: tuple[str, ...], first: int, last: int) -> IndexTables | None:
        """The tables of the blocks that overlap an interval of tuples; None if one has no index of the columns."""
        begin, end = bisect_right(self.starts, first) - 1, bisect_left(self.starts, last)
        tables = self._index_tables.get(names)
        if tables is not None and (tables.is_complete or None not in tables.owners[begin:end]):
            return tables
        owners: list[AddressTable | None] = [None] * len(self.blocks) if tables is None else list(tables.owners)
        for number in range(begin, end):
            owners[number] = owners[number] or self.blocks[number].indexed_table(names)
            if owners[number] is None:
                return None
        lines = [(0 if table is None else table.address) for table in owners]
        sizes = [block.rows for block in self.blocks]
        tables = IndexTables(np.array([lines, self.starts[:-1], sizes], np.int64).T.copy(), owners, None not in owners)
        if len(self._index_tables) >= _MAX_TABLES:
            self._index_tables.clear()
        self._index_tables[names] = tables
        return tables

    @property
    def is_mapped(self) -> bool:
        """Whether all blocks are verified and mapped."""
        return not self._addresses.unmapped.size

    def map_blocks(self, starts: Numbers) -> Addresses:
        """Verify and map the blocks with selected rows: block `n` has the rows `starts[n]` to `starts[n + 1]`."""
        addresses = self._addresses
        if not addresses.unmapped.size or not selects_any(starts, addresses.unmapped):
            return addresses
        selected = addresses.unmapped & (np.diff(starts) > 0)
        for number in np.flatnonzero(selected).tolist():
            self.blocks[number].read()
        with _map_lock:
            remaining = self._addresses.unmapped & ~selected if self._addresses.unmapped.size else selected[:0]
            self._addresses = Addresses(remaining if remaining.any() else remaining[:0], {})
            return self._addresses

    def numbers_at(self, name: str, addresses: Addresses) -> Numbers | None:
        """The address of a column's numbers in each mapped block, or None if it has NULLs or is not of plain numbers.

        The address of an unmapped block is 0.
        """
        unmapped, columns = addresses
        if name not in columns:
            numbers = [
                None if unmapped.size and unmapped[number] else block.numbers_at(name)
                for number, block in enumerate(self.blocks)
            ]
            known = np.array([number or 0 for number in numbers], np.int64)
            columns[name] = None if 0 in numbers else known
        return columns[name]

    def table(self, schema: Schema, first: int) -> pa.Table:
        """The tuples with their positions in order of arrival, counted from `first`."""
        columns = pa.Table.from_batches([block.columns for block in self.blocks], schema.stored)
        nth = np.concatenate([self.nth(number) for number in range(len(self.blocks))])
        return columns.append_column(NTH, pa.array((nth + first).astype(np.uint32)))


def in_memory(schema: Schema, tuples: SortedTuples) -> OpenRun:
    """Tuples in time order, as a run without an index."""
    in_order = is_in_order(tuples.table)
    blocks = []
    for batch in cut(tuples.table):
        block = Block(batch.select(schema.stored.names))
        if not in_order:
            block.nth = batch.column(NTH).to_numpy()
        blocks.append(block)
    ends = [int(times_of(block.column(schema.time_column))[-1]) for block in blocks]
    return OpenRun(blocks, ends, schema.time_column, in_order=in_order)


def open_run(path: Path, schema: Schema, report: Report = log_damage) -> OpenRun:
    """Map a run file; its parts are verified on first use."""
    parts = Parts(path)
    layout = Layout.of(parts)
    fields = [*schema.stored, pa.field(NTH, pa.uint32())] if layout.nth else list(schema.stored)
    step = layout.step
    names = schema.names if layout.indexed else ()
    blocks = [
        StoredBlock(rows, parts, step * number, pa.schema(fields), names, report)
        for number, rows in enumerate(layout.rows)
    ]
    first = step * len(blocks)
    first_key = len(parts) - PARTS_OF_INDEX * len(layout.keys)
    queries = (first_key - first) // len(blocks)
    cells = [StoredCells(parts, first + query, queries, len(blocks)) for query in range(queries)]
    keys = StoredKeys(parts, first_key, layout.keys, sum(layout.rows), report) if layout.keys else None
    return OpenRun(blocks, layout.ends, schema.time_column, cells, in_order=not layout.nth, keys=keys)


def open_cells(path: Path) -> Sequence[pa.RecordBatch]:
    """Map a file of cells; each batch is verified when it is read."""
    parts = Parts(path)
    return StoredCells(parts, 0, 1, len(parts))
