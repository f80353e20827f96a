"""Access predicates over a block, compiled: the buckets that its rows reach, and their members' matches.

A block's rows are sorted by the access column and so are the buckets' keys, so one galloping merge finds which rows
reach which bucket; it needs no hash table and treats texts as it treats numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from tureen.matching.bitmaps import SLACK, has_bit, sort_rows
from tureen.stems.kernels import (
    DATA,
    KIND,
    OFFSETS,
    PERM,
    RANK,
    ROWS,
    VALID,
    Int,
    below_cut,
    compiled,
    cut_rank,
    key_at,
    pointer,
)


class Keys(NamedTuple):
    """The keys of a query run's cut points (see `Arrays`)."""

    high: np.ndarray
    low: np.ndarray
    text_start: np.ndarray
    text: np.ndarray


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
    """Matches in the order in which they are found: clause, number of rows, and where in `ids` they begin."""

    clause: np.ndarray
    rows: np.ndarray
    begin: np.ndarray
    ids: np.ndarray


@compiled
def _below(column: np.ndarray, row: Int, cut: Int, keys: Keys) -> Int:
    return below_cut(
        column[KIND], column[DATA], column[OFFSETS], row, cut, keys.high, keys.low, keys.text_start, keys.text
    )


@compiled
def find_buckets(column: np.ndarray, keys: Keys, cuts: np.ndarray, hits: np.ndarray) -> Int:
    """Which buckets the rows of a block reach, and with which ranks; give their number.

    `cuts` are the cut points of one column's buckets. A row of `hits` becomes the number of a bucket among these, and
    the first and the last (exclusive) rank of its rows. Both sides gallop: it costs what the shorter one costs.
    """
    valid = column[VALID]
    perm = numba.carray(pointer(column[PERM]), max(valid, 1), np.uint16)
    rank: Int = np.int64(0)
    bucket: Int = np.int64(0)
    found = np.int64(0)
    while rank < valid and bucket < cuts.size:
        row = np.int64(perm[rank])
        if not _below(column, row, cuts[bucket] + 1, keys):
            # The first bucket that does not end below the row, which is not this one.
            first, step = bucket + 1, np.int64(1)
            last = min(first, cuts.size)
            while last < cuts.size and not _below(column, row, cuts[last] + 1, keys):
                first = last + 1
                last = min(last + step, cuts.size)
                step *= 2
            while first < last:
                middle = (first + last) >> 1
                if _below(column, row, cuts[middle] + 1, keys):
                    last = middle
                else:
                    first = middle + 1
            bucket = first
            if bucket == cuts.size:
                break
        cut = np.int64(cuts[bucket])
        rank = cut_rank(column, rank, cut, keys.high, keys.low, keys.text_start, keys.text)
        end = cut_rank(column, rank, cut + 1, keys.high, keys.low, keys.text_start, keys.text)
        if end > rank:
            hits[found, 0], hits[found, 1], hits[found, 2] = bucket, rank, end
            found += 1
        rank = end
        bucket += 1
    return found


@compiled
def _stands_before(column: np.ndarray, row: Int, cut: Int, bottom: Int, top: Int, keys: Keys) -> Int:
    """Whether a row that is not NULL stands before a cut point, be it a key or an edge."""
    if cut >= top:
        return True
    return cut > bottom and _below(column, row, cut, keys)


@compiled
def _lets_through(table: np.ndarray, keys: Keys, clauses: Clauses, factor: Int, row: Int) -> Int:
    """Whether a row lies in one of a factor's ranges, which ascend; by keys, since their ranks are not known."""
    number = clauses.factor_column[factor]
    column = table[number]
    bottom, top = clauses.cut_start[number], clauses.cut_start[number + 1] - 2
    begin, end = clauses.factor_start[factor], clauses.factor_start[factor + 1]
    if begin == end:
        return False
    if numba.carray(pointer(column[RANK]), column[ROWS], np.uint16)[row] >= column[VALID]:
        return clauses.high[end - 1] > top
    while end - begin > 1:
        middle = (begin + end) >> 1
        if _stands_before(column, row, clauses.low[middle], bottom, top, keys):
            end = middle
        else:
            begin = middle
    if _stands_before(column, row, clauses.low[begin], bottom, top, keys):
        return False
    return _stands_before(column, row, clauses.high[begin], bottom, top, keys)


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
        left = np.int64(0)
        if factor >= known:
            words = derived[factor - known]
            for i in range(count):
                rows[left] = rows[i]
                left += np.int64(has_bit(words, np.int64(rows[i])))
        else:
            begin = clauses.factor_start[factor]
            single = clauses.factor_start[factor + 1] - begin == 1
            if single and clauses.low[begin] == cut and clauses.high[begin] == cut + 1:
                continue
            for i in range(count):
                rows[left] = rows[i]
                left += np.int64(_lets_through(table, keys, clauses, factor, np.int64(rows[i])))
        count = left
    return count


@compiled
def _gather(
    column: np.ndarray, flip: Int, rows: np.ndarray, count: Int, some: np.ndarray, values: np.ndarray
) -> tuple[Int, Int]:
    """The rows that are not NULL in a column, and their values; give their number and the largest value."""
    kind, data, valid = column[KIND], column[DATA], column[VALID]
    rank = numba.carray(pointer(column[RANK]), column[ROWS], np.uint16)
    most = np.int64(-(2**63))
    left = np.int64(0)
    for i in range(count):
        row = np.int64(rows[i])
        if valid == column[ROWS] or rank[row] < valid:
            value = key_at(kind, data, row) ^ flip
            some[left] = rows[i]
            values[left] = value
            most = max(most, value)
            left += 1
    return left, most


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
    """Stage the matches of the buckets that are hit, until all are done or there is no more room.

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
    while following < hits.shape[0]:
        bucket = bucket_base + hits[following, 0]
        count = hits[following, 2] - hits[following, 1]
        for i in range(count):
            rows[i] = perm[hits[following, 1] + i]
        # Rows of one value ascend already; a bucket may hold several values.
        sort_rows(rows, count, marks)
        left, most = np.int64(0), np.int64(0)
        if residual >= 0:
            left, most = _gather(table[residual], flip, rows, count, some, values)
        bare, end = buckets.start[2 * bucket + 1], buckets.start[2 * bucket + 2]
        if member < 0:
            member = np.int64(buckets.start[2 * bucket])
        while member < end and (member < bare or (left > 0 and buckets.first[member] <= most)):
            if done == staged.clause.size or used + count > staged.ids.size:
                state[0], state[1], state[2], state[3] = following, member, done, used
                return False
            found = used
            if member < bare:
                for i in range(count):
                    staged.ids[found] = rows[i]
                    found += 1
            elif ends:
                first, last = buckets.first[member], buckets.last[member]
                for i in range(left):
                    staged.ids[found] = some[i]
                    found += np.int64((values[i] >= first) & (values[i] <= last))
            else:
                first = buckets.first[member]
                for i in range(left):
                    staged.ids[found] = some[i]
                    found += np.int64(values[i] >= first)
            clause = np.int64(buckets.member[member])
            if clause < 0:
                clause = ~clause
                cut = buckets.cut[bucket]
                found = used + _keep(staged.ids[used:], found - used, clause, cut, table, keys, clauses, derived)
            if found > used:
                staged.clause[done] = clause
                staged.rows[done] = found - used
                staged.begin[done] = used
                used = found
                done += 1
            member += 1
        member = np.int64(-1)
        following += 1
    state[0], state[1], state[2], state[3] = following, member, done, used
    return True


@compiled
def order_staged(clause: np.ndarray, count: Int, order: np.ndarray, spare: np.ndarray, most: Int) -> None:
    """The order of the first `count` matches by their clauses, each below `most`: a radix sort of their places."""
    starts = np.empty(2048, np.int32)
    for i in range(count):
        order[i] = i
    here, there = order, spare
    shift = 0
    while most >> shift:
        starts[:] = 0
        for i in range(count):
            starts[(clause[i] >> shift) & 2047] += 1
        total = np.int32(0)
        for digit in range(2048):
            size = starts[digit]
            starts[digit] = total
            total += size
        for i in range(count):
            mine = (clause[here[i]] >> shift) & 2047
            there[starts[mine]] = here[i]
            starts[mine] += 1
        here, there = there, here
        shift += 11
    # After an odd number of passes the answer lies in the spare array; copying onto itself is harmless.
    for i in range(count):
        order[i] = here[i]
