"""Matching a block with a query run: all clauses at once, into one cell."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.matching.access_paths import row_major_limit
from tureen.matching.buffers import Buffers
from tureen.matching.clause_kernels import CellOutput, Ranges, count_factors, match_clauses
from tureen.matching.derived import derive
from tureen.matching.prefixes import Prefixes, fill_prefixes, plan_prefixes
from tureen.matching.reach import reach, stage, with_access_for
from tureen.matching.visits import NO_VISITS, Visits, visits_of, with_clauses
from tureen.queries import QueryRun
from tureen.stems.cells.cell import Cell
from tureen.stems.index import Block, address_of
from tureen.stems.sort_kernels import KeyAddresses, rank_cuts
from tureen.stems.stored import CELL_SCHEMA

_EMPTY = pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in CELL_SCHEMA], schema=CELL_SCHEMA)


def match_block(block: Block, run: QueryRun, buffers: Buffers) -> Cell:
    """Find which rows of a block satisfy which clauses of a query run.

    The cell lies in the buffers: write or read it before the next call with them. Columns without an index are indexed
    first.
    """
    if block.rows == 0 or len(run) == 0:
        return Cell(_EMPTY)
    run = with_access_for(block.rows, run, buffers.tuning)
    arrays = run.arrays
    width = (block.rows + 63) // 64
    table = block.table(run.names).entries
    keys = KeyAddresses(*(address_of(array) for array in (arrays.high, arrays.low, arrays.text_start, arrays.text)))
    reached = reach(block, run, table, keys, buffers)
    by_row = reached.hot is None and block.rows <= row_major_limit(run, buffers.tuning)
    # The bitmaps are built for the first block that uses them.
    lineage = run.lineage if by_row else None
    visits = visits_of(run, reached.hot) if lineage is None else NO_VISITS
    ranks = buffers.take("ranks", len(arrays.high), np.int32)
    ranges = Ranges(arrays.factor_column, arrays.factor_start, arrays.range_low, arrays.range_high, ranks)
    counts = buffers.take("counts", run.factors + len(run.derived_texts), np.int32)
    if lineage is None:
        rank_cuts(table, visits.cut, visits.cut_start, keys, ranks)
        count_factors(ranges, visits.factor, counts)
    derived = derive(block, run, width, counts, ranks if lineage is None else None, buffers)
    prefixes = _prefixes(block, visits, width, table, ranks, buffers)
    staged = stage(block.rows, reached, run, table, keys, derived.words, lineage, buffers)
    settled = np.flatnonzero(derived.settled >= 0)
    visited = with_clauses(visits.clause, settled) if len(settled) else visits.clause
    output = CellOutput(
        buffers.take("clause", len(run), np.int64),
        buffers.take("rows", len(run), np.int32),
        buffers.take("offset", len(run) + 1, np.int64),
        buffers.take("words", max(width, 1 << 17), np.uint64),
    )
    output.offset[0] = 0
    state = np.zeros(3, np.int64)
    while not match_clauses(
        state,
        visited,
        arrays.ids,
        arrays.clause_start,
        arrays.clause_factor,
        table,
        ranges,
        counts,
        prefixes,
        derived.words,
        derived.settled,
        staged,
        block.rows // buffers.tuning.short_share,
        block.rows // buffers.tuning.dense_share if buffers.tuning.dense_share else block.rows,
        block.rows,
        output,
    ):
        output = output._replace(words=buffers.grow("words"))
    return Cell(_batch(output, int(state[2])), derived.failures)


def _prefixes(
    block: Block,
    visits: Visits,
    width: int,
    table: npt.NDArray[np.int64],
    ranks: npt.NDArray[np.generic],
    buffers: Buffers,
) -> Prefixes:
    tuning = buffers.tuning
    columns = len(table)
    exact_slots = max(tuning.exact_bytes // (8 * width), 2)
    grain = -(-block.rows // tuning.coarse_slots)
    floor = buffers.take("floor", ranks.size, np.int32)
    ceil = buffers.take("ceil", ranks.size, np.int32)
    max_slots = min(visits.cut.size, columns * exact_slots) + columns * (block.rows // grain + 2)
    slot_rank = buffers.take("slot rank", max_slots, np.int32)
    column_slot = buffers.take("column slot", columns + 1, np.int32)
    slots = 0
    if len(visits.clause):
        slots = plan_prefixes(
            visits.cut, visits.cut_start, ranks, block.rows, exact_slots, grain, floor, ceil, slot_rank, column_slot
        )
    words = buffers.take("prefixes", slots * width, np.uint64)[: slots * width].reshape(slots, width)
    if slots:
        fill_prefixes(table, slot_rank, column_slot, words)
    return Prefixes(floor, ceil, slot_rank, words)


def _batch(output: CellOutput, entries: int) -> pa.RecordBatch:
    used = int(output.offset[entries])
    columns = [
        pa.Array.from_buffers(pa.int64(), entries, [None, pa.py_buffer(output.clause[:entries])]),
        pa.Array.from_buffers(pa.int32(), entries, [None, pa.py_buffer(output.rows[:entries])]),
        pa.Array.from_buffers(
            pa.large_binary(),
            entries,
            [None, pa.py_buffer(output.offset[: entries + 1]), pa.py_buffer(output.words[: used // 8])],
        ),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=CELL_SCHEMA)
