"""Matching a block with a query run: all clauses at once, into one cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.errors import QueryFailed
from tureen.matching.bitmaps import pack_mask
from tureen.matching.cell import Cell
from tureen.matching.evaluate import holds, narrow
from tureen.matching.kernels import Output, Ranges, count_factors, match_clauses
from tureen.matching.prefixes import Prefixes, fill_prefixes, plan_prefixes
from tureen.matching.select import select
from tureen.queries import QueryRun
from tureen.stems.index import Block, address_of
from tureen.stems.kernels import cut_ranks
from tureen.stems.run import CELL_SCHEMA

_EMPTY = pa.RecordBatch.from_arrays([pa.nulls(0, one.type) for one in CELL_SCHEMA], schema=CELL_SCHEMA)
_NONE_SETTLED: npt.NDArray[np.int32] = np.empty(0, np.int32)


@dataclass(frozen=True, slots=True)
class Tuning:
    """The thresholds of matching: they decide what it costs, never what it gives.

    `exact_bytes`: up to this size a column's prefix bitmaps stand at every cut point; beyond, at every
    `coarse_slots`-th part of the block. `short_share`: a factor with at most one row in so many gives
    candidates to check, instead of bitmaps to AND.
    """

    exact_bytes: int = 4 << 20
    coarse_slots: int = 1024
    short_share: int = 64


class Buffers:
    """Memory for matching, kept from block to block; each thread needs its own.

    New memory costs a page fault for every 4 KB touched, several times what matching itself costs.
    """

    def __init__(self, tuning: Tuning = Tuning()) -> None:  # noqa: B008  (it is frozen)
        """Start with nothing; memory comes with use."""
        self.tuning = tuning
        self._kept: dict[str, npt.NDArray[np.generic]] = {}

    def take(self, name: str, size: int, kind: type[np.generic]) -> npt.NDArray[np.generic]:
        """An array of at least that size, with whatever it held before."""
        kept = self._kept.get(name)
        if kept is None or kept.size < size:
            kept = self._kept[name] = np.empty(max(size, 2 * kept.size if kept is not None else 64), kind)
        return kept

    def grow(self, name: str) -> npt.NDArray[np.generic]:
        """The array of that name at twice its size, with what it held."""
        old = self._kept[name]
        new = np.empty(2 * old.size, old.dtype)
        new[: old.size] = old
        self._kept[name] = new
        return new


def match_block(block: Block, run: QueryRun, buffers: Buffers) -> Cell:
    """Which rows of a block satisfy which clauses of a query run.

    The cell lies in the buffers: write or read it before the next call with them. Columns that came without
    an index are indexed first.
    """
    if block.rows == 0 or len(run) == 0:
        return Cell(_EMPTY)
    arrays = run.arrays
    width = (block.rows + 63) // 64
    table = block.table(run.names).entries
    ranks = buffers.take("ranks", len(arrays.high), np.int32)
    keys = (arrays.high, arrays.low, arrays.text_start, arrays.text)
    cut_ranks(table, arrays.cut_start, *keys, ranks)
    ranges = Ranges(arrays.factor_column, arrays.factor_start, arrays.range_low, arrays.range_high, ranks)
    counts = buffers.take("counts", run.factors + len(run.derived_texts), np.int32)
    count_factors(ranges, counts)
    derived, settled, failures = _derived(block, run, width, counts, ranks, buffers)
    prefixes = _prefixes(block, run, width, table, ranks, buffers)
    output = Output(
        buffers.take("clause", len(run), np.int64),
        buffers.take("rows", len(run), np.int32),
        buffers.take("offset", len(run) + 1, np.int64),
        buffers.take("words", max(width, 1 << 17), np.uint64),
    )
    output.offset[0] = 0
    short = block.rows // buffers.tuning.short_share
    following, done = 0, 0
    while True:
        following, done = match_clauses(
            following,
            arrays.ids,
            arrays.clause_start,
            arrays.clause_factor,
            table,
            ranges,
            counts,
            prefixes,
            derived,
            settled,
            block.rows,
            short,
            output,
            done,
        )
        if following == len(run):
            return Cell(_batch(output, done), failures)
        output = output._replace(words=buffers.grow("words"))


def _prefixes(
    block: Block,
    run: QueryRun,
    width: int,
    table: npt.NDArray[np.int64],
    ranks: npt.NDArray[np.generic],
    buffers: Buffers,
) -> Prefixes:
    tuning = buffers.tuning
    cuts, columns = len(run.arrays.high), len(run.names)
    exact_slots = max(tuning.exact_bytes // (8 * width), 2)
    grain = -(-block.rows // tuning.coarse_slots)
    floor = buffers.take("floor", cuts, np.int32)
    ceil = buffers.take("ceil", cuts, np.int32)
    most = min(cuts, columns * exact_slots) + columns * (block.rows // grain + 2)
    slot_rank = buffers.take("slot rank", most, np.int32)
    column_slot = buffers.take("column slot", columns + 1, np.int32)
    slots = plan_prefixes(
        run.arrays.cut_start, ranks, block.rows, exact_slots, grain, floor, ceil, slot_rank, column_slot
    )
    words = buffers.take("prefixes", slots * width, np.uint64)[: slots * width].reshape(slots, width)
    fill_prefixes(table, slot_rank, column_slot, words)
    return Prefixes(floor, ceil, slot_rank, words)


def _derived(
    block: Block,
    run: QueryRun,
    width: int,
    counts: npt.NDArray[Any],
    ranks: npt.NDArray[np.generic],
    buffers: Buffers,
) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.int32], dict[int, str]]:
    """The bitmaps of the derived factors, each evaluated once for all clauses that contain it.

    It is evaluated on the rows that some clause asks it about, as far as those are easily known. So it may raise on
    a row that no clause asks about: each clause that contains it is then evaluated on its own, on the rows that its
    other factors let through, and its answer takes a bitmap of its own.
    """
    size = len(run.derived_texts)
    words = buffers.take("derived", size * width, np.uint64)[: size * width].reshape(size, width)
    alone: set[int] = set()
    for number in range(size):
        try:
            mask = _holds_where_asked(block, run, number, counts, ranks)
        except QueryFailed:
            # It counts as empty, so that a clause that fails for it has no entry.
            counts[run.factors + number] = 0
            alone.update(run.users[number])
        else:
            counts[run.factors + number] = pack_mask(address_of(mask), block.rows, words[number])
    if not alone:
        return words, _NONE_SETTLED, {}
    settled, failures = np.full(len(run), -1, np.int32), {}
    answers = np.empty((len(alone), width), np.uint64)
    for place, position in enumerate(sorted(alone)):
        try:
            rows = select(block, run.clause(position))
        except QueryFailed as error:
            failures[int(run.ids[position])] = str(error)
            continue
        mask = np.zeros(block.rows, np.bool_)
        mask[rows] = True
        pack_mask(address_of(mask), block.rows, answers[place])
        settled[position] = size + place
    return np.concatenate([words, answers]), settled, failures


def _holds_where_asked(
    block: Block, run: QueryRun, number: int, counts: npt.NDArray[Any], ranks: npt.NDArray[Any]
) -> npt.NDArray[np.bool_]:
    """For which rows a derived factor holds, of those that the most selective of its partners let through."""
    factor, partners, arrays = run.derived[number], run.partners[number], run.arrays
    chosen = {min(some, key=lambda one: int(counts[one])) for some in partners or ()}
    if partners is None or 2 * sum(int(counts[one]) for one in chosen) > block.rows:
        return holds(factor, block)
    asked = np.zeros(block.rows, np.bool_)
    for one in chosen:
        perm = block.indexed(run.names[arrays.factor_column[one]]).perm
        for place in range(arrays.factor_start[one], arrays.factor_start[one + 1]):
            asked[perm[ranks[arrays.range_low[place]] : ranks[arrays.range_high[place]]]] = True
    mask = np.zeros(block.rows, np.bool_)
    mask[narrow((factor,), block, np.flatnonzero(asked))] = True
    return mask


def _batch(output: Output, done: int) -> pa.RecordBatch:
    used = int(output.offset[done])
    columns = [
        pa.Array.from_buffers(pa.int64(), done, [None, pa.py_buffer(output.clause[:done])]),
        pa.Array.from_buffers(pa.int32(), done, [None, pa.py_buffer(output.rows[:done])]),
        pa.Array.from_buffers(
            pa.large_binary(),
            done,
            [None, pa.py_buffer(output.offset[: done + 1]), pa.py_buffer(output.words[: used // 8])],
        ),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=CELL_SCHEMA)
