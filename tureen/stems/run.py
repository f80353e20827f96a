"""Data runs as files: tuples in time order, cut into indexed blocks, with their cells behind them.

```
Arrow IPC file   one record batch per block: the stored columns; `_nth` where tuples were merged out of their order
                 of arrival; `_perm_<column>` and `_rank_<column>` where indexed
Arrow IPC file   for each block a record batch per query run: its cells (absent where the run was not matched)
footer           where the first one ends, where the second one starts, its length, magic
```

Both parts start at a multiple of 64 bytes, so that a reader maps the file and copies nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from tureen.schema import Schema
from tureen.stems.index import BLOCK_ROWS, Block, ColumnIndex, index_block

CELL_SCHEMA = pa.schema([("clause", pa.int64()), ("rows", pa.int32()), ("ids", pa.large_binary())])
"""A cell's columns: for each clause with a match in the block, how many rows and which."""

NTH = "_nth"
"""The column that says where a tuple stands in the run's order of arrival: its id, counted from the run's first.

Where it is not there, tuples stand in that order.
"""

_FOOTER = struct.Struct("<qqq8s")
_MAGIC = b"TURRUN01"

CellsOf = Callable[[Block], Iterable[pa.RecordBatch]]
"""Matches one block with each query run in turn; a batch is written before the next is made, in the same buffers."""


@dataclass(frozen=True, slots=True)
class Sorted:
    """Tuples of one stream in time order, ready to be written."""

    table: pa.Table
    min_time: int
    max_time: int


def sort_by_time(schema: Schema, table: pa.Table) -> Sorted:
    """Put stored tuples in time order; those of equal time stay in order of arrival."""
    times = times_of(table.column(schema.time_column))
    if len(times) > 1 and not bool(np.all(times[:-1] <= times[1:])):
        order = np.argsort(times, kind="stable")
        table, times = table.take(pa.array(order)), times[order]
    return Sorted(table, int(times[0]), int(times[-1]))


def times_of(column: pa.Array | pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A time column as microseconds."""
    values: np.ndarray[Any, np.dtype[np.int64]] = column.cast(pa.int64()).to_numpy()
    return values


def cut(table: pa.Table) -> list[pa.RecordBatch]:
    """The tuples in batches of at most a block, each contiguous in memory."""
    whole = table.combine_chunks()
    return [
        pa.Table.from_batches([batch]).combine_chunks().to_batches()[0] if batch.num_rows != len(whole) else batch
        for batch in whole.to_batches(max_chunksize=BLOCK_ROWS)
    ]


def write_run(file: BinaryIO, schema: Schema, table: pa.Table, cells_of: CellsOf | None, *, indexed: bool) -> None:
    """Write tuples in time order, with an index if wanted, and the cells that `cells_of` gives."""
    names = schema.names if indexed else []
    kept = schema.stored.names if is_in_order(table) else [*schema.stored.names, NTH]
    stored = _file_schema(schema, kept, names)
    blocks: list[Block] = []
    with pa.ipc.new_file(pa.PythonFile(file, "w"), stored) as data:
        for batch in cut(table.select(kept)):
            index = index_block(batch, names)
            arrays = list(batch.columns)
            for name in names:
                arrays += [pa.array(index[name].perm), pa.array(index[name].rank)]
            data.write_batch(pa.record_batch(arrays, schema=stored))
            blocks.append(Block(batch, index if indexed else None))
    end = file.tell()
    file.write(bytes(-end % 64))
    start = file.tell()
    if cells_of is not None:
        write_cells(file, blocks, cells_of)
    file.write(_FOOTER.pack(end, start, file.tell() - start, _MAGIC))


def is_in_order(table: pa.Table) -> bool:
    """Whether tuples stand in their order of arrival, without gaps."""
    if NTH not in table.column_names:
        return True
    return bool(np.array_equal(table.column(NTH).to_numpy(), np.arange(len(table))))


def write_cells(file: BinaryIO, blocks: Iterable[Block], cells_of: CellsOf) -> None:
    """Write the cells of each block."""
    with pa.ipc.new_file(pa.PythonFile(file, "w"), CELL_SCHEMA) as cells:
        for block in blocks:
            for batch in cells_of(block):
                cells.write_batch(batch)


@dataclass(frozen=True, eq=False)
class OpenRun:
    """A memory-mapped run, or some tuples in memory that are looked at like one."""

    blocks: Sequence[Block]
    times: Sequence[np.ndarray[Any, np.dtype[np.int64]]]
    """The times of each block's tuples."""
    cells: Sequence[Sequence[pa.RecordBatch]] = ()
    """The cells that were written with the run: for each query run one per block; none where it was not matched."""
    nth: np.ndarray[Any, np.dtype[np.uint32]] | None = None
    """Where each tuple stands in the order of arrival; None where it stands there already."""
    _addresses: dict[str, np.ndarray[Any, np.dtype[np.int64]] | None] = field(default_factory=dict)

    def numbers_at(self, name: str) -> np.ndarray[Any, np.dtype[np.int64]] | None:
        """Where a column's numbers lie in each block, or None if it has NULLs or is not of plain numbers."""
        if name not in self._addresses:
            places = [block.numbers_at(name) for block in self.blocks]
            self._addresses[name] = np.array(places, np.int64) if all(places) else None
        return self._addresses[name]

    def table(self, schema: Schema, first: int) -> pa.Table:
        """The tuples with their numbers in order of arrival, counted from `first` on."""
        columns = pa.Table.from_batches([block.columns for block in self.blocks], schema.stored)
        nth = np.arange(len(columns)) if self.nth is None else self.nth.astype(np.int64)
        return columns.append_column(NTH, pa.array((nth + first).astype(np.uint32)))


def in_memory(schema: Schema, tuples: Sorted) -> OpenRun:
    """Tuples in time order, to be looked at like a run without index."""
    nth = None if is_in_order(tuples.table) else tuples.table.column(NTH).to_numpy()
    return _run_of([Block(batch) for batch in cut(tuples.table.select(schema.stored.names))], schema, (), nth)


def open_run(path: Path, schema: Schema) -> OpenRun:
    """Map a run file."""
    buffer = pa.memory_map(str(path)).read_buffer()
    end, start, length, magic = _FOOTER.unpack(buffer.slice(buffer.size - _FOOTER.size))
    if magic != _MAGIC:
        raise OSError(f"{path.name} is not a data run")
    batches = _batches(buffer.slice(0, end))
    nth = None
    if batches and batches[0].schema.get_field_index(NTH) >= 0:
        nth = np.concatenate([batch.column(NTH).to_numpy() for batch in batches])
    blocks = [_block(batch, schema) for batch in batches]
    cells = _batches(buffer.slice(start, length)) if length else []
    queries = len(cells) // len(blocks)
    return _run_of(blocks, schema, [cells[number::queries] for number in range(queries)], nth)


def _run_of(
    blocks: Sequence[Block],
    schema: Schema,
    cells: Sequence[Sequence[pa.RecordBatch]],
    nth: np.ndarray[Any, np.dtype[np.uint32]] | None,
) -> OpenRun:
    return OpenRun(blocks, [times_of(block.columns.column(schema.time_column)) for block in blocks], cells, nth)


def open_cells(path: Path) -> Sequence[pa.RecordBatch]:
    """Map a file that holds only cells."""
    return _batches(pa.memory_map(str(path)).read_buffer())


def _batches(buffer: pa.Buffer) -> Sequence[pa.RecordBatch]:
    file = pa.ipc.open_file(pa.BufferReader(buffer))
    return [file.get_batch(number) for number in range(file.num_record_batches)]


def _block(batch: pa.RecordBatch, schema: Schema) -> Block:
    columns = batch.select(schema.stored.names)
    if batch.schema.get_field_index(f"_perm_{schema.names[0]}") < 0:
        return Block(columns, None)
    index = {
        name: ColumnIndex(
            perm=batch.column(f"_perm_{name}").to_numpy(),
            rank=batch.column(f"_rank_{name}").to_numpy(),
            valid=batch.num_rows - batch.column(name).null_count,
        )
        for name in schema.names
    }
    return Block(columns, index)


def _file_schema(schema: Schema, kept: Sequence[str], names: Sequence[str]) -> pa.Schema:
    fields = [pa.field(NTH, pa.uint32()) if name == NTH else schema.stored.field(name) for name in kept]
    for name in names:
        fields += [pa.field(f"_perm_{name}", pa.uint16()), pa.field(f"_rank_{name}", pa.uint16())]
    return pa.schema(fields)
