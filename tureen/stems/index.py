"""The index of a block: each column's rows in the order of their values.

A data run is cut into *blocks*. For each column a block stores the permutation that sorts it and the inverse of that,
the rank of each row. A factor over one column is then a range of ranks, whose size is known before any work is done.
This is the dual of CACQ's grouped filters (§2.2), which sort the constants of the queries and look up each tuple in
them: here the tuples are sorted and each constant is looked up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tureen.keys import float_keys
from tureen.stems import sort_kernels as kernels

BLOCK_ROWS = 65_536
"""The maximum number of rows of a block: a row id is a uint16.

Each block has a fixed cost per clause, at matching and at every invocation. Compared with blocks of 16,384 rows, a row
takes a third less time to match, and invoking over a million rows takes a third of the time.
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
_MAX_TABLES = 64


@dataclass(frozen=True, slots=True)
class ColumnIndex:
    """One column's order: `perm` lists rows by ascending key (`tureen.keys`), `rank` is its inverse.

    Rows of equal keys stay in row order. NULLs come last, from `valid` on.
    """

    perm: Rows
    rank: Rows
    valid: int


class AddressTable(NamedTuple):
    """Columns of a block for compiled loops: one row of addresses each.

    It is valid as long as its block exists.
    """

    entries: npt.NDArray[np.int64]
    address: int


class Block:
    """At most BLOCK_ROWS tuples in time order, with or without an index of some columns.

    Blocks are immutable, so whatever is derived from the columns is cached. If several threads derive the same value,
    all of them use the first that was cached, since addresses point into it.
    """

    columns: pa.RecordBatch
    index: Mapping[str, ColumnIndex] | None
    nth: npt.NDArray[np.uint32] | None
    """The position of each tuple in its run's order of arrival, if the run was merged."""
    rows: int
    """The number of tuples."""
    mapped = True
    """Whether the columns are in memory; those of a file are verified and mapped on first use."""

    def __init__(self, columns: pa.RecordBatch, index: Mapping[str, ColumnIndex] | None = None) -> None:
        """A block of tuples in memory."""
        self.columns, self.index, self.nth = columns, index, None
        self.rows = columns.num_rows
        self._cache: dict[tuple[str, str], Any] = {}
        self._tables: dict[tuple[str, ...], AddressTable] = {}

    def read(self) -> None:
        """Load the columns; raises DamagedFile if those of a file are damaged."""
        assert self.columns is not None

    def column(self, name: str) -> pa.Array:
        """The Arrow column of that name."""
        return self.columns.column(name)

    def has_index(self, name: str) -> bool:
        """Whether the block was created with an index of the column."""
        return self.index is not None and name in self.index

    def indexed(self, name: str) -> ColumnIndex:
        """The column's index, which is built now if the block was created without it."""
        if self.index is not None and name in self.index:
            return self.index[name]
        index: ColumnIndex | None = self._cache.get(("index", name))
        if index is None:
            index = self._cache.setdefault(("index", name), _index_column(self.column(name)))
        return index

    def nulls(self, name: str) -> npt.NDArray[np.bool_]:
        """Which rows are NULL; an empty array if none is."""
        nulls: npt.NDArray[np.bool_] | None = self._cache.get(("nulls", name))
        if nulls is None:
            nulls = self._cache.setdefault(("nulls", name), _nulls(self.column(name)))
        return nulls

    def keys(self, name: str) -> npt.NDArray[np.int64]:
        """The integer keys of a column's values (not for STRING and DECIMALs past 18 digits); undefined for NULL."""
        keys: npt.NDArray[np.int64] | None = self._cache.get(("keys", name))
        if keys is None:
            keys = self._cache.setdefault(("keys", name), keys_of(self.column(name)))
        return keys

    def numbers_at(self, name: str) -> int:
        """The address of a column's numbers, or 0 if it has NULLs or is not of plain 32- or 64-bit numbers."""
        address: int | None = self._cache.get(("numbers", name))
        if address is None:
            address = self._cache["numbers", name] = _numbers_at(self.column(name))
        return address

    def plain(self, name: str) -> npt.NDArray[Any] | None:
        """The values of a column of plain 32- or 64-bit numbers without NULLs, as integers; None of others.

        Of floats, these are the bits.
        """
        key = "plain", name
        if key not in self._cache:
            self._cache[key] = _plain(self.column(name))
        values: npt.NDArray[Any] | None = self._cache[key]
        return values

    def distinct(self, name: str) -> pa.DictionaryArray:
        """The column as codes into its distinct values."""
        coded = self._cache.get(("distinct", name))
        if coded is None:
            coded = self._cache.setdefault(("distinct", name), self.column(name).dictionary_encode())
        return coded

    def table(self, names: tuple[str, ...]) -> AddressTable:
        """The addresses of the columns and of their indexes, which are built now where missing."""
        table = self._tables.get(names)
        if table is None:
            entries = [self._entry(name) for name in names]
            array = np.array(entries, np.int64).reshape(len(names), kernels.FIELDS)
            if len(self._tables) >= _MAX_TABLES:
                self._tables.clear()
            table = self._tables[names] = AddressTable(array, address_of(array))
        return table

    def indexed_table(self, names: tuple[str, ...]) -> AddressTable | None:
        """The same if all of the columns have an index already, or None."""
        table = self._tables.get(names)
        if table is not None or not all(self.has_index(name) for name in names):
            return table
        return self.table(names)

    def _entry(self, name: str) -> list[int]:
        """A column's row of an address table, cached for all tables with the objects that its addresses point into."""
        cached = self._cache.get(("entry", name))
        if cached is None:
            column, index = self.column(name), self.indexed(name)
            kind, data, offsets, owner = _addresses(column)
            order = [address_of(index.perm), address_of(index.rank), index.valid, len(column), 0]
            new = ([kind, data, offsets, *order], (column, index, owner))
            cached = self._cache.setdefault(("entry", name), new)
        entry: list[int] = cached[0]
        return entry


def index_block(batch: pa.RecordBatch, names: Sequence[str]) -> dict[str, ColumnIndex]:
    """Sort the named columns of a block.

    >>> batch = pa.record_batch({"a": pa.array([7, None, 3, 7], pa.int32())})
    >>> index_block(batch, ["a"])["a"].perm.tolist()
    [2, 0, 3, 1]
    """
    if batch.num_rows > BLOCK_ROWS:
        raise ValueError(f"a block must have at most {BLOCK_ROWS} rows, got {batch.num_rows}")
    return {name: _index_column(batch.column(name)) for name in names}


def _numbers_at(column: pa.Array) -> int:
    plain = pa.types.is_primitive(column.type) and column.type.bit_width in (32, 64)
    if not plain or column.null_count:
        return 0
    return int(column.buffers()[1].address + column.offset * column.type.bit_width // 8)


def _plain(column: pa.Array) -> npt.NDArray[Any] | None:
    if not pa.types.is_primitive(column.type) or column.null_count:
        return None
    width = column.type.bit_width
    if width not in (32, 64):
        return None
    return np.frombuffer(
        column.buffers()[1], np.int32 if width == 32 else np.int64, len(column), column.offset * width // 8
    )


def address_of(array: npt.NDArray[Any]) -> int:
    """The address of a contiguous array's values."""
    if not array.flags.c_contiguous:
        raise ValueError("the array must be contiguous")
    return int(array.__array_interface__["data"][0])


def _index_column(column: pa.Array) -> ColumnIndex:
    perm = np.empty(len(column), np.uint16)
    rank = np.empty(len(column), np.uint16)
    if _is_text(column.type):
        # Sorting the distinct values once is cheaper than comparing strings for every row.
        keys, _ = text_ranks(column.dictionary_encode())
        valid = kernels.sort_column(kernels.INT32, address_of(keys), _nulls(column), perm, rank)
    else:
        kind, data, _, owner = _addresses(column)
        valid = kernels.sort_column(kind, data, _nulls(column), perm, rank)
        del owner
    return ColumnIndex(perm, rank, valid)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind))


def _addresses(column: pa.Array) -> tuple[int, int, int, object]:
    """A column's kind, the addresses of its values and offsets, and the object that owns that memory."""
    buffers = column.buffers()
    if _is_text(column.type):
        data = buffers[2].address if buffers[2] is not None else 0
        offsets = buffers[1].address + 4 * column.offset if buffers[1] is not None else 0
        return kernels.TEXT, data, offsets, buffers
    if pa.types.is_boolean(column.type):
        unpacked = _unpack_bits(column, buffers[1]).view(np.uint8)
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


def _unpack_bits(column: pa.Array, bits: pa.Buffer | None) -> npt.NDArray[np.bool_]:
    if bits is None:
        return np.zeros(len(column), np.bool_)
    begin, end = column.offset, column.offset + len(column)
    packed = np.frombuffer(bits, np.uint8)[begin // 8 : (end + 7) // 8]
    unpacked = np.unpackbits(packed, bitorder="little")[begin % 8 : begin % 8 + len(column)]
    return np.ascontiguousarray(unpacked).view(np.bool_)


def truths_of(array: pa.BooleanArray) -> npt.NDArray[np.bool_]:
    """A boolean array's values; undefined for NULL."""
    return _unpack_bits(array, array.buffers()[1])


def numbers_of(array: pa.Array, kind: Any) -> npt.NDArray[Any]:
    """An array's numbers, not copied. `to_numpy` would import pandas if it is installed."""
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
    return ~_unpack_bits(column, column.buffers()[0])


def keys_of(column: pa.Array) -> npt.NDArray[np.int64]:
    """The integer keys of a column's values (`tureen.keys`), as of `Block.keys`."""
    if pa.types.is_boolean(column.type):
        return truths_of(column).astype(np.int64)
    values = stored_values(column)
    if values.dtype.kind == "f":
        return float_keys(values)
    return values if values.dtype == np.int64 else values.astype(np.int64)


def stored_values(column: pa.Array) -> npt.NDArray[Any]:
    """The stored values, undefined for NULL; of a DECIMAL past 18 digits the lower and the higher words."""
    kind, width = _stored(column.type)
    buffer = column.buffers()[1]
    begin, end = column.offset, column.offset + len(column)
    if kind in (kernels.DECIMAL, kernels.WIDE):
        words = np.frombuffer(buffer, np.int64)[2 * begin : 2 * end].reshape(-1, 2)
        return words if kind == kernels.WIDE else words[:, 0]
    numpy_type = np.int64 if kind == kernels.INT64 else _KINDS[column.type][1]
    assert width == np.dtype(numpy_type).itemsize
    return np.frombuffer(buffer, numpy_type)[begin:end]


def text_ranks(coded: pa.DictionaryArray) -> tuple[npt.NDArray[np.int32], pa.Array]:
    """The rank of each row's text among the distinct texts (any rank for NULL), and the order that sorts these.

    >>> coded = pa.array(["b", "a", "b"]).dictionary_encode()
    >>> ranks, order = text_ranks(coded)
    >>> ranks.tolist(), coded.dictionary.take(order).to_pylist()
    ([1, 0, 1], ['a', 'b'])
    """
    order = pc.array_sort_indices(coded.dictionary)
    ranks = np.empty(len(order), np.int32)
    ranks[numbers_of(order, np.uint64)] = np.arange(len(order), dtype=np.int32)
    return ranks[codes_of(coded)] if len(ranks) else np.zeros(len(coded), np.int32), order
