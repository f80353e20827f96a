"""The key index of a run: from the values of some columns to its tuples (CACQ §2.4: a SteM that joins probe).

It is in the run's file, or built in memory; runs never change. Keys are integers: of whole numbers, dates and times
the value, of floats the key of `tureen.keys`, of strings and decimals a hash. Tuples with equal hashes may differ, so
that who uses the index compares them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.keys import float_keys
from tureen.stems.index import numbers_of
from tureen.stems.key_kernels import (
    combine_equal,
    fill_filter,
    fill_rows,
    find_groups,
    hash_decimals,
    hash_keys,
    hash_texts,
    order_by_hash,
    pass_filter,
    sort_by_bucket,
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
    if pa.types.is_primitive(column.type) and not pa.types.is_boolean(column.type) and not column.null_count:
        # Not by Arrow's functions, of which a call takes longer than the copy of some thousand numbers.
        stored = numbers_of(column, f"i{column.type.bit_width // 8}")
        return stored if stored.dtype == np.int64 else stored.astype(np.int64)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    elif pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    values: Numbers = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return values


def most_bytes(rows: int, columns: int) -> int:
    """The memory of an index of that many rows, if all of them have different keys."""
    of_keys = 8 * rows * columns
    return of_keys + 8 * _filter_words(rows) + 4 * ((1 << _bucket_bits(rows)) + 1) + 4 * (rows + 1) + 4 * rows


def _bucket_bits(groups: int) -> int:
    """The bits of the hash that are the number of a bucket: there are as many buckets as groups, or more."""
    return max(groups - 1, 1).bit_length()


def _bits(size: int) -> int:
    """The bits of numbers below a power of two."""
    return size.bit_length() - 1


class ProbeKeys(NamedTuple):
    """Keys without NULLs that indexes are probed with."""

    keys: Numbers
    """A line per column."""
    hashes: npt.NDArray[np.uint64]
    numbers: Numbers
    """The numbers of the keys among those of the caller."""

    @classmethod
    def of(cls, keys: Numbers, valid: npt.NDArray[np.bool_]) -> ProbeKeys:
        """The valid keys, in their order."""
        numbers = np.flatnonzero(valid)
        keys = keys if len(numbers) == len(valid) else np.take(keys, numbers, axis=1)
        hashes = np.empty(len(numbers), np.uint64)
        hash_keys(keys, hashes)
        return cls(keys, hashes, numbers)

    @classmethod
    def in_hash_order(cls, keys: Numbers, valid: npt.NDArray[np.bool_]) -> ProbeKeys:
        """The valid keys, in the order in which indexes store them.

        Neighbours are then found near each other and in ascending order, which the processor's caches are made for.
        """
        numbers, hashes = np.empty(len(valid), np.int64), np.empty(len(valid), np.uint64)
        count = order_by_hash(keys, valid, max(_bits(max(len(valid), 1)), 1), numbers, hashes)
        return cls(np.take(keys, numbers[:count], axis=1), hashes[:count], numbers[:count])


def _filter_words(groups: int) -> int:
    """The words of a filter, which has eight bits or more for each group."""
    return 1 << max(_bucket_bits(groups) - 3, 1)


@dataclass(frozen=True)
class KeyIndex:
    """Tuples by key: rows with equal keys form a group."""

    filter: npt.NDArray[np.uint64]
    """Bits that the keys of a group have set."""
    directory: npt.NDArray[np.uint32]
    """The first group of each bucket, and at the end the number of groups."""
    keys: Numbers
    """The keys of each group, a line for each column; in order of their hashes."""
    starts: npt.NDArray[np.uint32]
    """Where the rows of each group start, and at the end the number of rows."""
    rows: npt.NDArray[np.int32]
    """The rows of all groups, one group after the other, ascending within a group."""

    @classmethod
    def of(cls, columns: Sequence[tuple[pa.Array, str]]) -> KeyIndex:
        """Index rows by columns, each with the domain in which it is compared. Rows with a NULL are left out."""
        keys = np.stack([codes_of(column, domain) for column, domain in columns])
        return cls.of_keys(keys, np.logical_and.reduce([valid_flags(column) for column, _ in columns]))

    @classmethod
    def of_keys(cls, keys: Numbers, valid: npt.NDArray[np.bool_], *, is_filtered: bool = True) -> KeyIndex:
        """Index the valid rows by keys, given as a line per column; a filter is worth it where many keys are absent."""
        size = int(np.count_nonzero(valid))
        bits = _bucket_bits(size)
        ends = np.zeros((1 << bits) + 1, np.uint32)
        sorted_keys, rows = np.empty((len(keys), size), np.int64), np.empty(size, np.int32)
        sort_by_bucket(np.ascontiguousarray(keys), valid, bits, ends, sorted_keys, rows)
        starts = np.empty(size + 1, np.uint32)
        count = combine_equal(ends, sorted_keys, starts)
        # A bucket of fewer bits consists of neighbours: its end is that of the last of them.
        directory = np.zeros((1 << _bucket_bits(count)) + 1, np.uint32)
        directory[1:] = ends[:-1].reshape(len(directory) - 1, -1)[:, -1]
        if count < size:
            # Not slices, which would keep the whole arrays in memory.
            sorted_keys, starts = sorted_keys[:, :count].copy(), starts[: count + 1].copy()
        words = _ALL_PASS
        if is_filtered:
            words = np.zeros(_filter_words(count), np.uint64)
            fill_filter(sorted_keys, _bits(len(words)), words)
        index = cls(words, directory, sorted_keys, starts, rows)
        for array in index.arrays:
            # As those of files are, so that one compiled form serves both.
            array.flags.writeable = False
        return index

    @property
    def arrays(self) -> Sequence[npt.NDArray[Any]]:
        """All that it consists of, in the order of its fields."""
        return self.filter, self.directory, self.keys, self.starts, self.rows

    @property
    def bytes(self) -> int:
        """The size of all arrays."""
        return sum(array.nbytes for array in self.arrays)

    def probes(self) -> ProbeKeys:
        """Its keys and the numbers of their rows, which other indexes are probed with."""
        is_unique = len(self.rows) == self.keys.shape[1]
        # A copy, which can be written to: so one compiled form serves all.
        keys = self.keys.copy() if is_unique else np.repeat(self.keys, np.diff(self.starts), axis=1)
        hashes = np.empty(len(self.rows), np.uint64)
        hash_keys(keys, hashes)
        return ProbeKeys(keys, hashes, self.rows.astype(np.int64))

    def candidates(self, probes: ProbeKeys) -> Numbers:
        """The indexes of the keys that pass the filter: all that occur, and few others."""
        indexes = np.empty(len(probes.hashes), np.int64)
        return indexes[: pass_filter(probes.hashes, self.filter, _bits(len(self.filter)), indexes)]

    def find(self, probes: ProbeKeys) -> tuple[Numbers, Numbers]:
        """The rows that have some keys: pairs of the number of a key and a row, in the order of the keys."""
        indexes, bits = self.candidates(probes), _bits(len(self.directory) - 1)
        firsts, lasts = np.empty(len(indexes), np.int64), np.empty(len(indexes), np.int64)
        count = find_groups(
            probes.keys, probes.hashes, indexes, self.directory, bits, self.keys, self.starts, firsts, lasts
        )
        indexes, firsts, lasts = indexes[:count], firsts[:count], lasts[:count]
        pairs = int(lasts.sum() - firsts.sum())
        keys_at, rows = np.empty(pairs, np.int64), np.empty(pairs, np.int64)
        fill_rows(indexes, firsts, lasts, self.rows, keys_at, rows)
        return probes.numbers[keys_at], rows


_ALL_PASS = np.full(2, ~np.uint64(0))
"""The filter that no key fails."""
