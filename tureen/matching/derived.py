"""Derived factors over a block: each evaluated once, whatever the number of clauses that contain it."""

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
    """The bitmaps of derived factors, and of clauses that were evaluated on their own.

    `settled[q]` is the number of the bitmap that is the whole answer of clause `q`, or -1; it is empty where no
    clause was evaluated on its own. `failures` has the errors of clauses that raised.
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
    """The bitmaps of the derived factors, and their numbers of rows in `counts`.

    A factor is evaluated on the rows that some clause asks it about, as far as those are easily known. So it may raise
    on a row that no clause asks about: each clause that contains it is then evaluated on its own, on the rows that its
    other factors let through, and its answer takes a bitmap of its own. Without `ranks` it is asked about all rows.
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
            words[number] = np.uint64(0)
            alone.update(run.users[number])
        else:
            counts[run.factors + number] = pack_mask(address_of(mask), block.rows, words[number])
    if not alone:
        return Derived(words, _NONE_SETTLED, {})
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
    return Derived(np.concatenate([words, answers]), settled, failures)


def _holds_where_asked(
    block: Block, run: QueryRun, number: int, counts: npt.NDArray[Any], ranks: npt.NDArray[Any] | None
) -> npt.NDArray[np.bool_]:
    """For which rows a derived factor holds, of those that the most selective of its partners let through."""
    factor, arrays = run.derived[number], run.arrays
    if ranks is None:
        return holds(factor, block)
    partners = run.partners[number]
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
