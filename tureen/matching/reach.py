"""The clauses that a block's rows reach by key: which buckets, and what matches there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tureen.matching.access import Buckets, Clauses, Keys, Staged, find_buckets, order_staged, scan_buckets
from tureen.matching.buffers import Buffers
from tureen.queries import QueryRun
from tureen.stems.index import Block


class Reached(NamedTuple):
    """For each access column the buckets to scan, as `find_buckets` gives them, and the clauses of hot buckets."""

    hits: list[npt.NDArray[np.int64]]
    hot: npt.NDArray[Any] | None


def reach(block: Block, run: QueryRun, table: npt.NDArray[np.int64], keys: Keys, buffers: Buffers) -> Reached:
    """Which buckets the block's rows reach, but for those whose key is hot: the clauses of these are visited.

    A bucket costs its members times its rows, a visited clause costs about the same for any number of rows.
    """
    access, most = run.access, block.rows // buffers.tuning.hot_share
    found: list[npt.NDArray[np.int64]] = []
    hot: list[npt.NDArray[np.int32]] = []
    for number, column in enumerate(access.column.tolist()):
        first, last = access.column_start[number : number + 2].tolist()
        room = min(block.rows, last - first)
        hits: npt.NDArray[Any] = buffers.take(f"hits {number}", 3 * room, np.int64)[: 3 * room].reshape(room, 3)
        count = find_buckets(table[column], keys, access.bucket_cut[first:last], hits)
        hits = hits[:count]
        large = hits[:, 2] - hits[:, 1] > most
        if large.any():
            for bucket in (first + hits[large, 0]).tolist():
                hot.append(access.member[access.bucket_start[2 * bucket] : access.bucket_start[2 * bucket + 2]])
            hits = hits[~large]
        found.append(hits)
    if not hot:
        return Reached(found, None)
    members = np.concatenate(hot)
    return Reached(found, np.where(members < 0, ~members, members))


def stage(
    reached: Reached,
    run: QueryRun,
    table: npt.NDArray[np.int64],
    keys: Keys,
    derived: npt.NDArray[Any],
    buffers: Buffers,
) -> tuple[Staged, npt.NDArray[Any]]:
    """The matches in the buckets that were reached, and their order by clause."""
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
        buffers.take("staged clause", 1 << 12, np.int32),
        buffers.take("staged rows", 1 << 12, np.int32),
        buffers.take("staged begin", 1 << 12, np.int64),
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
    count = int(state[2])
    order = buffers.take("staged order", count, np.int32)
    order_staged(staged.clause, count, order, buffers.take("staged spare", count, np.int32), len(run))
    return staged, order[:count]
