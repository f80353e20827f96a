"""The clauses that a block's rows reach by key: which buckets, and what matches there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tureen.matching.access_kernels import Buckets, Clauses, Staged, scan_buckets, sort_marks
from tureen.matching.buckets import find_buckets
from tureen.matching.buffers import Buffers
from tureen.matching.rowmajor import find_stretches, match_rows
from tureen.matching.tuning import Tuning
from tureen.queries import QueryRun
from tureen.queries.cuts import Encoding
from tureen.queries.lineage import Lineage
from tureen.stems.index import Block
from tureen.stems.sort_kernels import Keys

_NO_HITS: npt.NDArray[np.int64] = np.empty((0, 3), np.int64)


class Reached(NamedTuple):
    """For each access column the buckets to scan, as `find_buckets` gives them, and the clauses of hot buckets."""

    hits: list[npt.NDArray[np.int64]]
    hot: npt.NDArray[Any] | None


def looks_up(rows: int, run: QueryRun, number: int, tuning: Tuning) -> bool:
    """Whether so many rows look for their buckets in an access column, or its clauses are all visited."""
    access = run.access
    first, last = access.column_start[number : number + 2].tolist()
    members = int(access.bucket_start[2 * last] - access.bucket_start[2 * first])
    text = run.encodings[access.column[number]] in (Encoding.TEXT, Encoding.WIDE)
    return tuning.looks_up(rows, last - first, members, text)


def with_keys_for(rows: int, run: QueryRun, tuning: Tuning) -> QueryRun:
    """The run for a block of so many rows: itself, or all of it to be visited if the rows look for no key."""
    if any(looks_up(rows, run, number, tuning) for number in range(len(run.access.column))):
        return run
    return run.all_visited


def reach(block: Block, run: QueryRun, table: npt.NDArray[np.int64], keys: Keys, buffers: Buffers) -> Reached:
    """Which buckets the block's rows reach, but for those whose key is hot: the clauses of these are visited.

    A bucket costs its members times its rows, a visited clause costs about the same for any number of rows. And where
    a column's clauses are fewer than the rows that would look for their buckets, all of them are visited.
    """
    access, tuning = run.access, buffers.tuning
    most = tuning.most_rows(block.rows)
    found: list[npt.NDArray[np.int64]] = []
    hot: list[npt.NDArray[np.int32]] = []
    for number, column in enumerate(access.column.tolist()):
        first, last = access.column_start[number : number + 2].tolist()
        if not looks_up(block.rows, run, number, tuning):
            found.append(_NO_HITS)
            hot.append(access.member[access.bucket_start[2 * first] : access.bucket_start[2 * last]])
            continue
        room = min(block.rows, last - first)
        hits: npt.NDArray[Any] = buffers.take(f"hits {number}", 3 * room, np.int64)[: 3 * room].reshape(room, 3)
        hits = hits[: find_buckets(table[column], keys, access.bucket_cut[first:last], hits)]
        large = hits[:, 2] - hits[:, 1] > most
        if large.any():
            buckets = 2 * (first + hits[large, 0])
            places = zip(access.bucket_start[buckets].tolist(), access.bucket_start[buckets + 2].tolist(), strict=True)
            hot.extend(access.member[begin:end] for begin, end in places)
            hits = hits[~large]
        found.append(hits)
    if not hot:
        return Reached(found, None)
    members = np.concatenate(hot)
    return Reached(found, np.where(members < 0, ~members, members))


def stage(
    block_rows: int,
    reached: Reached,
    run: QueryRun,
    table: npt.NDArray[np.int64],
    keys: Keys,
    derived: npt.NDArray[Any],
    lineage: Lineage | None,
    buffers: Buffers,
) -> Staged:
    """The matches in the buckets that were reached and, where there is a lineage, of the visited clauses; in order."""
    access, arrays = run.access, run.arrays
    buckets = Buckets(access.bucket_cut, access.bucket_start, access.member, access.first, access.last)
    clauses = Clauses(
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
        found = buffers.take("stretches", block_rows * len(table), np.int32)
        found = found[: block_rows * len(table)].reshape(block_rows, len(table))
        find_stretches(table, access.cut, access.cut_start, keys, lineage.slot, found)
        state[0] = 0
        base = int(lineage.slot[-1])
        while not match_rows(lineage.words, found, derived, base, access.visited, state, staged):
            staged = Staged(*(buffers.grow(f"staged {name}") for name in Staged._fields))
    count = int(state[1])
    sort_marks(staged.marks, buffers.take("staged spare", count, np.int64), count, len(run))
    return staged._replace(marks=staged.marks[:count])
