"""The index of a block: each column's rows in the order of their values.

A data run is cut into *blocks*. For each attribute a block keeps the permutation that
sorts it and the inverse of that, the rank of each row. A factor over one attribute is then a range of ranks
whose size is known before any work is done. This is the dual of CACQ's grouped filters (§2.2): there the
constants of the queries are sorted and tuples look them up, here the tuples are sorted and queries do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tureen.stems import sort_kernels as kernels

BLOCK_ROWS = 65_536
"""The most rows of a block: as many as a uint16 can tell apart.

Every block costs a clause some fixed work, at matching and at every invocation; a block of 65,536 rows costs
a third less per row than one of 16,384 to match, and a million rows of it a third of the time to invoke.
"""

Rows = npt.NDArray[np.uint16]
"""Row ids or ranks within a block."""

_KINDS: dict[pa.DataType, tuple[int, Any]] = {
    pa.bool_(): (kernels.BYTE, np.uint8),
    pa.int8(): (kernels.INT8, np.int8),
    pa.int16(): (kernels.INT16, np.int16),
    pa.int32(): (kernels.INT32, np.int32),
    pa.int64(): (kernels.INT64, np.int64),
    pa.float32(): (kernels.FLOAT32, np.float32),
    pa.float64(): (kernels.FLOAT64, np.float64),
    pa.date32(): (kernels.INT32, np.int32),
}

_NO_NULLS: npt.NDArray[np.bool_] = np.empty(0, np.bool_)
_MOST_TABLES = 64
_NAN_KEY = 0x7FF8_0000_0000_0000


@dataclass(frozen=True, slots=True)
class ColumnIndex:
    """One column's order: `perm` lists rows by ascending value, `rank` is its inverse.

    Equal values stay in row order; NULLs come last, from `valid` on. NaN is the largest value and -0.0
    equals 0.0; strings are in the order of their UTF-8 bytes.
    """

    perm: Rows
    rank: Rows
    valid: int


class Table(NamedTuple):
    """Some columns of a block, as the compiled loops want them: one row of addresses each.

    It is good for as long as its block is there.
    """

    entries: npt.NDArray[np.int64]
    address: int


class Block:
    """At most BLOCK_ROWS tuples in time order, with or without the index of some columns.

    Blocks never change, so whatever is derived from the columns is kept once it was asked for. Threads may ask
    at the same time: what the first of them keeps is what all of them use, since addresses point into it.
    """

    columns: pa.RecordBatch
    index: Mapping[str, ColumnIndex] | None
    nth: npt.NDArray[np.uint32] | None
    """Where each tuple stands in its run's order of arrival, counted from the run's first, if it was merged."""
    rows: int
    """The number of tuples."""
    mapped = True
    """Whether the columns are there already; those of a file are verified and mapped when they are first used."""

    def __init__(self, columns: pa.RecordBatch, index: Mapping[str, ColumnIndex] | None = None) -> None:
        """Look at tuples in memory."""
        self.columns, self.index, self.nth = columns, index, None
        self.rows = columns.num_rows
        self._kept: dict[tuple[str, str], Any] = {}
        self._tables: dict[tuple[str, ...], Table] = {}

    def read(self) -> None:
        """Make sure that the columns are in memory; raises DamagedFile where those of a file are damaged."""
        assert self.columns is not None

    def column(self, name: str) -> pa.Array:
        """The Arrow column of that name."""
        return self.columns.column(name)

    def has_index(self, name: str) -> bool:
        """Whether the column came with its index."""
        return self.index is not None and name in self.index

    def indexed(self, name: str) -> ColumnIndex:
        """The column's index, made now if the block came without it."""
        if self.index is not None and name in self.index:
            return self.index[name]
        made: ColumnIndex | None = self._kept.get(("index", name))
        if made is None:
            made = self._kept.setdefault(("index", name), _index_column(self.column(name)))
        return made

    def nulls(self, name: str) -> npt.NDArray[np.bool_]:
        """Which rows are NULL; an empty array where none is."""
        found: npt.NDArray[np.bool_] | None = self._kept.get(("nulls", name))
        if found is None:
            found = self._kept.setdefault(("nulls", name), _nulls(self.column(name)))
        return found

    def keys(self, name: str) -> npt.NDArray[np.int64]:
        """A column's values as integers that sort like them (not for STRING and DECIMALs past 18 digits).

        What stands in the rows that are NULL means nothing.
        """
        found: npt.NDArray[np.int64] | None = self._kept.get(("keys", name))
        if found is None:
            found = self._kept.setdefault(("keys", name), keys_of(self.column(name)))
        return found

    def numbers_at(self, name: str) -> int:
        """Where a column's numbers lie, or 0 if it has NULLs or is not of plain 32- or 64-bit numbers."""
        found: int | None = self._kept.get(("numbers", name))
        if found is None:
            found = self._kept["numbers", name] = _numbers_at(self.column(name))
        return found

    def distinct(self, name: str) -> pa.DictionaryArray:
        """The column as codes into its distinct values."""
        found = self._kept.get(("distinct", name))
        if found is None:
            found = self._kept.setdefault(("distinct", name), self.column(name).dictionary_encode())
        return found

    def table(self, names: tuple[str, ...]) -> Table:
        """The addresses of the columns and of their indexes, which are made now where there is none."""
        found = self._tables.get(names)
        if found is None:
            entries = [self._entry(name) for name in names]
            made = np.array(entries, np.int64).reshape(len(names), kernels.FIELDS)
            if len(self._tables) >= _MOST_TABLES:
                self._tables.clear()
            found = self._tables[names] = Table(made, address_of(made))
        return found

    def indexed_table(self, names: tuple[str, ...]) -> Table | None:
        """The same if all of the columns have an index already, else None."""
        found = self._tables.get(names)
        if found is not None or not all(self.has_index(name) for name in names):
            return found
        return self.table(names)

    def _entry(self, name: str) -> list[int]:
        """A column's row of a table. Made once, with what keeps its addresses good, for all tables."""
        found = self._kept.get(("entry", name))
        if found is None:
            column, index = self.column(name), self.indexed(name)
            kind, data, offsets, owner = _addresses(column)
            order = [address_of(index.perm), address_of(index.rank), index.valid, len(column), 0]
            made = ([kind, data, offsets, *order], (column, index, owner))
            found = self._kept.setdefault(("entry", name), made)
        entry: list[int] = found[0]
        return entry


def index_block(batch: pa.RecordBatch, names: Sequence[str]) -> dict[str, ColumnIndex]:
    """Sort the named columns of a block.

    >>> batch = pa.record_batch({"a": pa.array([7, None, 3, 7], pa.int32())})
    >>> index_block(batch, ["a"])["a"].perm.tolist()
    [2, 0, 3, 1]
    """
    if batch.num_rows > BLOCK_ROWS:
        raise ValueError(f"a block of {batch.num_rows} rows; at most {BLOCK_ROWS} have a row id")
    return {name: _index_column(batch.column(name)) for name in names}


def _numbers_at(column: pa.Array) -> int:
    plain = pa.types.is_primitive(column.type) and column.type.bit_width in (32, 64)
    if not plain or column.null_count:
        return 0
    return int(column.buffers()[1].address + column.offset * column.type.bit_width // 8)


def address_of(array: npt.NDArray[Any]) -> int:
    """Where a contiguous array's values lie."""
    if not array.flags.c_contiguous:
        raise ValueError("an index must be contiguous")
    return int(array.__array_interface__["data"][0])


def _index_column(column: pa.Array) -> ColumnIndex:
    perm = np.empty(len(column), np.uint16)
    rank = np.empty(len(column), np.uint16)
    if _is_text(column.type):
        # Sorting the distinct values once is cheaper than comparing strings for every row.
        coded = column.dictionary_encode()
        order = numbers_of(pc.array_sort_indices(coded.dictionary), np.uint64)
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        keys = place[codes_of(coded)] if len(place) else np.zeros(len(column), np.int32)
        valid = kernels.sort_column(kernels.INT32, address_of(keys), _nulls(column), perm, rank)
    else:
        kind, data, _, owner = _addresses(column)
        valid = kernels.sort_column(kind, data, _nulls(column), perm, rank)
        del owner
    return ColumnIndex(perm, rank, valid)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind))


def _addresses(column: pa.Array) -> tuple[int, int, int, object]:
    """How a column is stored, where its values and offsets lie, and what must be kept alive for that."""
    buffers = column.buffers()
    if _is_text(column.type):
        data = buffers[2].address if buffers[2] is not None else 0
        offsets = buffers[1].address + 4 * column.offset if buffers[1] is not None else 0
        return kernels.TEXT, data, offsets, buffers
    if pa.types.is_boolean(column.type):
        unpacked = _unpacked(column, buffers[1]).view(np.uint8)
        return kernels.BYTE, address_of(unpacked), 0, unpacked
    kind, width = _stored(column.type)
    start = buffers[1].address + width * column.offset if buffers[1] is not None else 0
    return kind, start, 0, buffers


def _stored(kind: pa.DataType) -> tuple[int, int]:
    if pa.types.is_decimal(kind):
        return (kernels.DECIMAL if kind.precision <= 18 else kernels.WIDE), 16
    if pa.types.is_timestamp(kind):
        return kernels.INT64, 8
    code, numpy_type = _KINDS[kind]
    return code, np.dtype(numpy_type).itemsize


def _unpacked(column: pa.Array, bits: pa.Buffer | None) -> npt.NDArray[np.bool_]:
    if bits is None:
        return np.zeros(len(column), np.bool_)
    begin, end = column.offset, column.offset + len(column)
    packed = np.frombuffer(bits, np.uint8)[begin // 8 : (end + 7) // 8]
    unpacked = np.unpackbits(packed, bitorder="little")[begin % 8 : begin % 8 + len(column)]
    return np.ascontiguousarray(unpacked).view(np.bool_)


def truths_of(array: pa.BooleanArray) -> npt.NDArray[np.bool_]:
    """A boolean array's values; what stands for NULL means nothing."""
    return _unpacked(array, array.buffers()[1])


def numbers_of(array: pa.Array, kind: Any) -> npt.NDArray[Any]:
    """An array's numbers where they lie. `to_numpy` would import pandas where it is installed."""
    buffer = array.buffers()[1]
    if buffer is None:
        return np.empty(0, kind)
    return np.frombuffer(buffer, kind, len(array), array.offset * np.dtype(kind).itemsize)


def codes_of(coded: pa.DictionaryArray) -> npt.NDArray[np.int32]:
    """A dictionary array's codes, with 0 for NULL."""
    nulls, codes = _nulls(coded.indices), numbers_of(coded.indices, np.int32)
    return np.where(nulls, np.int32(0), codes) if nulls.size else codes


def _nulls(column: pa.Array) -> npt.NDArray[np.bool_]:
    if column.null_count == 0:
        return _NO_NULLS
    return ~_unpacked(column, column.buffers()[0])


def keys_of(column: pa.Array) -> npt.NDArray[np.int64]:
    """Values as integers that sort like them, as `Block.keys` gives those of a column."""
    if pa.types.is_boolean(column.type):
        return truths_of(column).astype(np.int64)
    values = stored_values(column)
    if values.dtype.kind == "f":
        return ordered_floats(values)
    return values if values.dtype == np.int64 else values.astype(np.int64)


def stored_values(column: pa.Array) -> npt.NDArray[Any]:
    """The values as they are stored, NULL or not; of a DECIMAL past 18 digits its lower and higher words."""
    kind, width = _stored(column.type)
    buffer = column.buffers()[1]
    begin, end = column.offset, column.offset + len(column)
    if kind in (kernels.DECIMAL, kernels.WIDE):
        words = np.frombuffer(buffer, np.int64)[2 * begin : 2 * end].reshape(-1, 2)
        return words if kind == kernels.WIDE else words[:, 0]
    numpy_type = np.int64 if kind == kernels.INT64 else _KINDS[column.type][1]
    assert width == np.dtype(numpy_type).itemsize
    return np.frombuffer(buffer, numpy_type)[begin:end]


def ordered_floats(values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Floats as integers that sort as Spark sorts doubles: NaN largest, -0.0 as 0.0."""
    doubles = values.astype(np.float64)
    bits = doubles.view(np.int64)
    keys = np.where(bits >= 0, bits, (bits ^ np.int64(0x7FFF_FFFF_FFFF_FFFF)) + 1)
    keys[np.isnan(doubles)] = _NAN_KEY
    return keys
