"""The key index of a run: from the values of some columns to its tuples (CACQ §2.4: a SteM that joins probe).

It is built when a join first needs it and kept in memory while the run exists; runs never change. Keys are integers: of
whole numbers, dates and times the value, of floats the key of `tureen.keys`, of strings a hash. Tuples with equal
hashes of strings may differ, so that who uses the index compares them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.keys import float_keys
from tureen.stems.key_kernels import empty_table, find_groups, group_rows, hash_texts, order_by_group

Numbers = npt.NDArray[np.int64]

EXACT, FLOAT, TEXT = "int", "double", "string"
"""How a column is coded: the domains of `tureen.predicate.Compare` that the index supports."""


def can_code(kind: pa.DataType, domain: str) -> bool:
    """Whether the values of a type have keys in a domain: not those that would have to be converted to DOUBLE."""
    return domain != FLOAT or pa.types.is_floating(kind)


def codes_of(column: pa.Array, domain: str) -> Numbers:
    """The keys of a column; undefined for NULL."""
    if domain == TEXT:
        texts = column.cast(pa.large_string())
        _, offsets, data = texts.buffers()
        bounds = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
        bytes_of = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
        return hash_texts(bounds, bytes_of, np.empty(len(texts), np.int64))
    if domain == FLOAT:
        return float_keys(column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False))
    return integer_keys(column)


def integer_keys(column: pa.Array) -> Numbers:
    """The keys of whole numbers, truth values, dates or times; 0 for NULL."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    elif pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    values: Numbers = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return values


@dataclass(frozen=True)
class KeyIndex:
    """Tuples by key: rows with equal keys form a group."""

    keys: Numbers
    """A line for each of several columns."""
    table: Numbers
    representatives: Numbers
    starts: Numbers
    rows: npt.NDArray[np.int32]
    """The rows of all groups, one group after the other, ascending within a group."""

    @classmethod
    def of(cls, columns: Sequence[tuple[pa.Array, str]]) -> KeyIndex:
        """Index rows by columns, each with the domain in which it is compared. Rows with a NULL are left out."""
        keys = np.ascontiguousarray(np.stack([codes_of(column, domain) for column, domain in columns]))
        valid = np.logical_and.reduce([np.asarray(column.is_valid()) for column, _ in columns])
        size = keys.shape[1]
        table = empty_table(size)
        representatives, groups = np.empty(size, np.int64), np.empty(size, np.int64)
        count = group_rows(keys, valid, table, representatives, groups)
        starts, rows = np.zeros(count + 1, np.int64), np.empty(int(valid.sum()), np.int64)
        order_by_group(groups, np.arange(size), starts, rows)
        # A table of one column has the keys themselves.
        is_single = len(columns) == 1
        return cls(
            keys[:, :0] if is_single else keys,
            table,
            representatives[:0] if is_single else representatives[:count].copy(),
            starts,
            rows.astype(np.int32),
        )

    def find(self, keys: Numbers, valid: npt.NDArray[np.bool_]) -> tuple[Numbers, Numbers]:
        """For each key, given as a line per column, the rows that have it: pairs of an index of a key and a row."""
        groups = np.empty(keys.shape[1], np.int64)
        find_groups(keys, valid, self.table, self.representatives, self.keys, groups)
        probing = np.flatnonzero(groups >= 0)
        first, last = self.starts[groups[probing]], self.starts[groups[probing] + 1]
        sizes = last - first
        begins = np.cumsum(sizes) - sizes
        indexes = np.arange(int(sizes.sum())) + np.repeat(first - begins, sizes)
        return np.repeat(probing, sizes), self.rows[indexes].astype(np.int64)
