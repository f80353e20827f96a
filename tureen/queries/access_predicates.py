"""Access predicates: clauses that are reached by the constant of an equality, instead of being visited.

If a million clauses have the form `key = c AND v > t`, only those of a tuple's own key can match it. They are stored in
*buckets*, one for each constant, and a bucket that no tuple reaches costs nothing. This is CACQ's grouped filter (§2.2)
for equalities, over the constants of the queries; the sorted blocks are its dual over the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tureen.keys import GREATEST_KEY, LEAST_KEY
from tureen.queries.arrays import Arrays, Ints, Typed, spread, typed
from tureen.queries.cuts import Encoding

LEAST_KEYS = 16
"""A column gets buckets if the clauses compare it with at least this many constants: few keys have many rows each."""

MOST_PARTNERS = 256
"""A derived factor of more clauses than this is evaluated for all tuples, since most of them matter to some clause."""


@dataclass(frozen=True, eq=False)
class AccessIndex(Typed):
    """Which clauses are reached by which key, and which are visited.

    The access columns are `column`; the `a`-th has the buckets `column_start[a]` to `column_start[a + 1]`, whose cut
    points `bucket_cut` ascend: a tuple is in a bucket if it is between that cut point and the next. Bucket `b` has
    the members from `bucket_start[2 * b]`, of which those from `bucket_start[2 * b + 1]` on have a *residual*: an
    interval of the column `residual[a]`, from `first` to `last` inclusive, by which they are sorted. With a `flip` of
    -1 all bits of values and of ends are inverted, so that intervals with only an upper end are sorted by it. An empty
    `last` means that no interval has a second end. A member is the position of its clause, inverted if the clause has
    more factors than the equality and the residual.

    The clauses that no key reaches are `visited`; they use the factors `factor`, and these use the cut points `cut`, of
    which those of column `c` start at `cut_start[c]`. The partners of derived factors are included, since they decide
    for which rows a derived factor is evaluated.
    """

    column: Ints
    residual: Ints
    flip: Ints
    column_start: Ints
    bucket_cut: Ints
    bucket_start: Ints
    member: Ints
    first: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]
    visited: Ints
    factor: Ints
    cut: Ints
    cut_start: Ints

    types: ClassVar[dict[str, Any]] = {"first": np.int64, "last": np.int64}

    @classmethod
    def of(cls, arrays: Arrays, encodings: Sequence[Encoding], least_keys: int = LEAST_KEYS) -> AccessIndex:
        """Choose the access path of each clause and build the buckets."""
        factors = _RangeFactors(arrays, encodings)
        key_of, columns = _keys(arrays, factors, least_keys)
        parts: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in ("cuts", "starts", "members", "first", "last")}
        residuals, flips, column_start, total = [], [], [0], 0
        for column in columns:
            chosen = np.flatnonzero((key_of >= 0) & (factors.column[key_of] == column))
            residual, flip, of_clause = _residual(arrays, factors, key_of, chosen)
            residuals.append(residual)
            flips.append(flip)
            cuts, starts, *members = _buckets(arrays, factors, key_of, chosen, of_clause, flip)
            parts["cuts"].append(cuts)
            parts["starts"].append(starts + total)
            for name, part in zip(("members", "first", "last"), members, strict=True):
                parts[name].append(part)
            total += len(chosen)
            column_start.append(column_start[-1] + len(cuts))
        joined = {name: np.concatenate(pieces) if pieces else np.empty(0, np.int64) for name, pieces in parts.items()}
        last = joined["last"] if np.any(joined["last"] != GREATEST_KEY) else np.empty(0, np.int64)
        visited = np.flatnonzero(key_of < 0)
        factor, cut = _uses(arrays, visited)
        return typed(
            cls,
            {
                "column": columns,
                "residual": residuals,
                "flip": flips,
                "column_start": column_start,
                "bucket_cut": joined["cuts"],
                "bucket_start": np.append(joined["starts"], total),
                "member": joined["members"],
                "first": joined["first"],
                "last": last,
                "visited": visited,
                "factor": factor,
                "cut": cut,
                "cut_start": np.searchsorted(cut, arrays.cut_start),
            },
        )


class _RangeFactors:
    """For each range factor its column, whether it is a single interval, and the cut points of that."""

    def __init__(self, arrays: Arrays, encodings: Sequence[Encoding]) -> None:
        self.column = arrays.factor_column
        single = np.diff(arrays.factor_start) == 1
        self.low, self.high = np.zeros(len(single), np.int32), np.zeros(len(single), np.int32)
        intervals = arrays.factor_start[:-1][single]
        self.low[single], self.high[single] = arrays.range_low[intervals], arrays.range_high[intervals]
        self.bottom = arrays.cut_start[:-1][self.column]
        self.top = arrays.cut_start[1:][self.column] - 2
        # An equality is between a key and the next key, so it contains no other cut point.
        inner = (self.low > self.bottom) & (self.high < self.top)
        self.is_key = single & inner & (self.high == self.low + 1)
        is_number = [encoding in (Encoding.INTEGER, Encoding.FLOAT) for encoding in encodings]
        numeric = np.array(is_number, np.bool_)[self.column]
        bounded = (self.low < self.top) & (self.high > self.bottom) & (self.high <= self.top)
        self.is_interval = single & numeric & bounded


def _keys(arrays: Arrays, factors: _RangeFactors, least_keys: int) -> tuple[npt.NDArray[np.int64], list[int]]:
    """For each clause the factor whose key reaches it, or -1; and the access columns, those with most keys first."""
    key_of = np.full(len(arrays.ids), -1, np.int64)
    clause, factor = _pairs(arrays, np.arange(len(arrays.ids)))
    selected = factors.is_key[factor]
    clause, factor = clause[selected], factor[selected]
    column = factors.column[factor]
    sizes = np.zeros(len(arrays.cut_start) - 1, np.int64)
    for column_number in np.unique(column).tolist():
        keys = factors.low[factor[column == column_number]] - arrays.cut_start[column_number]
        sizes[column_number] = np.count_nonzero(np.bincount(keys))
    columns = []
    for column_number in np.argsort(-sizes, kind="stable").tolist():
        if sizes[column_number] >= max(least_keys, 1):
            selected = (column == column_number) & (key_of[clause] < 0)
            if selected.any():
                key_of[clause[selected]] = factor[selected]
                columns.append(column_number)
    return key_of, columns


def _pairs(arrays: Arrays, clauses: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The pairs of a clause and one of its range factors."""
    clause = np.repeat(clauses, np.diff(arrays.clause_start)[clauses])
    factor = arrays.clause_factor[spread(arrays.clause_start, clauses)]
    is_range = factor < len(arrays.factor_column)
    return clause[is_range], factor[is_range]


def _residual(
    arrays: Arrays, factors: _RangeFactors, key_of: npt.NDArray[Any], chosen: npt.NDArray[Any]
) -> tuple[int, int, npt.NDArray[np.int64]]:
    """The column on which most of the chosen clauses have an interval, its flip, and the factor of each or -1."""
    of_clause = np.full(len(arrays.ids), -1, np.int64)
    clause, factor = _pairs(arrays, chosen)
    selected = factors.is_interval[factor] & (factor != key_of[clause])
    clause, factor = clause[selected], factor[selected]
    if not len(factor):
        return -1, 0, of_clause[chosen]
    column = int(np.argmax(np.bincount(factors.column[factor])))
    selected = factors.column[factor] == column
    of_clause[clause[selected]] = factor[selected]
    chosen_factors = of_clause[chosen]
    intervals = chosen_factors[chosen_factors >= 0]
    lower = np.count_nonzero(factors.low[intervals] > factors.bottom[intervals])
    upper = np.count_nonzero(factors.high[intervals] < factors.top[intervals])
    return column, -1 if upper > lower else 0, chosen_factors


def _buckets(
    arrays: Arrays,
    factors: _RangeFactors,
    key_of: npt.NDArray[Any],
    chosen: npt.NDArray[Any],
    residual: npt.NDArray[np.int64],
    flip: int,
) -> tuple[npt.NDArray[Any], ...]:
    """The cut points of a column's buckets, the starts of their two parts, and all members with their intervals."""
    has_residual = residual >= 0
    low, high = factors.low[residual], factors.high[residual]
    below = np.where(has_residual & (low > factors.bottom[residual]), arrays.high[low], LEAST_KEY)
    upto = np.where(has_residual & (high < factors.top[residual]), arrays.high[high] - 1, GREATEST_KEY)
    first, last = (~upto, ~below) if flip else (below, upto)
    part = 2 * factors.low[key_of[chosen]].astype(np.int64) + has_residual
    order = np.lexsort((first, part))
    part = part[order]
    cuts = np.unique(part >> 1)
    starts = np.searchsorted(part, np.stack((2 * cuts, 2 * cuts + 1), axis=1).ravel())
    more = np.diff(arrays.clause_start)[chosen] > 1 + has_residual
    members = np.where(more, ~chosen, chosen)
    return cuts, starts, members[order], first[order], last[order]


def _uses(arrays: Arrays, visited: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The factors and cut points that column-major matching uses."""
    ranges = len(arrays.factor_column)
    derived = arrays.clause_factor - ranges
    users = np.bincount(derived[derived >= 0])
    derived_uses = np.flatnonzero(
        (derived >= 0) & (users <= MOST_PARTNERS)[np.maximum(derived, 0)] if len(users) else derived >= 0
    )
    partners = np.searchsorted(arrays.clause_start, derived_uses, side="right") - 1
    marked = np.zeros(ranges, np.bool_)
    for clauses in (visited, partners):
        marked[_pairs(arrays, clauses)[1]] = True
    factor = np.flatnonzero(marked)
    return factor, cuts_of(arrays, factor)


def cuts_of(arrays: Arrays, factor: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The cut points of the given factors, with the edges of all columns, ascending."""
    marked = np.zeros(len(arrays.high), np.bool_)
    intervals = spread(arrays.factor_start, factor)
    marked[arrays.range_low[intervals]] = True
    marked[arrays.range_high[intervals]] = True
    marked[arrays.cut_start[:-1]] = True
    marked[arrays.cut_start[1:] - 1] = True
    marked[arrays.cut_start[1:] - 2] = True
    return np.flatnonzero(marked)
