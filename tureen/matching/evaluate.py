"""Evaluating any predicate over a whole block, one predicate at a time.

This serves predicates that are not ranges of one column, rows without an index, and selected rows of a block. Errors
belong to rows: a part that raises is evaluated again on the rows that still need it, so that
`x = 0 OR 10 / x > 3` and `x <> 0 AND 10 / x > 3` do not fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from time import perf_counter_ns
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tureen.eddy.costly_factors import rank
from tureen.eddy.statistics import Profile
from tureen.errors import LimitExceeded, QueryFailed
from tureen.functions.function_costs import factors
from tureen.matching import opaque
from tureen.matching.compare_columns import compare
from tureen.matching.like import like
from tureen.predicate import AllOf, AnyOf, Compare, IsNull, Like, Opaque, Predicate, Within, calls_functions, columns_of
from tureen.queries import QueryRun, compile_clauses
from tureen.queries.cuts import Cut, Edge, Encoding, encoding_of, ends_of
from tureen.stems.index import Block, stored_values, truths_of
from tureen.stems.sort_kernels import cut_ranks

Mask = npt.NDArray[np.bool_]
"""One truth value per row: whether the predicate is TRUE there."""


def holds(predicate: Predicate, block: Block) -> Mask:
    """For which rows of a block a predicate is TRUE.

    >>> block = Block(pa.record_batch({"a": pa.array([1, None], pa.int32())}))
    >>> holds(IsNull("a"), block).tolist()
    [False, True]
    """
    match predicate:
        case Within():
            indexed = _within_index(predicate, block) if block.has_index(predicate.column) else None
            return _not_null(_within(predicate, block) if indexed is None else indexed, block, predicate.column)
        case IsNull(column):
            nulls = block.nulls(column)
            return nulls.copy() if nulls.size else np.zeros(block.rows, np.bool_)
        case Like():
            return _not_null(like(predicate, block), block, predicate.column)
        case Compare(left, _, right):
            return _not_null(_not_null(compare(predicate, block), block, left), block, right)
        case Opaque():
            return _opaque(predicate, block)
        case AllOf(parts):
            return _all_of(parts, block)
        case AnyOf(parts):
            return _any_of(parts, block)


def narrow(parts: Sequence[Predicate], block: Block, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The rows for which every part holds; each part is evaluated only on rows that passed the earlier ones.

    A part that raises is postponed until the others have narrowed the rows. A part that does not raise on a set of rows
    does not raise on a subset, so the order of the parts makes no difference. Raises if all remaining parts raise.
    """
    pending = ordered(parts)
    while pending and len(rows):
        postponed: list[Predicate] = []
        for part in pending:
            try:
                rows = rows[holds(part, _take_rows(block, part, rows))]
            except LimitExceeded:
                raise
            except QueryFailed:
                if len(postponed) + 1 == len(pending):
                    raise
                postponed.append(part)
        pending = postponed
    return rows


def ordered(parts: Sequence[Predicate]) -> list[Predicate]:
    """The parts in order of evaluation: those that call user functions last, by their rank."""
    costly = [part for part in parts if calls_functions(part)]
    if len(costly) < 2:
        return list(parts)
    return [part for part in parts if part not in costly] + sorted(costly, key=lambda part: rank(profile_of(part)))


def profile_of(part: Predicate) -> Profile:
    """What was observed of a part that calls user functions."""
    if isinstance(part, Opaque):
        return factors.profile(part.sql)
    assert isinstance(part, AllOf | AnyOf)
    profiles = [profile_of(inner) for inner in part.parts if calls_functions(inner)]
    # Its parts may each be evaluated on all rows.
    return Profile(max(profile.pass_rate for profile in profiles), sum(profile.cost for profile in profiles))


def _all_of(parts: Sequence[Predicate], block: Block) -> Mask:
    mask = np.zeros(block.rows, np.bool_)
    mask[narrow(parts, block, np.arange(block.rows))] = True
    return mask


def _any_of(parts: Sequence[Predicate], block: Block) -> Mask:
    mask = np.zeros(block.rows, np.bool_)
    pending = list(parts)
    while pending:
        postponed: list[Predicate] = []
        for part in pending:
            rows = np.flatnonzero(~mask)
            if not len(rows):
                return mask
            try:
                mask[rows[holds(part, _take_rows(block, part, rows))]] = True
            except LimitExceeded:
                raise
            except QueryFailed:
                if len(postponed) + 1 == len(pending):
                    raise
                postponed.append(part)
        pending = postponed
    return mask


def _take_rows(block: Block, predicate: Predicate, rows: npt.NDArray[Any]) -> Block:
    """A block of these rows only, with the columns that the predicate uses."""
    if len(rows) == block.rows:
        return block
    names = sorted(columns_of(predicate)) or block.columns.schema.names[:1]
    kind = pa.uint16() if rows.dtype == np.uint16 else pa.int64()
    indices = pa.Array.from_buffers(kind, len(rows), [None, pa.py_buffer(rows)])
    return Block(block.columns.select(names).take(indices))


def _not_null(mask: Mask, block: Block, name: str) -> Mask:
    nulls = block.nulls(name)
    return mask & ~nulls if nulls.size else mask


def _opaque(factor: Opaque, block: Block) -> Mask:
    names = list(factor.columns) or block.columns.schema.names[:1]
    began = perf_counter_ns()
    answer = opaque.evaluate(factor, block.columns.select(names))
    mask = truths_of(answer.is_valid()) & truths_of(answer)
    if factor.functions:
        factors.add(factor.sql, block.rows, int(np.count_nonzero(mask)), perf_counter_ns() - began)
    return mask


@lru_cache(maxsize=4096)
def _compiled(predicate: Within, kind: pa.DataType) -> QueryRun:
    return compile_clauses([0], [(predicate,)], pa.schema([(predicate.column, kind)]))


def _within_index(predicate: Within, block: Block) -> Mask:
    run = _compiled(predicate, block.column(predicate.column).type)
    arrays = run.arrays
    ranks = np.empty(len(arrays.high), np.int32)
    keys = (arrays.high, arrays.low, arrays.text_start, arrays.text)
    cut_ranks(block.table(run.names).entries, arrays.cut_start, *keys, ranks)
    perm = block.indexed(predicate.column).perm
    mask = np.zeros(block.rows, np.bool_)
    for low, high in zip(arrays.range_low.tolist(), arrays.range_high.tolist(), strict=True):
        mask[perm[ranks[low] : ranks[high]]] = True
    return mask


def _within(predicate: Within, block: Block) -> Mask:
    column = block.column(predicate.column)
    encoding = encoding_of(column.type)
    mask = np.zeros(block.rows, np.bool_)
    for interval in predicate.intervals:
        low, high = ends_of(encoding, interval)
        if low is Edge.TOP or high is Edge.BOTTOM:
            continue
        inside = np.ones(block.rows, np.bool_)
        if low is not Edge.BOTTOM:
            inside &= _not_below(encoding, block, predicate.column, low)
        if high is not Edge.TOP:
            inside &= ~_not_below(encoding, block, predicate.column, high)
        mask |= inside
    return mask


def _not_below(encoding: Encoding, block: Block, name: str, cut: Cut) -> Mask:
    """Which rows are not below a cut point; undefined for NULL."""
    mask: Mask
    assert not isinstance(cut, Edge)
    if isinstance(cut, bytes):
        answer = pc.greater_equal(block.column(name), pa.scalar(cut.decode()))
        mask = truths_of(answer)
    elif encoding is Encoding.WIDE:
        words = stored_values(block.column(name))
        lower, higher = words[:, 0].view(np.uint64), words[:, 1]
        mask = (higher > cut >> 64) | ((higher == cut >> 64) & (lower >= cut & (1 << 64) - 1))
    else:
        mask = block.keys(name) >= cut
    return mask
