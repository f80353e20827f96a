"""Compiled loops over access predicates: the matches in the buckets that a block's rows reach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numba
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic

from tureen.stems.cells.bitmaps import SLACK, has_bit, sort_rows
from tureen.stems.sort_kernels import (
    DATA,
    KIND,
    OFFSETS,
    PERM,
    RANK,
    ROWS,
    VALID,
    Int,
    KeyAddresses,
    below_cut,
    compiled,
    key_at,
    pointer,
)

AHEAD = 8
"""A bucket's members are prefetched this many buckets ahead, since they are rarely in a cache."""


class ClauseFactors(NamedTuple):
    """The clauses of a query run and their range factors (see `Arrays`)."""

    cut_start: np.ndarray
    factor_column: np.ndarray
    factor_start: np.ndarray
    low: np.ndarray
    high: np.ndarray
    clause_start: np.ndarray
    clause_factor: np.ndarray


class Buckets(NamedTuple):
    """The members of all buckets (see `AccessIndex`)."""

    cut: np.ndarray
    start: np.ndarray
    member: np.ndarray
    first: np.ndarray
    last: np.ndarray


class Staged(NamedTuple):
    """Matches in the order in which they are found.

    The upper half of a mark is the position of a clause, the lower half an index into `ids`: the element there is the
    number of the clause's rows less one, and the rows follow it. So sorting the marks sorts the matches by clause.
    """

    marks: np.ndarray
    ids: np.ndarray


@compiled
def _is_before(
    kind: Int, data: Int, offsets: Int, row: Int, cut: Int, bottom: Int, top: Int, keys: KeyAddresses
) -> Int:
    """Whether a row that is not NULL is before a cut point, which may be a key or an edge."""
    if cut >= top:
        return True
    return cut > bottom and below_cut(kind, data, offsets, row, np.int64(cut), keys)


@compiled
def _filter_by_ranges(
    rows: np.ndarray,
    count: Int,
    column: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    bottom: Int,
    top: Int,
    keys: KeyAddresses,
) -> Int:
    """Filter the first `count` rows by ascending ranges of one column; returns the number of rows that remain.

    It compares keys, since the ranks of these cut points have not been searched for.
    """
    kind, data, offsets, valid = column[KIND], column[DATA], column[OFFSETS], column[VALID]
    rank = numba.carray(pointer(column[RANK]), column[ROWS], np.uint16)
    remaining = np.int64(0)
    for i in range(count if low.size else 0):
        row = np.int64(rows[i])
        rows[remaining] = rows[i]
        if rank[row] >= valid:
            remaining += np.int64(high[high.size - 1] > top)
            continue
        begin, end = 0, low.size
        while end - begin > 1:
            middle = (begin + end) >> 1
            if _is_before(kind, data, offsets, row, low[middle], bottom, top, keys):
                end = middle
            else:
                begin = middle
        remaining += np.int64(
            not _is_before(kind, data, offsets, row, low[begin], bottom, top, keys)
            and _is_before(kind, data, offsets, row, high[begin], bottom, top, keys)
        )
    return remaining


@compiled
def _filter_rows(
    rows: np.ndarray,
    count: Int,
    clause: Int,
    cut: Int,
    table: np.ndarray,
    keys: KeyAddresses,
    clauses: ClauseFactors,
    derived: np.ndarray,
) -> Int:
    """Filter the first `count` rows by all of a clause's factors but the key of its bucket; returns how many remain."""
    range_factors = clauses.factor_column.size
    for k in range(clauses.clause_start[clause], clauses.clause_start[clause + 1]):
        factor = clauses.clause_factor[k]
        if count == 0:
            break
        if factor >= range_factors:
            words = derived[factor - range_factors]
            remaining = np.int64(0)
            for i in range(count):
                rows[remaining] = rows[i]
                remaining += np.int64(has_bit(words, np.int64(rows[i])))
            count = remaining
            continue
        begin, end = clauses.factor_start[factor], clauses.factor_start[factor + 1]
        if end - begin == 1 and clauses.low[begin] == cut and clauses.high[begin] == cut + 1:
            continue
        number = clauses.factor_column[factor]
        bottom, top = clauses.cut_start[number], clauses.cut_start[number + 1] - 2
        low, high = clauses.low[begin:end], clauses.high[begin:end]
        count = _filter_by_ranges(rows, count, table[number], low, high, bottom, top, keys)
    return count


def _prefetch(_context: Any, _address: Any) -> Any:
    def code(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        number = cgutils.ir.IntType(32)
        kind = cgutils.ir.FunctionType(cgutils.ir.VoidType(), [cgutils.voidptr_t, number, number, number])
        call = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        target = builder.inttoptr(arguments[0], cgutils.voidptr_t)
        builder.call(call, [target, number(0), number(3), number(1)])
        return cgutils.false_bit

    return types.boolean(types.int64), code


prefetch = cast(Callable[[Any], Any], intrinsic(_prefetch))
"""Prefetch the memory at an address (in compiled code only)."""


@compiled
def _present_values(
    table: np.ndarray,
    residual: Int,
    flip: Int,
    rows: np.ndarray,
    count: Int,
    marks: np.ndarray,
    present_rows: np.ndarray,
    values: np.ndarray,
) -> tuple[Int, Int]:
    """Sort a bucket's rows, and pick those that are not NULL in the residual's column, with their values.

    Returns their number and the highest value.
    """
    highest = np.int64(-(2**63))
    present = np.int64(0)
    if count > 1:
        # Rows of one value ascend already; a bucket may hold several values.
        sort_rows(rows, count, marks)
    if residual < 0:
        return present, highest
    kind, data, valid, size = (
        table[residual, KIND],
        table[residual, DATA],
        table[residual, VALID],
        table[residual, ROWS],
    )
    rank = numba.carray(pointer(table[residual, RANK]), size, np.uint16)
    for i in range(count):
        row = np.int64(rows[i])
        if valid == size or rank[row] < valid:
            value = key_at(kind, data, row) ^ flip
            present_rows[present] = rows[i]
            values[present] = value
            highest = max(highest, value)
            present += 1
    return present, highest


@compiled
def _prefetch_bucket(bucket: Int, buckets: Buckets) -> None:
    """Prefetch the first members of a bucket."""
    member = np.int64(buckets.start[2 * bucket])
    prefetch(buckets.first.ctypes.data + 8 * member)
    prefetch(buckets.member.ctypes.data + 4 * member)


@compiled
def scan_buckets(
    hits: np.ndarray,
    state: np.ndarray,
    bucket_base: Int,
    access: Int,
    residual: Int,
    flip: Int,
    buckets: Buckets,
    table: np.ndarray,
    keys: KeyAddresses,
    clauses: ClauseFactors,
    derived: np.ndarray,
    staged: Staged,
) -> bool:
    """Stage the matches in buckets, until all are done (True) or the staging buffers are full (False).

    `state` has the next hit, its next member (or -1), and the numbers of matches and of ids so far.
    """
    block_rows = table[access, ROWS]
    perm = numba.carray(pointer(table[access, PERM]), block_rows, np.uint16)
    rows = np.empty(block_rows + SLACK, np.uint16)
    present_rows = np.empty(block_rows, np.uint16)
    values = np.empty(block_rows, np.int64)
    marks = np.zeros((block_rows + 63) >> 6, np.uint64)
    hit, member, matches, used = state[0], state[1], state[2], state[3]
    ends = buckets.last.size > 0
    ids = staged.ids
    while hit < hits.shape[0]:
        if hit + AHEAD < hits.shape[0]:
            _prefetch_bucket(bucket_base + hits[hit + AHEAD, 0], buckets)
        bucket = bucket_base + hits[hit, 0]
        count = hits[hit, 2] - hits[hit, 1]
        for i in range(count):
            rows[i] = perm[hits[hit, 1] + i]
        present, highest = _present_values(table, residual, flip, rows, count, marks, present_rows, values)
        bare, end = buckets.start[2 * bucket + 1], buckets.start[2 * bucket + 2]
        if member < 0:
            member = np.int64(buckets.start[2 * bucket])
        while member < end and (member < bare or (present > 0 and buckets.first[member] <= highest)):
            if matches == staged.marks.size or used + count >= ids.size:
                state[0], state[1], state[2], state[3] = hit, member, matches, used
                return False
            ids_end = used + 1
            if member < bare:
                ids[ids_end : ids_end + count] = rows[:count]
                ids_end += count
            elif ends:
                first, last = buckets.first[member], buckets.last[member]
                for i in range(present):
                    ids[ids_end] = present_rows[i]
                    ids_end += np.int64((values[i] >= first) & (values[i] <= last))
            else:
                first = buckets.first[member]
                for i in range(present):
                    ids[ids_end] = present_rows[i]
                    ids_end += np.int64(values[i] >= first)
            clause = np.int64(buckets.member[member])
            if clause < 0:
                clause = ~clause
                written, cut = ids[used + 1 :], buckets.cut[bucket]
                ids_end = (
                    used + 1 + _filter_rows(written, ids_end - used - 1, clause, cut, table, keys, clauses, derived)
                )
            if ids_end > used + 1:
                ids[used] = ids_end - used - 2
                staged.marks[matches] = (clause << 32) | used
                used = ids_end
                matches += 1
            member += 1
        member, hit = np.int64(-1), hit + 1
    state[0], state[1], state[2], state[3] = hit, member, matches, used
    return True


@compiled
def sort_marks(marks: np.ndarray, spare: np.ndarray, count: Int, clauses: Int) -> None:
    """Sort the first `count` marks by their clauses, whose positions are below `clauses`; a radix sort."""
    starts = np.empty(2048, np.int32)
    source, target = marks, spare
    shift = 32
    while clauses >> (shift - 32):
        starts[:] = 0
        for i in range(count):
            starts[(source[i] >> shift) & 2047] += 1
        total = np.int32(0)
        for digit in range(2048):
            size = starts[digit]
            starts[digit] = total
            total += size
        for i in range(count):
            digit_value = (source[i] >> shift) & 2047
            target[starts[digit_value]] = source[i]
            starts[digit_value] += 1
        source, target = target, source
        shift += 11
    # After an odd number of passes the result is in the spare array; copying onto itself is harmless.
    for i in range(count):
        marks[i] = source[i]
