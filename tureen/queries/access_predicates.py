"""Access predicates: clauses that are reached by the constant of an equality, instead of being visited.

Where a million clauses ask for `key = c AND v > t`, a tuple concerns only those of its own key. They are kept in
*buckets*, one for each constant. What a tuple's key does not reach costs nothing. This is CACQ's grouped filter (§2.2)
for equalities, on the side of the queries; the sorted blocks are the same on the side of the data.
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
"""A column has buckets if the clauses have at least so many constants for it: a few keys have many rows each."""

MOST_PARTNERS = 256
"""A derived factor of more clauses than these is evaluated for all tuples: most of them ask for most."""


@dataclass(frozen=True, eq=False)
class AccessIndex(Typed):
    """Which clauses are reached by which key, and what is left to be visited.

    The access columns are `column`; the `a`-th has the buckets `column_start[a]` to `column_start[a + 1]`, whose cut
    points `bucket_cut` ascend: a tuple is in a bucket if it stands between that cut point and the next. Bucket `b` has
    the members from `bucket_start[2 * b]`, of which those from `bucket_start[2 * b + 1]` on have a *residual*: an
    interval of the column `residual[a]`, from `first` to `last` inclusive, by which they are sorted. With a `flip` of
    -1 all bits of values and of ends are inverted, so that intervals that have only an upper end are sorted by that.
    No `last` at all means that no interval has a second end. A member is the position of its clause, inverted if the
    clause has more factors than the equality and the residual.

    The clauses that no key reaches are `visited`; they use the factors `factor`, and these the cut points `cut`, from
    `cut_start[c]` on those of column `c`. Factors beside a derived one are there too: they say who is asked about it.
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
        """Choose each clause's access and lay the buckets out."""
        factors = _Factors(arrays, encodings)
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
        whole = {name: np.concatenate(found) if found else np.empty(0, np.int64) for name, found in parts.items()}
        last = whole["last"] if np.any(whole["last"] != GREATEST_KEY) else np.empty(0, np.int64)
        visited = np.flatnonzero(key_of < 0)
        factor, cut = _uses(arrays, visited)
        return typed(
            cls,
            {
                "column": columns,
                "residual": residuals,
                "flip": flips,
                "column_start": column_start,
                "bucket_cut": whole["cuts"],
                "bucket_start": np.append(whole["starts"], total),
                "member": whole["members"],
                "first": whole["first"],
                "last": last,
                "visited": visited,
                "factor": factor,
                "cut": cut,
                "cut_start": np.searchsorted(cut, arrays.cut_start),
            },
        )


class _Factors:
    """For each range factor its column, whether it is one interval, and the cut points of that."""

    def __init__(self, arrays: Arrays, encodings: Sequence[Encoding]) -> None:
        self.column = arrays.factor_column
        single = np.diff(arrays.factor_start) == 1
        self.low, self.high = np.zeros(len(single), np.int32), np.zeros(len(single), np.int32)
        places = arrays.factor_start[:-1][single]
        self.low[single], self.high[single] = arrays.range_low[places], arrays.range_high[places]
        self.bottom = arrays.cut_start[:-1][self.column]
        self.top = arrays.cut_start[1:][self.column] - 2
        # An equality stands between a key and the next, so there is no cut point within it.
        inner = (self.low > self.bottom) & (self.high < self.top)
        self.is_key = single & inner & (self.high == self.low + 1)
        numeric = np.array([one in (Encoding.INTEGER, Encoding.FLOAT) for one in encodings], np.bool_)[self.column]
        some = (self.low < self.top) & (self.high > self.bottom) & (self.high <= self.top)
        self.is_interval = single & numeric & some


def _keys(arrays: Arrays, factors: _Factors, least_keys: int) -> tuple[npt.NDArray[np.int64], list[int]]:
    """For each clause the factor whose key reaches it, or -1; and the access columns, most keys first."""
    key_of = np.full(len(arrays.ids), -1, np.int64)
    clause, factor = _pairs(arrays, np.arange(len(arrays.ids)))
    mine = factors.is_key[factor]
    clause, factor = clause[mine], factor[mine]
    column = factors.column[factor]
    sizes = np.zeros(len(arrays.cut_start) - 1, np.int64)
    for one in np.unique(column).tolist():
        sizes[one] = np.count_nonzero(np.bincount(factors.low[factor[column == one]] - arrays.cut_start[one]))
    columns = []
    for one in np.argsort(-sizes, kind="stable").tolist():
        if sizes[one] >= max(least_keys, 1):
            mine = (column == one) & (key_of[clause] < 0)
            if mine.any():
                key_of[clause[mine]] = factor[mine]
                columns.append(one)
    return key_of, columns


def _pairs(arrays: Arrays, clauses: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Clauses and their range factors, a pair for each."""
    clause = np.repeat(clauses, np.diff(arrays.clause_start)[clauses])
    factor = arrays.clause_factor[spread(arrays.clause_start, clauses)]
    known = factor < len(arrays.factor_column)
    return clause[known], factor[known]


def _residual(
    arrays: Arrays, factors: _Factors, key_of: npt.NDArray[Any], chosen: npt.NDArray[Any]
) -> tuple[int, int, npt.NDArray[np.int64]]:
    """The column of which most of the chosen clauses want an interval, its flip, and the factor of each, or -1."""
    of_clause = np.full(len(arrays.ids), -1, np.int64)
    clause, factor = _pairs(arrays, chosen)
    mine = factors.is_interval[factor] & (factor != key_of[clause])
    clause, factor = clause[mine], factor[mine]
    if not len(factor):
        return -1, 0, of_clause[chosen]
    column = int(np.argmax(np.bincount(factors.column[factor])))
    mine = factors.column[factor] == column
    of_clause[clause[mine]] = factor[mine]
    found = of_clause[chosen]
    some = found[found >= 0]
    lower = np.count_nonzero(factors.low[some] > factors.bottom[some])
    upper = np.count_nonzero(factors.high[some] < factors.top[some])
    return column, -1 if upper > lower else 0, found


def _buckets(
    arrays: Arrays,
    factors: _Factors,
    key_of: npt.NDArray[Any],
    chosen: npt.NDArray[Any],
    residual: npt.NDArray[np.int64],
    flip: int,
) -> tuple[npt.NDArray[Any], ...]:
    """The cut points of a column's buckets, where their two parts start, and all members with their intervals."""
    has = residual >= 0
    low, high = factors.low[residual], factors.high[residual]
    below = np.where(has & (low > factors.bottom[residual]), arrays.high[low], LEAST_KEY)
    upto = np.where(has & (high < factors.top[residual]), arrays.high[high] - 1, GREATEST_KEY)
    first, last = (~upto, ~below) if flip else (below, upto)
    part = 2 * factors.low[key_of[chosen]].astype(np.int64) + has
    order = np.lexsort((first, part))
    part = part[order]
    cuts = np.unique(part >> 1)
    starts = np.searchsorted(part, np.stack((2 * cuts, 2 * cuts + 1), axis=1).ravel())
    more = np.diff(arrays.clause_start)[chosen] > 1 + has
    members = np.where(more, ~chosen, chosen)
    return cuts, starts, members[order], first[order], last[order]


def _uses(arrays: Arrays, visited: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The factors and cut points that column-major matching looks at."""
    ranges = len(arrays.factor_column)
    derived = arrays.clause_factor - ranges
    users = np.bincount(derived[derived >= 0])
    asked = np.flatnonzero(
        (derived >= 0) & (users <= MOST_PARTNERS)[np.maximum(derived, 0)] if len(users) else derived >= 0
    )
    partners = np.searchsorted(arrays.clause_start, asked, side="right") - 1
    marked = np.zeros(ranges, np.bool_)
    for clauses in (visited, partners):
        marked[_pairs(arrays, clauses)[1]] = True
    factor = np.flatnonzero(marked)
    return factor, cuts_of(arrays, factor)


def cuts_of(arrays: Arrays, factor: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The cut points of some factors, with the edges of all columns, ascending."""
    marked = np.zeros(len(arrays.high), np.bool_)
    places = spread(arrays.factor_start, factor)
    marked[arrays.range_low[places]] = True
    marked[arrays.range_high[places]] = True
    marked[arrays.cut_start[:-1]] = True
    marked[arrays.cut_start[1:] - 1] = True
    marked[arrays.cut_start[1:] - 2] = True
    return np.flatnonzero(marked)
