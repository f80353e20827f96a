"""Compiled loops that match clauses with a block, column-major: for each clause in turn, all rows of the block.

(Row-major, a bitmap of clauses per tuple, is CACQ's lineage, §2.2.) The sizes of all factors are known exactly before
any work is done, so a clause is known to be empty, or is matched by a short list of candidates or an AND of bitmaps.
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


class CellOutput(NamedTuple):
    """The arrays that entries are written to: clause ids, numbers of rows, byte offsets, containers."""

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
    """Count the rows of the given factors."""
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
    """List the rows of a factor, in no order; returns their number."""
    column = ranges.column[factor]
    perm = numba.carray(pointer(table[column, PERM]), table[column, ROWS], np.uint16)
    count = 0
    for i in range(ranges.start[factor], ranges.start[factor + 1]):
        for j in range(ranges.ranks[ranges.low[i]], ranges.ranks[ranges.high[i]]):
            rows[count] = perm[j]
            count += 1
    return count


@compiled
def filter_by_factor(table: np.ndarray, ranges: Ranges, factor: Int, rows: np.ndarray, count: Int) -> Int:
    """Filter the first `count` rows by a factor; returns how many remain."""
    column = ranges.column[factor]
    rank = numba.carray(pointer(table[column, RANK]), table[column, ROWS], np.uint16)
    begin = ranges.start[factor]
    remaining = np.int64(0)
    if ranges.start[factor + 1] - begin == 1:
        low, high = ranges.ranks[ranges.low[begin]], ranges.ranks[ranges.high[begin]]
        for i in range(count):
            row_rank = np.int64(rank[rows[i]])
            rows[remaining] = rows[i]
            remaining += np.int64((row_rank >= low) & (row_rank < high))
    else:
        for i in range(count):
            rows[remaining] = rows[i]
            remaining += np.int64(in_factor(ranges, factor, np.int64(rank[rows[i]])))
    return remaining


@compiled
def _candidates(
    table: np.ndarray,
    ranges: Ranges,
    access: Int,
    factors: np.ndarray,
    derived: np.ndarray,
    rows: np.ndarray,
) -> Int:
    """List the rows of the factor `access` that pass all other factors, in no order; returns their number."""
    range_factors = ranges.column.size
    count = list_factor(table, ranges, access, rows)
    for k in range(factors.size):
        factor = factors[k]
        if factor >= range_factors:
            remaining = np.int64(0)
            for i in range(count):
                rows[remaining] = rows[i]
                remaining += np.int64(has_bit(derived[factor - range_factors], np.int64(rows[i])))
            count = remaining
        elif factor != access:
            count = filter_by_factor(table, ranges, factor, rows, count)
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
    """AND a factor into a bitmap, or initialize a fresh bitmap with it."""
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
    """Compute the bitmap of a clause with at least one factor; returns its number of rows."""
    range_factors = ranges.column.size
    fresh = True
    for k in range(factors.size):
        factor = factors[k]
        # A factor that holds for every row is skipped, unless no other one would fill the bitmap.
        if counts[factor] == block_rows and not (fresh and k == factors.size - 1):
            continue
        if factor < range_factors:
            _and_factor(words, fresh, table, ranges, factor, prefixes, union)
        elif fresh:
            words[:] = derived[factor - range_factors]
        else:
            bitmap = derived[factor - range_factors]
            for i in range(words.size):
                words[i] &= bitmap[i]
        fresh = False
    if factors.size == 1:
        return np.int64(counts[factors[0]])
    return count_bits(words)


@compiled
def _write_entry(
    output: CellOutput,
    entries: Int,
    clause: Int,
    count: Int,
    listed: bool,
    rows: np.ndarray,
    words: np.ndarray,
    limit: Int,
) -> Int:
    """Write an entry, whose rows are an ascending list or a bitmap; returns the number of entries."""
    used = output.offset[entries] >> 3
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
    output.clause[entries] = clause
    output.rows[entries] = count
    output.offset[entries + 1] = used << 3
    return entries + 1


@compiled
def _write_staged(
    staged: Staged,
    next_staged: Int,
    before: Int,
    ids: np.ndarray,
    output: CellOutput,
    entries: Int,
    words: np.ndarray,
    limit: Int,
) -> tuple[Int, Int]:
    """Write the staged matches of clauses at positions below `before`, as far as there is room.

    Returns the next staged match, and the number of entries.
    """
    room = output.words.size - words.size
    halves = output.words.view(np.uint16)
    used = output.offset[entries] >> 3
    while next_staged < staged.marks.size and used <= room:
        clause, begin = staged.marks[next_staged] >> 32, staged.marks[next_staged] & 0xFFFF_FFFF
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
        output.clause[entries] = ids[clause]
        output.rows[entries] = count
        entries += 1
        output.offset[entries] = used << 3
        next_staged += 1
    return next_staged, entries


@compiled
def _smallest(factors: np.ndarray, counts: np.ndarray) -> Int:
    """The factor of a clause with the fewest rows."""
    access = factors[0]
    for k in range(1, factors.size):
        if counts[factors[k]] < counts[access]:
            access = factors[k]
    return access


@compiled
def _are_all_ranges(factors: np.ndarray, ranges: Int) -> bool:
    """Whether all of a clause's factors are ranges, which the index answers."""
    highest = factors[0]
    for k in range(1, factors.size):
        highest = max(highest, factors[k])
    return bool(highest < ranges)


@compiled
def _write_count(output: CellOutput, entries: Int, clause: Int, count: Int) -> Int:
    """Write an entry without a container; returns the number of entries."""
    output.clause[entries] = clause
    output.rows[entries] = count
    output.offset[entries + 1] = output.offset[entries]
    return entries + 1


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
    output: CellOutput,
) -> bool:
    """Match the visited clauses with a block, and write them and the staged ones, until all are done or output is full.

    `state` has the numbers of visited clauses and of staged matches that are done, and of entries. A clause whose
    `settled` is not negative has its rows in that derived bitmap. The marks of the staged matches are sorted. A clause
    of ranges only with more than `dense` rows gets an entry without a container.
    """
    width = derived.shape[1]
    limit = list_limit(block_rows)
    rows = np.empty(block_rows + SLACK, np.uint16)
    words = np.empty(width, np.uint64)
    union = np.empty(width, np.uint64)
    marks = np.zeros(width, np.uint64)
    next_visit, next_staged, entries = state[0], state[1], state[2]
    while True:
        q = np.int64(visited[next_visit]) if next_visit < visited.size else np.int64(ids.size)
        if next_staged < staged.marks.size and (staged.marks[next_staged] >> 32) < q:
            next_staged, entries = _write_staged(staged, next_staged, q, ids, output, entries, words, limit)
        if (output.offset[entries] >> 3) + width > output.words.size:
            state[0], state[1], state[2] = next_visit, next_staged, entries
            return False
        if next_visit == visited.size:
            state[0], state[1], state[2] = next_visit, next_staged, entries
            return True
        next_visit += 1
        bitmap = settled[q] if settled.size else -1
        factors = clause_factor[clause_start[q] : clause_start[q + 1]]
        listed = False
        if bitmap >= 0:
            words[:] = derived[bitmap]
            count = count_bits(words)
        elif factors.size == 0:
            fill_bits(words, block_rows)
            count = np.int64(block_rows)
        else:
            access = _smallest(factors, counts)
            if counts[access] == 0:
                continue
            indexed = _are_all_ranges(factors, ranges.column.size)
            if factors.size == 1 and indexed and counts[access] > dense:
                entries = _write_count(output, entries, ids[q], counts[access])
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
                    entries = _write_count(output, entries, ids[q], count)
                    continue
        if count:
            entries = _write_entry(output, entries, ids[q], count, listed, rows, words, limit)
