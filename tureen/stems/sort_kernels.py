"""Compiled loops over one block: sorting a column, and finding the ranks of cut points in its order.

Columns are passed as rows of a *table* of addresses and not as arrays. One compiled form then serves every type, a
memory-mapped (read-only) column costs no second compilation, and the cost of a call does not depend on the number of
columns. The creator of a table keeps its buffers alive (`Block` does).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic

from tureen.keys import key_of_bits

F = TypeVar("F", bound=Callable[..., Any])
Int = Any
"""An integer or boolean in compiled code, which does not distinguish Python's and numpy's."""

# The fields of a table's row.
KIND, DATA, OFFSETS, PERM, RANK, VALID, ROWS = range(7)
FIELDS = 8

# How a column's values are stored.
BYTE, INT32, INT64, FLOAT32, FLOAT64, DECIMAL, TEXT, WIDE, INT16, INT8 = range(10)

_MAX_ROWS = 65_536
_DIGIT = 11


KERNEL_FILES = (
    "aggregates/aggregate_kernels.py",
    "aggregates/selected_kernels.py",
    "joining/lineage_kernels.py",
    "joining/partner_kernels.py",
    "joining/plans/demand_kernels.py",
    "joining/plans/plan_kernels.py",
    "keys.py",
    "matching/access_kernels.py",
    "matching/buckets.py",
    "matching/clause_kernels.py",
    "matching/prefixes.py",
    "matching/rowmajor.py",
    "matching/scanning.py",
    "results/rows/gather_kernels.py",
    "stems/cells/bitmaps.py",
    "stems/cells/container_kernels.py",
    "stems/cells/decoding.py",
    "stems/cells/lineage_pairs.py",
    "stems/key_kernels.py",
    "stems/sort_kernels.py",
)
"""All files with compiled functions, relative to the package; a test compares the list with the files."""


def _stamp() -> str:
    """A fingerprint of all files with compiled functions; listed, because searching all files delays every start."""
    package = Path(__file__).parent.parent
    return hashlib.sha256(b"".join((package / name).read_bytes() for name in KERNEL_FILES)).hexdigest()


_STAMP = _stamp()


def compiled(function: F) -> F:
    """Compile a function on its first call, cache the machine code on disk, and run it without the GIL.

    Machine code includes the functions that it calls. Numba discards it when the function's own file changes, which is
    not enough where loops of one file call those of another: here it is discarded when any of these files changes.
    """
    try:
        loop = numba.njit(cache=True, nogil=True)(function)
        # Compared before anything else of the cache is read, which may name types that no longer exist.
        loop._cache._cache_file._version = f"{numba.__version__} {_STAMP}"
    except RuntimeError:
        # No directory is writable, as in a read-only container without a home.
        loop = numba.njit(nogil=True)(function)
    return cast(F, loop)


def _pointer(_context: Any, _address: Any) -> Any:
    def code(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), code


pointer = cast(Callable[[int], Any], intrinsic(_pointer))
"""An address as a pointer (in compiled code only)."""


class KeyAddresses(NamedTuple):
    """The addresses of the keys of a query run's cut points (see its arrays).

    Loops pass these to each other and not arrays, since an array is passed as seven numbers.
    """

    high: Int
    low: Int
    text_start: Int
    text: Int


_key_of_bits: Callable[[Int], Int] = compiled(key_of_bits)


@compiled
def key_at(kind: Int, data: Int, row: Int) -> Int:
    """The integer key of a row's value (`tureen.keys`); not for TEXT and WIDE."""
    if kind == INT32:
        return np.int64(numba.carray(pointer(data), _MAX_ROWS, np.int32)[row])
    if kind == INT64:
        return np.int64(numba.carray(pointer(data), _MAX_ROWS, np.int64)[row])
    if kind == FLOAT64:
        return _key_of_bits(numba.carray(pointer(data), _MAX_ROWS, np.int64)[row])
    if kind == FLOAT32:
        wide = np.float64(numba.carray(pointer(data), _MAX_ROWS, np.float32)[row])
        return _key_of_bits(wide.view(np.int64))
    if kind == DECIMAL:
        return np.int64(numba.carray(pointer(data), 2 * _MAX_ROWS, np.int64)[2 * row])
    if kind == INT16:
        return np.int64(numba.carray(pointer(data), _MAX_ROWS, np.int16)[row])
    if kind == INT8:
        return np.int64(numba.carray(pointer(data), _MAX_ROWS, np.int8)[row])
    return np.int64(numba.carray(pointer(data), _MAX_ROWS, np.uint8)[row])


@compiled
def _text_below(data: Int, offsets: Int, row: Int, cut_at: Int, size: Int) -> Int:
    bounds = numba.carray(pointer(offsets), _MAX_ROWS + 1, np.int32)
    start = np.int64(bounds[row])
    length = np.int64(bounds[row + 1]) - start
    value = numba.carray(pointer(data + start), max(length, 1), np.uint8)
    cut = numba.carray(pointer(cut_at), max(size, 1), np.uint8)
    for i in range(min(length, size)):
        if value[i] != cut[i]:
            return bool(value[i] < cut[i])
    return length < size


@compiled
def _wide_below(data: Int, row: Int, high: Int, low: Int) -> Int:
    value = np.int64(numba.carray(pointer(data), 2 * _MAX_ROWS, np.int64)[2 * row + 1])
    if value != high:
        return value < high
    return bool(numba.carray(pointer(data), 2 * _MAX_ROWS, np.uint64)[2 * row] < low)


@compiled
def below_cut(kind: Int, data: Int, offsets: Int, row: Int, cut: Int, keys: KeyAddresses) -> Int:
    """Whether a row that is not NULL has a key below the cut point."""
    if kind == TEXT:
        bounds = numba.carray(pointer(keys.text_start), cut + 2, np.int64)
        return _text_below(data, offsets, row, keys.text + bounds[cut], bounds[cut + 1] - bounds[cut])
    high = numba.carray(pointer(keys.high), cut + 1, np.int64)[cut]
    if kind == WIDE:
        return _wide_below(data, row, high, numba.carray(pointer(keys.low), cut + 1, np.uint64)[cut])
    return key_at(kind, data, row) < high


@compiled
def cut_rank(
    kind: Int, data: Int, offsets: Int, perm_at: Int, valid: Int, begin: Int, cut: Int, keys: KeyAddresses
) -> Int:
    """The number of rows with a key below the cut point, which is at least `begin`.

    Cut points are searched in ascending order, so all but the first gallop from the rank of the previous one: few cut
    points cost a binary search each, many cost one merge.
    """
    perm = numba.carray(pointer(perm_at), _MAX_ROWS, np.uint16)
    galloping = begin > 0
    first, last, step = begin, begin if galloping else valid, np.int64(1)
    while galloping or first < last:
        if galloping:
            probe = last
            if probe >= valid:
                last = valid
                galloping = False
                continue
        else:
            probe = (first + last) >> 1
        if below_cut(kind, data, offsets, np.int64(perm[probe]), cut, keys):
            first = probe + 1
            if galloping:
                last = probe + step
                step *= 2
        else:
            last = probe
            galloping = False
    return first


@compiled
def cut_ranks(
    table: np.ndarray,
    cut_start: np.ndarray,
    high: np.ndarray,
    low: np.ndarray,
    text_start: np.ndarray,
    text: np.ndarray,
    ranks: np.ndarray,
) -> None:
    """The ranks of all cut points of all columns.

    A column's first cut point is before all rows, its last but one after the last row that is not NULL, and its last
    after all rows.
    """
    keys = KeyAddresses(high.ctypes.data, low.ctypes.data, text_start.ctypes.data, text.ctypes.data)
    for c in range(table.shape[0]):
        kind, data, offsets = table[c, KIND], table[c, DATA], table[c, OFFSETS]
        perm, valid = table[c, PERM], table[c, VALID]
        begin, end = cut_start[c], cut_start[c + 1]
        rank = np.int64(0)
        ranks[begin] = 0
        for cut in range(begin + 1, end - 2):
            rank = cut_rank(kind, data, offsets, perm, valid, rank, np.int64(cut), keys)
            ranks[cut] = rank
        ranks[end - 2] = table[c, VALID]
        ranks[end - 1] = table[c, ROWS]


@compiled
def rank_cuts(
    table: np.ndarray, cuts: np.ndarray, cut_start: np.ndarray, keys: KeyAddresses, ranks: np.ndarray
) -> None:
    """The ranks of the given cut points, with those of all edges.

    Those of column `c` are `cuts[cut_start[c] : cut_start[c + 1]]`, ascending.
    """
    for c in range(table.shape[0]):
        kind, data, offsets = table[c, KIND], table[c, DATA], table[c, OFFSETS]
        perm, valid = table[c, PERM], table[c, VALID]
        column_cuts = cuts[cut_start[c] : cut_start[c + 1]]
        rank = np.int64(0)
        ranks[column_cuts[0]] = 0
        for i in range(1, column_cuts.size - 2):
            rank = cut_rank(kind, data, offsets, perm, valid, rank, np.int64(column_cuts[i]), keys)
            ranks[column_cuts[i]] = rank
        ranks[column_cuts[column_cuts.size - 2]] = table[c, VALID]
        ranks[column_cuts[column_cuts.size - 1]] = table[c, ROWS]


@compiled
def radix_sort(keys: np.ndarray, rows: np.ndarray) -> None:
    """Sort rows and their keys, stably: a radix sort over as many digits as the keys' range needs."""
    count = keys.size
    sorted_rows = 1
    while sorted_rows < count and keys[sorted_rows - 1] <= keys[sorted_rows]:
        sorted_rows += 1
    if sorted_rows >= count:
        return
    lowest, highest = keys[0], keys[0]
    for i in range(count):
        lowest = min(lowest, keys[i])
        highest = max(highest, keys[i])
    span = np.uint64(highest) - np.uint64(lowest)
    source = np.empty(count, np.uint64)
    for i in range(count):
        source[i] = np.uint64(keys[i]) - np.uint64(lowest)
    target = np.empty(count, np.uint64)
    target_rows = np.empty(count, rows.dtype)
    source_rows = rows
    starts = np.empty(1 << _DIGIT, np.int32)
    mask = np.uint64((1 << _DIGIT) - 1)
    shift = np.uint64(0)
    while shift < np.uint64(64) and (span >> shift) != np.uint64(0):
        starts[:] = 0
        for i in range(count):
            starts[np.int64((source[i] >> shift) & mask)] += 1
        total = np.int32(0)
        for digit in range(starts.size):
            size = starts[digit]
            starts[digit] = total
            total += size
        for i in range(count):
            digit_value = np.int64((source[i] >> shift) & mask)
            target_index = starts[digit_value]
            starts[digit_value] = target_index + 1
            target[target_index] = source[i]
            target_rows[target_index] = source_rows[i]
        source, target = target, source
        source_rows, target_rows = target_rows, source_rows
        shift += np.uint64(_DIGIT)
    # After an odd number of passes the result is in the spare array; copying onto itself is harmless.
    for i in range(count):
        rows[i] = source_rows[i]
        keys[i] = np.int64(source[i] + np.uint64(lowest))


@compiled
def _is_after(addresses: np.ndarray, first: Int, second: Int) -> Int:
    """Whether a row comes after another one by columns at these addresses, the first of which counts most."""
    for column in range(addresses.size):
        values = numba.carray(pointer(addresses[column]), max(first, second) + 1, np.int64)
        if values[first] != values[second]:
            return bool(values[first] > values[second])
    return False


@compiled
def sort_ties(keys: np.ndarray, rows: np.ndarray, addresses: np.ndarray, most: Int) -> Int:
    """Sort rows with equal keys, which are side by side, by columns of integers at some addresses.

    False if more than `most` rows have the same key: then they are sorted up to these only.
    """
    begin = 0
    for end in range(1, rows.size + 1):
        if end < rows.size and keys[end] == keys[begin]:
            continue
        if end - begin > most:
            return False
        for index in range(begin + 1, end):
            row, at = rows[index], index
            while at > begin and _is_after(addresses, rows[at - 1], row):
                rows[at] = rows[at - 1]
                at -= 1
            rows[at] = row
        begin = end
    return True


@compiled
def sort_column(kind: Int, data: Int, nulls: np.ndarray, perm: np.ndarray, rank: np.ndarray) -> Int:
    """Fill a column's permutation and ranks, NULLs last; returns the number of values that are not NULL."""
    count = perm.size
    valid = np.int64(0)
    missing = np.int64(count)
    for row in range(nulls.size):
        missing -= np.int64(nulls[row])
    for row in range(count):
        if nulls.size and nulls[row]:
            perm[missing] = row
            missing += 1
        else:
            perm[valid] = row
            valid += 1
    keys = np.empty(valid, np.int64)
    if kind == WIDE:
        words = numba.carray(pointer(data), 2 * _MAX_ROWS, np.uint64)
        for i in range(valid):
            # With the sign bit flipped, a signed sort orders the unsigned lower words.
            keys[i] = np.int64(words[2 * np.int64(perm[i])] ^ np.uint64(1 << 63))
        radix_sort(keys, perm[:valid])
        for i in range(valid):
            keys[i] = np.int64(words[2 * np.int64(perm[i]) + 1])
    else:
        for i in range(valid):
            keys[i] = key_at(kind, data, np.int64(perm[i]))
    radix_sort(keys, perm[:valid])
    for i in range(count):
        rank[perm[i]] = i
    return valid


@compiled
def selects_any(starts: np.ndarray, blocks: np.ndarray) -> bool:
    """Whether one of some blocks has selected rows: block `n` has the rows `starts[n]` to `starts[n + 1]`."""
    for number in range(blocks.size):  # noqa: SIM110 - numba compiles loops
        if blocks[number] and starts[number + 1] > starts[number]:
            return True
    return False
