"""Access predicates over a block, compiled: what matches in the buckets that its rows reach."""

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
    Keys,
    below_cut,
    compiled,
    key_at,
    pointer,
)

AHEAD = 8
"""How many buckets before it is scanned a bucket's members are asked for: they are hardly ever in a cache."""


class Clauses(NamedTuple):
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

    A mark has the position of a clause in its upper half, and in the lower the place in `ids` where the number of the
    clause's rows stands, less one, and the rows after it. So marks sort by clause, and are read one after the other.
    """

    marks: np.ndarray
    ids: np.ndarray


@compiled
def _stands_before(kind: Int, data: Int, offsets: Int, row: Int, cut: Int, bottom: Int, top: Int, keys: Keys) -> Int:
    """Whether a row that is not NULL stands before a cut point, be it a key or an edge."""
    if cut >= top:
        return True
    return cut > bottom and below_cut(kind, data, offsets, row, np.int64(cut), keys)


@compiled
def _keep_ranges(
    rows: np.ndarray,
    count: Int,
    column: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    bottom: Int,
    top: Int,
    keys: Keys,
) -> Int:
    """Keep those of the first `count` rows that lie in one of some ranges, which ascend.

    It goes by keys, since nobody has looked for the ranks of these cut points.
    """
    kind, data, offsets, valid = column[KIND], column[DATA], column[OFFSETS], column[VALID]
    rank = numba.carray(pointer(column[RANK]), column[ROWS], np.uint16)
    left = np.int64(0)
    for i in range(count if low.size else 0):
        row = np.int64(rows[i])
        rows[left] = rows[i]
        if rank[row] >= valid:
            left += np.int64(high[high.size - 1] > top)
            continue
        begin, end = 0, low.size
        while end - begin > 1:
            middle = (begin + end) >> 1
            if _stands_before(kind, data, offsets, row, low[middle], bottom, top, keys):
                end = middle
            else:
                begin = middle
        left += np.int64(
            not _stands_before(kind, data, offsets, row, low[begin], bottom, top, keys)
            and _stands_before(kind, data, offsets, row, high[begin], bottom, top, keys)
        )
    return left


@compiled
def _keep(
    rows: np.ndarray,
    count: Int,
    clause: Int,
    cut: Int,
    table: np.ndarray,
    keys: Keys,
    clauses: Clauses,
    derived: np.ndarray,
) -> Int:
    """Keep those of the first `count` rows that all of a clause's factors let through, but for its bucket's key."""
    known = clauses.factor_column.size
    for k in range(clauses.clause_start[clause], clauses.clause_start[clause + 1]):
        factor = clauses.clause_factor[k]
        if count == 0:
            break
        if factor >= known:
            words = derived[factor - known]
            left = np.int64(0)
            for i in range(count):
                rows[left] = rows[i]
                left += np.int64(has_bit(words, np.int64(rows[i])))
            count = left
            continue
        begin, end = clauses.factor_start[factor], clauses.factor_start[factor + 1]
        if end - begin == 1 and clauses.low[begin] == cut and clauses.high[begin] == cut + 1:
            continue
        number = clauses.factor_column[factor]
        bottom, top = clauses.cut_start[number], clauses.cut_start[number + 1] - 2
        low, high = clauses.low[begin:end], clauses.high[begin:end]
        count = _keep_ranges(rows, count, table[number], low, high, bottom, top, keys)
    return count


def _prefetch(_context: Any, _address: Any) -> Any:
    def code(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        number = cgutils.ir.IntType(32)
        kind = cgutils.ir.FunctionType(cgutils.ir.VoidType(), [cgutils.voidptr_t, number, number, number])
        call = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        place = builder.inttoptr(arguments[0], cgutils.voidptr_t)
        builder.call(call, [place, number(0), number(3), number(1)])
        return cgutils.false_bit

    return types.boolean(types.int64), code


prefetch = cast(Callable[[Any], Any], intrinsic(_prefetch))
"""Ask for the memory at an address before it is needed (in compiled code only)."""


@compiled
def _gather(
    table: np.ndarray,
    residual: Int,
    flip: Int,
    rows: np.ndarray,
    count: Int,
    marks: np.ndarray,
    some: np.ndarray,
    values: np.ndarray,
) -> tuple[Int, Int]:
    """Sort a bucket's rows, and pick those that are not NULL in the residual's column, with their values.

    Gives their number and the largest value.
    """
    most = np.int64(-(2**63))
    left = np.int64(0)
    if count > 1:
        # Rows of one value ascend already; a bucket may hold several values.
        sort_rows(rows, count, marks)
    if residual < 0:
        return left, most
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
            some[left] = rows[i]
            values[left] = value
            most = max(most, value)
            left += 1
    return left, most


@compiled
def _ask_ahead(bucket: Int, buckets: Buckets) -> None:
    """Have the first members of a bucket brought nearer."""
    place = np.int64(buckets.start[2 * bucket])
    prefetch(buckets.first.ctypes.data + 8 * place)
    prefetch(buckets.member.ctypes.data + 4 * place)


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
    keys: Keys,
    clauses: Clauses,
    derived: np.ndarray,
    staged: Staged,
) -> bool:
    """Stage the matches in buckets, until all are done (True) or there is no more room.

    `state` has the next hit, its next member (or -1), the number of matches and of ids so far.
    """
    block_rows = table[access, ROWS]
    perm = numba.carray(pointer(table[access, PERM]), block_rows, np.uint16)
    rows = np.empty(block_rows + SLACK, np.uint16)
    some = np.empty(block_rows, np.uint16)
    values = np.empty(block_rows, np.int64)
    marks = np.zeros((block_rows + 63) >> 6, np.uint64)
    following, member, done, used = state[0], state[1], state[2], state[3]
    ends = buckets.last.size > 0
    ids = staged.ids
    while following < hits.shape[0]:
        if following + AHEAD < hits.shape[0]:
            _ask_ahead(bucket_base + hits[following + AHEAD, 0], buckets)
        bucket = bucket_base + hits[following, 0]
        count = hits[following, 2] - hits[following, 1]
        for i in range(count):
            rows[i] = perm[hits[following, 1] + i]
        left, most = _gather(table, residual, flip, rows, count, marks, some, values)
        bare, end = buckets.start[2 * bucket + 1], buckets.start[2 * bucket + 2]
        if member < 0:
            member = np.int64(buckets.start[2 * bucket])
        while member < end and (member < bare or (left > 0 and buckets.first[member] <= most)):
            if done == staged.marks.size or used + count >= ids.size:
                state[0], state[1], state[2], state[3] = following, member, done, used
                return False
            found = used + 1
            if member < bare:
                ids[found : found + count] = rows[:count]
                found += count
            elif ends:
                first, last = buckets.first[member], buckets.last[member]
                for i in range(left):
                    ids[found] = some[i]
                    found += np.int64((values[i] >= first) & (values[i] <= last))
            else:
                first = buckets.first[member]
                for i in range(left):
                    ids[found] = some[i]
                    found += np.int64(values[i] >= first)
            clause = np.int64(buckets.member[member])
            if clause < 0:
                clause = ~clause
                here, cut = ids[used + 1 :], buckets.cut[bucket]
                found = used + 1 + _keep(here, found - used - 1, clause, cut, table, keys, clauses, derived)
            if found > used + 1:
                ids[used] = found - used - 2
                staged.marks[done] = (clause << 32) | used
                used = found
                done += 1
            member += 1
        member, following = np.int64(-1), following + 1
    state[0], state[1], state[2], state[3] = following, member, done, used
    return True


@compiled
def sort_marks(marks: np.ndarray, spare: np.ndarray, count: Int, most: Int) -> None:
    """Sort the first `count` marks by their clauses, whose positions are below `most`; a radix sort."""
    starts = np.empty(2048, np.int32)
    here, there = marks, spare
    shift = 32
    while most >> (shift - 32):
        starts[:] = 0
        for i in range(count):
            starts[(here[i] >> shift) & 2047] += 1
        total = np.int32(0)
        for digit in range(2048):
            size = starts[digit]
            starts[digit] = total
            total += size
        for i in range(count):
            mine = (here[i] >> shift) & 2047
            there[starts[mine]] = here[i]
            starts[mine] += 1
        here, there = there, here
        shift += 11
    # After an odd number of passes the answer lies in the spare array; copying onto itself is harmless.
    for i in range(count):
        marks[i] = here[i]
