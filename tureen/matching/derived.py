"""Derived factors over a block: each is evaluated once for all clauses that contain it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tureen.errors import QueryFailed
from tureen.matching.buffers import Buffers
from tureen.matching.evaluate import holds, narrow
from tureen.matching.selector import select
from tureen.queries import QueryRun
from tureen.stems.cells.bitmaps import pack_mask
from tureen.stems.index import Block, address_of

_NONE_SETTLED: npt.NDArray[np.int32] = np.empty(0, np.int32)


@dataclass(frozen=True, eq=False, slots=True)
class Derived:
    """The bitmaps of derived factors, and of clauses that were evaluated separately.

    `settled[q]` is the number of the bitmap with the rows of clause `q`, or -1; it is empty if no clause was evaluated
    separately. `failures` has the errors of clauses that raised.
    """

    words: npt.NDArray[Any]
    settled: npt.NDArray[np.int32]
    failures: dict[int, str]


def derive(
    block: Block,
    run: QueryRun,
    width: int,
    counts: npt.NDArray[Any],
    ranks: npt.NDArray[Any] | None,
    buffers: Buffers,
) -> Derived:
    """Compute the bitmaps of the derived factors, and write their numbers of rows to `counts`.

    A factor is evaluated on the rows that matter to some clause, as far as those are easily known; without `ranks`, on
    all rows. So it may raise on a row that matters to no clause: each clause that contains it is then evaluated
    separately, on the rows that pass its other factors, and gets a bitmap of its own.
    """
    size = len(run.derived_texts)
    words = buffers.take("derived", size * width, np.uint64)[: size * width].reshape(size, width)
    separate: set[int] = set()
    for number in range(size):
        try:
            mask = _evaluate_factor(block, run, number, counts, ranks)
        except QueryFailed:
            # It counts as empty, so that a clause that fails because of it has no entry.
            counts[run.factors + number] = 0
            words[number] = np.uint64(0)
            separate.update(run.users[number])
        else:
            counts[run.factors + number] = pack_mask(address_of(mask), block.rows, words[number])
    if not separate:
        return Derived(words, _NONE_SETTLED, {})
    settled, failures = np.full(len(run), -1, np.int32), {}
    answers = np.empty((len(separate), width), np.uint64)
    for bitmap, position in enumerate(sorted(separate)):
        try:
            rows = select(block, run.clause(position))
        except QueryFailed as error:
            failures[int(run.ids[position])] = str(error)
            continue
        mask = np.zeros(block.rows, np.bool_)
        mask[rows] = True
        pack_mask(address_of(mask), block.rows, answers[bitmap])
        settled[position] = size + bitmap
    return Derived(np.concatenate([words, answers]), settled, failures)


def _evaluate_factor(
    block: Block, run: QueryRun, number: int, counts: npt.NDArray[Any], ranks: npt.NDArray[Any] | None
) -> npt.NDArray[np.bool_]:
    """Evaluate a derived factor on the rows that pass the most selective of its partners in each clause."""
    factor, arrays = run.derived[number], run.arrays
    if ranks is None:
        return holds(factor, block)
    partners = run.partners[number]
    chosen = {min(factors, key=lambda partner: int(counts[partner])) for factors in partners or ()}
    if partners is None or 2 * sum(int(counts[partner]) for partner in chosen) > block.rows:
        return holds(factor, block)
    relevant = np.zeros(block.rows, np.bool_)
    for partner in chosen:
        perm = block.indexed(run.names[arrays.factor_column[partner]]).perm
        for interval in range(arrays.factor_start[partner], arrays.factor_start[partner + 1]):
            relevant[perm[ranks[arrays.range_low[interval]] : ranks[arrays.range_high[interval]]]] = True
    mask = np.zeros(block.rows, np.bool_)
    mask[narrow((factor,), block, np.flatnonzero(relevant))] = True
    return mask
