"""The key index of a run: from the values of some columns to its tuples (CACQ §2.4: a SteM that joins probe).

It is kept in memory while the run exists; runs never change. Keys are integers: of whole numbers, dates and times the
value, of floats the key of `tureen.keys`, of strings and decimals a hash. Tuples with equal hashes may differ, so that
who uses the index compares them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.keys import float_keys
from tureen.stems.key_kernels import (
    empty_table,
    find_groups,
    group_rows,
    hash_decimals,
    hash_texts,
    order_by_group,
    slots_for,
)

Numbers = npt.NDArray[np.int64]

EXACT, FLOAT, TEXT, DECIMAL = "int", "double", "string", "decimal"
"""How a column is coded: the domains of `tureen.predicate.Compare`."""

HASHED = frozenset({TEXT, DECIMAL})
"""The domains in which different values may have the same key."""

_PRIME = (1 << 61) - 1
_EXACT_DIGITS = 15


def codes_of(column: pa.Array, domain: str) -> Numbers:
    """The keys of a column; undefined for NULL."""
    if domain == TEXT:
        texts = column.cast(pa.large_string())
        _, offsets, data = texts.buffers()
        bounds = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
        bytes_of = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
        return hash_texts(bounds, bytes_of, np.empty(len(texts), np.int64))
    if domain == FLOAT:
        return float_keys(double_values(column))
    if domain == DECIMAL:
        # As Python hashes numbers: the hash of a quotient is that of the numerator by the inverse of the denominator.
        factor = pow(10, -decimal_scale(column.type), _PRIME)
        return hash_decimals(decimal_words(column), factor, np.empty(len(column), np.int64))
    return integer_keys(column)


def valid_flags(column: pa.Array) -> npt.NDArray[np.bool_]:
    """Which values of a column are not NULL."""
    return np.asarray(column.is_valid()) if column.null_count else np.ones(len(column), np.bool_)


def double_values(column: pa.Array) -> npt.NDArray[np.float64]:
    """Numbers as DOUBLE; undefined for NULL."""
    kind = column.type
    if pa.types.is_decimal(kind):
        if kind.precision <= _EXACT_DIGITS:
            # Both numbers are exact doubles, so the quotient is the double nearest to the decimal.
            quotients: npt.NDArray[np.float64] = decimal_words(column)[:, 0].astype(np.float64) / 10.0**kind.scale
            return quotients
        return np.array([float(value.as_py() or 0) for value in column], np.float64)
    if not pa.types.is_floating(kind):
        return integer_keys(column).astype(np.float64)
    filled: npt.NDArray[np.float64] = column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
    return filled


def decimal_scale(kind: pa.DataType) -> int:
    """The scale of a DECIMAL type; 0 for whole numbers."""
    return int(kind.scale) if pa.types.is_decimal(kind) else 0


def decimal_words(column: pa.Array) -> Numbers:
    """For each number, the low and the high 64 bits of its unscaled value; 0 for NULL."""
    if not pa.types.is_decimal(column.type):
        values = integer_keys(column)
        words = np.stack([values, values >> 63], axis=1)
        # As the words of decimals are, so that one compiled form serves both.
        words.flags.writeable = False
        return words
    whole = column.cast(pa.decimal128(38, column.type.scale)).fill_null(0)
    return np.frombuffer(whole.buffers()[1], np.int64).reshape(-1, 2)[whole.offset : whole.offset + len(whole)]


def integer_keys(column: pa.Array) -> Numbers:
    """The keys of whole numbers, truth values, dates or times; 0 for NULL."""
    if column.type == pa.int64() and not column.null_count:
        plain: Numbers = column.to_numpy()
        return plain
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    elif pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    values: Numbers = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return values


def most_bytes(rows: int, columns: int) -> int:
    """The memory of an index of that many rows, if all of them have different keys."""
    of_keys = 8 * rows * (columns + 1) if columns > 1 else 0
    return 16 * slots_for(rows) + of_keys + 8 * (rows + 1) + 4 * rows


@dataclass(frozen=True)
class KeyIndex:
    """Tuples by key: rows with equal keys form a group."""

    keys: Numbers
    """The keys of each group: a line for each of several columns; a table of one column has the keys themselves."""
    table: Numbers
    numbers: Numbers
    """The numbers of the groups, where keys are compared: 0, 1, …."""
    starts: Numbers
    rows: npt.NDArray[np.int32]
    """The rows of all groups, one group after the other, ascending within a group."""

    @classmethod
    def of(cls, columns: Sequence[tuple[pa.Array, str]]) -> KeyIndex:
        """Index rows by columns, each with the domain in which it is compared. Rows with a NULL are left out."""
        keys = np.ascontiguousarray(np.stack([codes_of(column, domain) for column, domain in columns]))
        valid = np.logical_and.reduce([valid_flags(column) for column, _ in columns])
        size = keys.shape[1]
        table = empty_table(size)
        firsts, groups = np.empty(size, np.int64), np.empty(size, np.int64)
        count = group_rows(keys, valid, table, firsts, groups)
        starts, rows = np.zeros(count + 1, np.int64), np.empty(int(valid.sum()), np.int64)
        order_by_group(groups, np.arange(size), starts, rows)
        is_single, is_smaller = len(columns) == 1, slots_for(count) < len(table)
        if is_smaller or not is_single:
            keys = np.ascontiguousarray(keys[:, firsts[:count]])
        if is_smaller:
            # Numbers the groups as before: they are in the order of their first rows.
            table = empty_table(count)
            group_rows(keys, np.ones(count, np.bool_), table, firsts, groups)
        # Not slices, which would keep the whole arrays in memory.
        keys, numbers = (np.empty((1, 0), np.int64), np.empty(0, np.int64)) if is_single else (keys, np.arange(count))
        return cls(keys, table, numbers, starts, rows.astype(np.int32))

    @property
    def bytes(self) -> int:
        """The memory that it takes."""
        arrays = (self.keys, self.table, self.numbers, self.starts, self.rows)
        return sum(array.nbytes for array in arrays)

    def find(self, keys: Numbers, valid: npt.NDArray[np.bool_]) -> tuple[Numbers, Numbers]:
        """For each key, given as a line per column, the rows that have it: pairs of an index of a key and a row."""
        groups = np.empty(keys.shape[1], np.int64)
        find_groups(keys, valid, self.table, self.numbers, self.keys, groups)
        probing = np.flatnonzero(groups >= 0)
        first, last = self.starts[groups[probing]], self.starts[groups[probing] + 1]
        sizes = last - first
        begins = np.cumsum(sizes) - sizes
        indexes = np.arange(int(sizes.sum())) + np.repeat(first - begins, sizes)
        return np.repeat(probing, sizes), self.rows[indexes].astype(np.int64)
