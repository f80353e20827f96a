"""The clauses that a block's rows reach by key: their buckets, and the matches in these."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tureen.matching.access_kernels import Buckets, ClauseFactors, Staged, scan_buckets, sort_marks
from tureen.matching.buckets import find_buckets
from tureen.matching.buffers import Buffers
from tureen.matching.rowmajor import find_slots, match_rows
from tureen.matching.tuning import Tuning
from tureen.queries import QueryRun
from tureen.queries.cuts import Encoding
from tureen.queries.lineage import LineageBitmaps
from tureen.stems.index import Block
from tureen.stems.sort_kernels import KeyAddresses

_NO_HITS: npt.NDArray[np.int64] = np.empty((0, 3), np.int64)


class Reached(NamedTuple):
    """For each access column the hits of `find_buckets` to scan, and the clauses of hot buckets, which are visited."""

    hits: list[npt.NDArray[np.int64]]
    hot: npt.NDArray[Any] | None


def uses_lookup(rows: int, run: QueryRun, number: int, tuning: Tuning) -> bool:
    """Whether a block of `rows` rows looks up its buckets in an access column, instead of visiting all its clauses."""
    access = run.access
    first, last = access.column_start[number : number + 2].tolist()
    members = int(access.bucket_start[2 * last] - access.bucket_start[2 * first])
    text = run.encodings[access.column[number]] in (Encoding.TEXT, Encoding.WIDE)
    return tuning.prefers_lookup(rows, last - first, members, text)


def with_access_for(rows: int, run: QueryRun, tuning: Tuning) -> QueryRun:
    """The run for a block of `rows` rows: if no access column is looked up, the run with all clauses visited."""
    if any(uses_lookup(rows, run, number, tuning) for number in range(len(run.access.column))):
        return run
    return run.all_visited


def reach(block: Block, run: QueryRun, table: npt.NDArray[np.int64], keys: KeyAddresses, buffers: Buffers) -> Reached:
    """Find the buckets that the block's rows reach, except hot ones, whose clauses are visited.

    A bucket costs its members times its rows, a visited clause about the same for any number of rows. If looking up
    buckets would cost more than visiting all of a column's clauses, all of them are visited.
    """
    access, tuning = run.access, buffers.tuning
    limit = tuning.hot_key_limit(block.rows)
    hits_by_column: list[npt.NDArray[np.int64]] = []
    hot: list[npt.NDArray[np.int32]] = []
    for number, column in enumerate(access.column.tolist()):
        first, last = access.column_start[number : number + 2].tolist()
        if not uses_lookup(block.rows, run, number, tuning):
            hits_by_column.append(_NO_HITS)
            hot.append(access.member[access.bucket_start[2 * first] : access.bucket_start[2 * last]])
            continue
        room = min(block.rows, last - first)
        hits: npt.NDArray[Any] = buffers.take(f"hits {number}", 3 * room, np.int64)[: 3 * room].reshape(room, 3)
        hits = hits[: find_buckets(table[column], keys, access.bucket_cut[first:last], hits)]
        large = hits[:, 2] - hits[:, 1] > limit
        if large.any():
            buckets = 2 * (first + hits[large, 0])
            bounds = zip(access.bucket_start[buckets].tolist(), access.bucket_start[buckets + 2].tolist(), strict=True)
            hot.extend(access.member[begin:end] for begin, end in bounds)
            hits = hits[~large]
        hits_by_column.append(hits)
    if not hot:
        return Reached(hits_by_column, None)
    members = np.concatenate(hot)
    return Reached(hits_by_column, np.where(members < 0, ~members, members))


def stage(
    block_rows: int,
    reached: Reached,
    run: QueryRun,
    table: npt.NDArray[np.int64],
    keys: KeyAddresses,
    derived: npt.NDArray[Any],
    lineage: LineageBitmaps | None,
    buffers: Buffers,
) -> Staged:
    """Stage the matches in the reached buckets and, given a lineage, of the visited clauses; sorted by clause."""
    access, arrays = run.access, run.arrays
    buckets = Buckets(access.bucket_cut, access.bucket_start, access.member, access.first, access.last)
    clauses = ClauseFactors(
        arrays.cut_start,
        arrays.factor_column,
        arrays.factor_start,
        arrays.range_low,
        arrays.range_high,
        arrays.clause_start,
        arrays.clause_factor,
    )
    staged = Staged(
        buffers.take("staged marks", 1 << 12, np.int64),
        buffers.take("staged ids", 1 << 16, np.uint16),
    )
    state = np.zeros(4, np.int64)
    for number, column in enumerate(access.column.tolist()):
        residual, flip = int(access.residual[number]), int(access.flip[number])
        state[:2] = 0, -1
        base = int(access.column_start[number])
        while not scan_buckets(
            reached.hits[number], state, base, column, residual, flip, buckets, table, keys, clauses, derived, staged
        ):
            staged = Staged(*(buffers.grow(f"staged {name}") for name in Staged._fields))
    state = state[1:]
    if lineage is not None:
        slots = buffers.take("stretches", block_rows * len(table), np.int32)
        slots = slots[: block_rows * len(table)].reshape(block_rows, len(table))
        find_slots(table, access.cut, access.cut_start, keys, lineage.slot, slots)
        state[0] = 0
        base = int(lineage.slot[-1])
        while not match_rows(lineage.words, slots, derived, base, access.visited, state, staged):
            staged = Staged(*(buffers.grow(f"staged {name}") for name in Staged._fields))
    count = int(state[1])
    sort_marks(staged.marks, buffers.take("staged spare", count, np.int64), count, len(run))
    return staged._replace(marks=staged.marks[:count])
