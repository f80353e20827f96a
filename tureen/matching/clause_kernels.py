"""Clauses over a block, compiled.

Column-major: for each clause in turn, all rows of the block at once. (Row-major, a bitmap of clauses per
tuple, is CACQ's lineage, §2.2.) The sizes of all factors are known exactly before any work is done, so a
clause is empty at once, or a short list of candidates to check, or an AND of bitmaps.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from tureen.matching.access_kernels import Staged
from tureen.matching.prefixes import Prefixes, and_range, or_range
from tureen.stems.cells.bitmaps import (
    SLACK,
    count_bits,
    fill_bits,
    has_bit,
    list_bits,
    list_limit,
    set_bit,
    sort_rows,
)
from tureen.stems.sort_kernels import PERM, RANK, ROWS, Int, compiled, pointer


class Ranges(NamedTuple):
    """The range factors of a query run (see `Arrays`) and the ranks of its cut points in a block."""

    column: np.ndarray
    start: np.ndarray
    low: np.ndarray
    high: np.ndarray
    ranks: np.ndarray


class Output(NamedTuple):
    """Where entries are written: clause ids, numbers of rows, byte offsets into the containers."""

    clause: np.ndarray
    rows: np.ndarray
    offset: np.ndarray
    words: np.ndarray


@compiled
def count_factor(ranges: Ranges, factor: Int) -> Int:
    """The exact number of rows of a factor, known from the ranks of its cut points alone."""
    total = 0
    for i in range(ranges.start[factor], ranges.start[factor + 1]):
        total += max(0, ranges.ranks[ranges.high[i]] - ranges.ranks[ranges.low[i]])
    return total


@compiled
def count_factors(ranges: Ranges, factors: np.ndarray, counts: np.ndarray) -> None:
    """The numbers of rows of some factors."""
    for i in range(factors.size):
        counts[factors[i]] = count_factor(ranges, factors[i])


@compiled
def in_factor(ranges: Ranges, factor: Int, rank: Int) -> Int:
    """Whether a rank lies in one of the factor's ranges, which ascend."""
    begin, end = ranges.start[factor], ranges.start[factor + 1]
    while end - begin > 1:
        middle = (begin + end) >> 1
        if ranges.ranks[ranges.low[middle]] <= rank:
            begin = middle
        else:
            end = middle
    return ranges.ranks[ranges.low[begin]] <= rank and rank < ranges.ranks[ranges.high[begin]]


@compiled
def list_factor(table: np.ndarray, ranges: Ranges, factor: Int, rows: np.ndarray) -> Int:
    """The rows of a factor, in no order; give their number."""
    column = ranges.column[factor]
    perm = numba.carray(pointer(table[column, PERM]), table[column, ROWS], np.uint16)
    count = 0
    for i in range(ranges.start[factor], ranges.start[factor + 1]):
        for j in range(ranges.ranks[ranges.low[i]], ranges.ranks[ranges.high[i]]):
            rows[count] = perm[j]
            count += 1
    return count


@compiled
def keep_factor(table: np.ndarray, ranges: Ranges, factor: Int, rows: np.ndarray, count: Int) -> Int:
    """Keep those of the first `count` rows that the factor lets through; give their number."""
    column = ranges.column[factor]
    rank = numba.carray(pointer(table[column, RANK]), table[column, ROWS], np.uint16)
    begin = ranges.start[factor]
    left = np.int64(0)
    if ranges.start[factor + 1] - begin == 1:
        low, high = ranges.ranks[ranges.low[begin]], ranges.ranks[ranges.high[begin]]
        for i in range(count):
            mine = np.int64(rank[rows[i]])
            rows[left] = rows[i]
            left += np.int64((mine >= low) & (mine < high))
    else:
        for i in range(count):
            rows[left] = rows[i]
            left += np.int64(in_factor(ranges, factor, np.int64(rank[rows[i]])))
    return left


@compiled
def _candidates(
    table: np.ndarray,
    ranges: Ranges,
    access: Int,
    factors: np.ndarray,
    derived: np.ndarray,
    rows: np.ndarray,
) -> Int:
    """The rows of the factor `access` that all other factors let through, in no order; give their number."""
    known = ranges.column.size
    count = list_factor(table, ranges, access, rows)
    for k in range(factors.size):
        factor = factors[k]
        if factor >= known:
            left = np.int64(0)
            for i in range(count):
                rows[left] = rows[i]
                left += np.int64(has_bit(derived[factor - known], np.int64(rows[i])))
            count = left
        elif factor != access:
            count = keep_factor(table, ranges, factor, rows, count)
    return count


@compiled
def _and_factor(
    words: np.ndarray,
    fresh: bool,
    table: np.ndarray,
    ranges: Ranges,
    factor: Int,
    prefixes: Prefixes,
    union: np.ndarray,
) -> None:
    """AND a factor into a bitmap, or start a fresh one with it."""
    column = ranges.column[factor]
    perm = numba.carray(pointer(table[column, PERM]), table[column, ROWS], np.uint16)
    begin, end = ranges.start[factor], ranges.start[factor + 1]
    if end - begin == 1:
        and_range(words, fresh, ranges.low[begin], ranges.high[begin], perm, ranges.ranks, prefixes)
        return
    union[:] = 0
    for i in range(begin, end):
        or_range(union, ranges.low[i], ranges.high[i], perm, ranges.ranks, prefixes)
    if fresh:
        words[:] = union
    else:
        for i in range(words.size):
            words[i] &= union[i]


@compiled
def _and_clause(
    words: np.ndarray,
    table: np.ndarray,
    ranges: Ranges,
    factors: np.ndarray,
    counts: np.ndarray,
    prefixes: Prefixes,
    derived: np.ndarray,
    union: np.ndarray,
    block_rows: Int,
) -> Int:
    """The bitmap of a clause with at least one factor; give its number of rows."""
    known = ranges.column.size
    fresh = True
    for k in range(factors.size):
        factor = factors[k]
        # A factor that lets every row through is passed over, unless nothing else would fill the bitmap.
        if counts[factor] == block_rows and not (fresh and k == factors.size - 1):
            continue
        if factor < known:
            _and_factor(words, fresh, table, ranges, factor, prefixes, union)
        elif fresh:
            words[:] = derived[factor - known]
        else:
            other = derived[factor - known]
            for i in range(words.size):
                words[i] &= other[i]
        fresh = False
    if factors.size == 1:
        return np.int64(counts[factors[0]])
    return count_bits(words)


@compiled
def _write(
    output: Output, done: Int, clause: Int, count: Int, listed: bool, rows: np.ndarray, words: np.ndarray, limit: Int
) -> Int:
    """Write an entry, whose rows are listed in ascending order or are a bitmap; give the number of entries."""
    used = output.offset[done] >> 3
    if count <= limit:
        if not listed:
            list_bits(words, rows)
        halves = output.words.view(np.uint16)
        size = (count + 3) >> 2
        output.words[used + size - 1] = 0
        for i in range(count):
            halves[(used << 2) + i] = rows[i]
        used += size
    else:
        if listed:
            words[:] = 0
            for i in range(count):
                set_bit(words, np.int64(rows[i]))
        output.words[used : used + words.size] = words
        used += words.size
    output.clause[done] = clause
    output.rows[done] = count
    output.offset[done + 1] = used << 3
    return done + 1


@compiled
def _write_staged(
    staged: Staged, waiting: Int, before: Int, ids: np.ndarray, output: Output, done: Int, words: np.ndarray, limit: Int
) -> tuple[Int, Int]:
    """Write the staged matches of clauses that stand before another, as far as there is room.

    Gives the next of them, and the number of entries.
    """
    room = output.words.size - words.size
    halves = output.words.view(np.uint16)
    used = output.offset[done] >> 3
    while waiting < staged.marks.size and used <= room:
        clause, begin = staged.marks[waiting] >> 32, staged.marks[waiting] & 0xFFFF_FFFF
        if clause >= before:
            break
        count = np.int64(staged.ids[begin]) + 1
        if count <= limit:
            size = (count + 3) >> 2
            output.words[used + size - 1] = 0
            for i in range(count):
                halves[(used << 2) + i] = staged.ids[begin + 1 + i]
            used += size
        else:
            bitmap = output.words[used : used + words.size]
            bitmap[:] = 0
            for i in range(count):
                set_bit(bitmap, np.int64(staged.ids[begin + 1 + i]))
            used += words.size
        output.clause[done] = ids[clause]
        output.rows[done] = count
        done += 1
        output.offset[done] = used << 3
        waiting += 1
    return waiting, done


@compiled
def _smallest(factors: np.ndarray, counts: np.ndarray) -> Int:
    """That of a clause's factors that has the fewest rows."""
    access = factors[0]
    for k in range(1, factors.size):
        if counts[factors[k]] < counts[access]:
            access = factors[k]
    return access


@compiled
def _are_ranges(factors: np.ndarray, ranges: Int) -> bool:
    """Whether all of a clause's factors are in the index."""
    highest = factors[0]
    for k in range(1, factors.size):
        highest = max(highest, factors[k])
    return bool(highest < ranges)


@compiled
def _leave_out(output: Output, done: Int, clause: Int, count: Int) -> Int:
    """Write an entry without a container, and give the number of entries."""
    output.clause[done] = clause
    output.rows[done] = count
    output.offset[done + 1] = output.offset[done]
    return done + 1


@compiled
def match_clauses(
    state: np.ndarray,
    visited: np.ndarray,
    ids: np.ndarray,
    clause_start: np.ndarray,
    clause_factor: np.ndarray,
    table: np.ndarray,
    ranges: Ranges,
    counts: np.ndarray,
    prefixes: Prefixes,
    derived: np.ndarray,
    settled: np.ndarray,
    staged: Staged,
    short: Int,
    dense: Int,
    block_rows: Int,
    output: Output,
) -> bool:
    """Match the visited clauses with a block, and write them and the staged ones, until all are done or output is full.

    `state` has the numbers of visited clauses, of staged ones and of entries that are done. A clause whose `settled`
    is not negative has its whole answer in that derived bitmap. All marks of the staged ones are there, in order. A
    clause of ranges alone with more than `dense` rows has an entry without a container.
    """
    width = derived.shape[1]
    limit = list_limit(block_rows)
    rows = np.empty(block_rows + SLACK, np.uint16)
    words = np.empty(width, np.uint64)
    union = np.empty(width, np.uint64)
    marks = np.zeros(width, np.uint64)
    place, waiting, done = state[0], state[1], state[2]
    while True:
        q = np.int64(visited[place]) if place < visited.size else np.int64(ids.size)
        if waiting < staged.marks.size and (staged.marks[waiting] >> 32) < q:
            waiting, done = _write_staged(staged, waiting, q, ids, output, done, words, limit)
        if (output.offset[done] >> 3) + width > output.words.size:
            state[0], state[1], state[2] = place, waiting, done
            return False
        if place == visited.size:
            state[0], state[1], state[2] = place, waiting, done
            return True
        place += 1
        answer = settled[q] if settled.size else -1
        factors = clause_factor[clause_start[q] : clause_start[q + 1]]
        listed = False
        if answer >= 0:
            words[:] = derived[answer]
            count = count_bits(words)
        elif factors.size == 0:
            fill_bits(words, block_rows)
            count = np.int64(block_rows)
        else:
            access = _smallest(factors, counts)
            if counts[access] == 0:
                continue
            indexed = _are_ranges(factors, ranges.column.size)
            if factors.size == 1 and indexed and counts[access] > dense:
                done = _leave_out(output, done, ids[q], counts[access])
                continue
            listed = access < ranges.column.size and counts[access] <= short
            if listed:
                count = np.int64(_candidates(table, ranges, access, factors, derived, rows))
                if count <= limit:
                    sort_rows(rows, count, marks)
            else:
                count = np.int64(
                    _and_clause(words, table, ranges, factors, counts, prefixes, derived, union, block_rows)
                )
                if indexed and count > dense:
                    done = _leave_out(output, done, ids[q], count)
                    continue
        if count:
            done = _write(output, done, ids[q], count, listed, rows, words, limit)
