"""Partners: for each row of the left side, the rows of the right side that satisfy comparisons.

The right rows are grouped by the columns of all equalities, and sorted within a group by the column of an inequality
(PSoup §5.4: many tuples probe together). So the partners of a row are an interval, whose size is known before any pair
is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tureen.joining.join_input import Flags, Numbers
from tureen.joining.join_keys import KeyColumn
from tureen.joining.partner_kernels import fill_pairs, group_partners, mark_partners, narrow_range

PAIRS_AT_ONCE = 1 << 21
"""The number of pairs that are written before further conditions are evaluated on them."""


MARKED_ROWS = 1 << 15
"""From that many rows on, those that have no partner are sorted out before the others are hashed."""


class Compared(NamedTuple):
    """A comparison `left op right` of two sides, as keys."""

    op: str
    left: KeyColumn
    right: KeyColumn


@dataclass(frozen=True)
class Partners:
    """For each left row an interval of right rows, which are sorted."""

    sorted_rows: Numbers
    firsts: Numbers
    lasts: Numbers

    @cached_property
    def pairs(self) -> int:
        """The number of pairs."""
        return int((self.lasts - self.firsts).sum())

    def in_parts(self) -> Iterator[tuple[Numbers, Numbers]]:
        """The pairs as left and right rows, some millions at a time, in order of the left rows."""
        if self.pairs <= PAIRS_AT_ONCE:
            yield self._part(0, len(self.firsts), self.pairs)
            return
        ends = np.cumsum(self.lasts - self.firsts)
        begin = 0
        while begin < len(ends):
            before = int(ends[begin - 1]) if begin else 0
            end = max(int(np.searchsorted(ends, before + PAIRS_AT_ONCE, side="right")), begin + 1)
            yield self._part(begin, end, int(ends[end - 1]) - before)
            begin = end

    def _part(self, begin: int, end: int, pairs: int) -> tuple[Numbers, Numbers]:
        """The pairs of an interval of left rows, of which the number is known."""
        left, right = np.empty(pairs, np.int64), np.empty(pairs, np.int64)
        fill_pairs(self.firsts, self.lasts, self.sorted_rows, begin, end, left, right)
        return left, right

    def last(self) -> Partners:
        """Of each interval the last row only."""
        return replace(self, firsts=np.maximum(self.firsts, self.lasts - 1))

    def first(self) -> Partners:
        """Of each interval the first row only."""
        return replace(self, lasts=np.minimum(self.lasts, self.firsts + 1))


def find_partners(size: int, right_size: int, equalities: Sequence[Compared], ranges: Sequence[Compared]) -> Partners:
    """The partners of `size` left rows; all `ranges` compare with the same right keys."""
    order = None
    if ranges:
        keys = ranges[0].right
        order = np.argsort(keys.values, kind="stable")
        order = order[keys.valid[order]]
    if equalities:
        sorted_rows, firsts, lasts = _grouped(equalities, order)
    else:
        sorted_rows, firsts = np.arange(right_size) if order is None else order, np.zeros(size, np.int64)
        lasts = np.full(size, len(sorted_rows))
    if ranges:
        sorted_keys = ranges[0].right.values[sorted_rows]
        for compared in ranges:
            # `left > right` bounds the right keys from above.
            is_lower, is_open = compared.op in ("<", "<="), compared.op in ("<", ">")
            narrow_range(sorted_keys, compared.left.values, compared.left.valid, firsts, lasts, is_lower, is_open)
    return Partners(sorted_rows, firsts, lasts)


def _grouped(equalities: Sequence[Compared], order: Numbers | None) -> tuple[Numbers, Numbers, Numbers]:
    """The right rows by group, and within a group in an order; and the interval of each left row."""
    left, left_valid = _lines([compared.left for compared in equalities])
    right, right_valid = _lines([compared.right for compared in equalities])
    if order is not None:
        right, right_valid = np.take(right, order, axis=1), right_valid[order]
    rows = int(np.count_nonzero(right_valid))
    if rows >= MARKED_ROWS:
        # Most rows without a partner are found by a bitmap of the other side's keys, and not hashed.
        before, (right_valid, rows) = rows, _marked(right, right_valid, left, left_valid)
        if 2 * rows <= before:
            left_valid, _ = _marked(left, left_valid, right, right_valid)
    sorted_rows = np.empty(rows, np.int64)
    firsts, lasts = np.empty(len(left_valid), np.int64), np.empty(len(left_valid), np.int64)
    group_partners(right, right_valid, left, left_valid, sorted_rows, firsts, lasts)
    return sorted_rows if order is None else order[sorted_rows], firsts, lasts


def _marked(keys: Numbers, valid: Flags, others: Numbers, others_valid: Flags) -> tuple[Flags, int]:
    """The rows that may have a partner, and how many there are."""
    marked = np.empty(len(valid), np.bool_)
    return marked, mark_partners(keys, valid, others, others_valid, marked)


def _lines(columns: Sequence[KeyColumn]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """The keys of several columns, one line each, and the rows without a NULL."""
    if len(columns) == 1:
        values = columns[0].values
        # Copied only if it cannot be written to: so one compiled form serves all lines.
        lines = values if values.flags.carray and values.dtype == np.int64 else np.array(values, np.int64)
        return lines.reshape(1, -1), columns[0].valid
    lines = np.ascontiguousarray(np.stack([keys.values for keys in columns]), np.int64)
    return lines, np.logical_and.reduce([keys.valid for keys in columns])
