"""Compiled loops over one block: sorting a column, and finding where cut points fall in its order.

Columns come in as rows of a *table* of addresses and not as arrays. One compiled form then serves every
type, a memory-mapped (read-only) column costs no second compilation, and a call costs the same however many
columns it looks at. Whoever makes a table keeps its buffers alive (`Block` does).
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

F = TypeVar("F", bound=Callable[..., Any])
Int = Any
"""An integer or truth value in compiled code, where Python's and numpy's are one."""

# The fields of a table's row.
KIND, DATA, OFFSETS, PERM, RANK, VALID, ROWS = range(7)
FIELDS = 8

# How a column's values are stored.
BYTE, INT32, INT64, FLOAT32, FLOAT64, DECIMAL, TEXT, WIDE, INT16, INT8 = range(10)

_MOST = 65_536
_MAGNITUDE = np.int64(0x7FFF_FFFF_FFFF_FFFF)
_INFINITY = np.int64(0x7FF0_0000_0000_0000)
_NAN = np.int64(0x7FF8_0000_0000_0000)
_DIGIT = 11


def _stamp() -> str:
    """A fingerprint of all files with compiled loops."""
    texts = [path.read_bytes() for path in sorted(Path(__file__).parent.parent.glob("*/*.py"))]
    return hashlib.sha256(b"".join(text for text in texts if b"@compiled" in text)).hexdigest()


_STAMP = _stamp()


def compiled(function: F) -> F:
    """Compile a function on its first call, keep the machine code on disk, and let other threads run.

    Machine code has the functions it calls built in. Numba throws it away when the file of the function itself
    changes, which is not enough where loops of one file call those of another: here it goes when any changes.
    """
    try:
        loop = numba.njit(cache=True, nogil=True)(function)
        loop._cache._cache_file._source_stamp = _STAMP
    except RuntimeError:
        # There is no place to keep it, as in a read-only container without a home.
        loop = numba.njit(nogil=True)(function)
    return cast(F, loop)


def _pointer(_context: Any, _address: Any) -> Any:
    def code(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), code


pointer = cast(Callable[[int], Any], intrinsic(_pointer))
"""The pointer that an address stands for (in compiled code only)."""


class Keys(NamedTuple):
    """Where the keys of a query run's cut points lie (see its arrays).

    Loops call each other with these and not with arrays: an array is seven numbers, all of them handed over.
    """

    high: Int
    low: Int
    text_start: Int
    text: Int


@compiled
def ordered(bits: Int) -> Int:
    """The bits of a double as an integer that sorts as Spark sorts doubles: NaN largest, -0.0 as 0.0."""
    if (bits & _MAGNITUDE) > _INFINITY:
        return _NAN
    if bits >= 0:
        return bits
    return (bits ^ _MAGNITUDE) + 1


@compiled
def key_at(kind: Int, data: Int, row: Int) -> Int:
    """A row's value as an integer that sorts like it; not for TEXT and WIDE."""
    if kind == INT32:
        return np.int64(numba.carray(pointer(data), _MOST, np.int32)[row])
    if kind == INT64:
        return np.int64(numba.carray(pointer(data), _MOST, np.int64)[row])
    if kind == FLOAT64:
        return ordered(numba.carray(pointer(data), _MOST, np.int64)[row])
    if kind == FLOAT32:
        wide = np.float64(numba.carray(pointer(data), _MOST, np.float32)[row])
        return ordered(wide.view(np.int64))
    if kind == DECIMAL:
        return np.int64(numba.carray(pointer(data), 2 * _MOST, np.int64)[2 * row])
    if kind == INT16:
        return np.int64(numba.carray(pointer(data), _MOST, np.int16)[row])
    if kind == INT8:
        return np.int64(numba.carray(pointer(data), _MOST, np.int8)[row])
    return np.int64(numba.carray(pointer(data), _MOST, np.uint8)[row])


@compiled
def _text_below(data: Int, offsets: Int, row: Int, cut_at: Int, size: Int) -> Int:
    bounds = numba.carray(pointer(offsets), _MOST + 1, np.int32)
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
    mine = np.int64(numba.carray(pointer(data), 2 * _MOST, np.int64)[2 * row + 1])
    if mine != high:
        return mine < high
    return bool(numba.carray(pointer(data), 2 * _MOST, np.uint64)[2 * row] < low)


@compiled
def below_cut(kind: Int, data: Int, offsets: Int, row: Int, cut: Int, keys: Keys) -> Int:
    """Whether a row, which is not NULL, has a key below the cut point."""
    if kind == TEXT:
        bounds = numba.carray(pointer(keys.text_start), cut + 2, np.int64)
        return _text_below(data, offsets, row, keys.text + bounds[cut], bounds[cut + 1] - bounds[cut])
    high = numba.carray(pointer(keys.high), cut + 1, np.int64)[cut]
    if kind == WIDE:
        return _wide_below(data, row, high, numba.carray(pointer(keys.low), cut + 1, np.uint64)[cut])
    return key_at(kind, data, row) < high


@compiled
def cut_rank(kind: Int, data: Int, offsets: Int, perm_at: Int, valid: Int, begin: Int, cut: Int, keys: Keys) -> Int:
    """How many rows have a key below the cut point, if at least `begin` have.

    Cut points come in ascending order, so all but the first gallop from where the last one fell: few cut
    points cost a binary search each, many cost one merge.
    """
    perm = numba.carray(pointer(perm_at), _MOST, np.uint16)
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

    A column's first cut point stands before every row, its last but one after the last row that is not
    NULL, and its last after all rows.
    """
    keys = Keys(high.ctypes.data, low.ctypes.data, text_start.ctypes.data, text.ctypes.data)
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
def rank_cuts(table: np.ndarray, cuts: np.ndarray, cut_start: np.ndarray, keys: Keys, ranks: np.ndarray) -> None:
    """The ranks of some cut points: of column `c` those in `cuts` from `cut_start[c]` on, ascending, with its edges."""
    for c in range(table.shape[0]):
        kind, data, offsets = table[c, KIND], table[c, DATA], table[c, OFFSETS]
        perm, valid = table[c, PERM], table[c, VALID]
        mine = cuts[cut_start[c] : cut_start[c + 1]]
        rank = np.int64(0)
        ranks[mine[0]] = 0
        for i in range(1, mine.size - 2):
            rank = cut_rank(kind, data, offsets, perm, valid, rank, np.int64(mine[i]), keys)
            ranks[mine[i]] = rank
        ranks[mine[mine.size - 2]] = table[c, VALID]
        ranks[mine[mine.size - 1]] = table[c, ROWS]


@compiled
def _sort(keys: np.ndarray, rows: np.ndarray) -> None:
    """Sort rows by their keys, stably: a radix sort over as many digits as the keys' range needs."""
    count = keys.size
    if count == 0:
        return
    least, most = keys[0], keys[0]
    for i in range(count):
        least = min(least, keys[i])
        most = max(most, keys[i])
    span = np.uint64(most) - np.uint64(least)
    here = np.empty(count, np.uint64)
    for i in range(count):
        here[i] = np.uint64(keys[i]) - np.uint64(least)
    there = np.empty(count, np.uint64)
    rows_there = np.empty(count, np.uint16)
    rows_here = rows
    starts = np.empty(1 << _DIGIT, np.int32)
    mask = np.uint64((1 << _DIGIT) - 1)
    shift = np.uint64(0)
    while shift < np.uint64(64) and (span >> shift) != np.uint64(0):
        starts[:] = 0
        for i in range(count):
            starts[np.int64((here[i] >> shift) & mask)] += 1
        total = np.int32(0)
        for digit in range(starts.size):
            size = starts[digit]
            starts[digit] = total
            total += size
        for i in range(count):
            mine = np.int64((here[i] >> shift) & mask)
            place = starts[mine]
            starts[mine] = place + 1
            there[place] = here[i]
            rows_there[place] = rows_here[i]
        here, there = there, here
        rows_here, rows_there = rows_there, rows_here
        shift += np.uint64(_DIGIT)
    # After an odd number of passes the answer lies in the spare array; copying onto itself is harmless.
    for i in range(count):
        rows[i] = rows_here[i]


@compiled
def sort_column(kind: Int, data: Int, nulls: np.ndarray, perm: np.ndarray, rank: np.ndarray) -> Int:
    """Fill a column's permutation and ranks, NULLs last; give the number of values that are not NULL."""
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
        words = numba.carray(pointer(data), 2 * _MOST, np.uint64)
        for i in range(valid):
            # Flipping the sign bit lets a signed sort order the unsigned lower words.
            keys[i] = np.int64(words[2 * np.int64(perm[i])] ^ np.uint64(1 << 63))
        _sort(keys, perm[:valid])
        for i in range(valid):
            keys[i] = np.int64(words[2 * np.int64(perm[i]) + 1])
    else:
        for i in range(valid):
            keys[i] = key_at(kind, data, np.int64(perm[i]))
    _sort(keys, perm[:valid])
    for i in range(count):
        rank[perm[i]] = i
    return valid
