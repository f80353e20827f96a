"""Blocks and cells in the parts of a file: verified and mapped on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

import numpy as np
import pyarrow as pa

from tureen.errors import DamagedFile
from tureen.pot.parts import Parts
from tureen.stems.index import Block, ColumnIndex, index_block

NTH = "_nth"
"""The column with a tuple's position in the run's order of arrival: its id, counted from the run's first.

Without this column, tuples are stored in that order.
"""

CELL_SCHEMA = pa.schema([("clause", pa.int64()), ("rows", pa.int32()), ("ids", pa.large_binary())])
"""A cell's columns: for each clause with a match in the block, the number of rows and their container."""


class StoredBlock(Block):
    """A block of a run's file.

    Its attributes `columns`, `nth` and `index` are set by `__getattr__`, which Python calls only while they are
    missing: after the first access they cost the same as those of any block.
    """

    mapped = False

    def __init__(
        self,
        rows: int,
        parts: Parts,
        number: int,
        schema: pa.Schema,
        indexed: Sequence[str],
        report: Callable[[DamagedFile], None],
    ) -> None:
        """A block whose tuples are in part `number`, and the index of the `indexed` columns in the next part."""
        self.rows = rows
        self._parts, self._number = parts, number
        self._schema, self._indexed = schema, indexed
        self._report = report
        self._cache, self._tables = {}, {}

    def __getattr__(self, name: str) -> Any:
        """Load an attribute on first access."""
        if name in ("columns", "nth"):
            self._read_tuples()
        elif name == "index":
            self.index = self._read_index() if self._indexed else None
        else:
            raise AttributeError(name)
        return self.__dict__[name]

    def _read_tuples(self) -> None:
        batch = _read(self._parts, self._number, self._schema)
        if batch.num_rows != self.rows:
            raise self._parts.damaged(f"a block must have {self.rows} rows, got {batch.num_rows}")
        names = [name for name in self._schema.names if name != NTH]
        self.nth = batch.column(NTH).to_numpy() if len(names) < batch.num_columns else None
        self.columns = batch.select(names)

    def _read_index(self) -> Mapping[str, ColumnIndex]:
        columns = self.columns
        try:
            batch = _read(self._parts, self._number + 1, _index_schema(self._indexed))
            return _index(self._parts, columns, self._indexed, batch)
        except DamagedFile as damage:
            self._report(damage)
            return index_block(columns, self._indexed)


class StoredCells(Sequence[pa.RecordBatch]):
    """The cells of a run's blocks for one query run, in every n-th part of a file."""

    def __init__(self, parts: Parts, first: int, step: int, blocks: int) -> None:
        """The parts `first`, `first + step` … of a file, one for each block."""
        self._parts, self._first, self._step, self._blocks = parts, first, step, blocks

    def __len__(self) -> int:
        """The number of blocks."""
        return self._blocks

    @overload
    def __getitem__(self, block: int) -> pa.RecordBatch: ...

    @overload
    def __getitem__(self, block: slice) -> Sequence[pa.RecordBatch]: ...

    def __getitem__(self, block: int | slice) -> pa.RecordBatch | Sequence[pa.RecordBatch]:
        """The cell of a block; raises DamagedFile."""
        if isinstance(block, slice):
            return [self[number] for number in range(*block.indices(self._blocks))]
        if not 0 <= block < self._blocks:
            raise IndexError(block)
        return _read(self._parts, self._first + self._step * block, CELL_SCHEMA)


def index_batch(index: Mapping[str, ColumnIndex]) -> pa.RecordBatch:
    """The stored form of a block's index."""
    arrays = [pa.array(array) for column in index.values() for array in (column.perm, column.rank)]
    return pa.record_batch(arrays, schema=_index_schema(list(index)))


def _index_schema(names: Sequence[str]) -> pa.Schema:
    return pa.schema([pa.field(f"_{kind}_{name}", pa.uint16()) for name in names for kind in ("perm", "rank")])


def _index(
    parts: Parts, columns: pa.RecordBatch, names: Sequence[str], batch: pa.RecordBatch
) -> Mapping[str, ColumnIndex]:
    """The index for compiled loops, which do not check bounds, so they are checked here."""
    index = {}
    for number, name in enumerate(names):
        perm, rank = batch.column(2 * number).to_numpy(), batch.column(2 * number + 1).to_numpy()
        for array in (perm, rank):
            if len(array) != columns.num_rows or int(np.max(array, initial=0)) >= max(columns.num_rows, 1):
                raise parts.damaged(f"the index of column '{name}' points outside of its block")
        index[name] = ColumnIndex(perm, rank, columns.num_rows - columns.column(name).null_count)
    return index


def _read(parts: Parts, number: int, schema: pa.Schema) -> pa.RecordBatch:
    try:
        batch = pa.ipc.read_record_batch(parts.read(number), schema)
        batch.validate()
    except pa.ArrowException as error:
        raise parts.damaged(str(error)) from error
    return batch
