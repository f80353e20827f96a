"""The order of joined tuples: by time, and then by the ids of their tuples."""

from __future__ import annotations

from collections.abc import Sequence
from operator import lt

import numpy as np
import numpy.typing as npt

from tureen.stems.index import address_of
from tureen.stems.sort_kernels import radix_sort, sort_ties

Numbers = npt.NDArray[np.int64]

LISTED_ROWS = 8
"""Up to this many rows, Python's sort takes less time than a few calls of numpy."""

FEW_ROWS = 512
"""Up to this many rows, one call of numpy's sort by several columns takes less time than a radix sort per column."""

MANY_TIED = 32
"""If more rows than this have the same time, all rows are sorted by each column, and not those of equal times alone."""


def order_by_time(times: Numbers, ids: Sequence[Numbers]) -> Numbers | None:
    """The permutation into the order of times, and of ids where times are equal, the first ids first.

    None if they are in order already.

    >>> order_by_time(np.array([5, 3, 3]), [np.array([0, 2, 1])]).tolist()
    [2, 1, 0]
    """
    if len(times) <= LISTED_ROWS:
        listed = times.tolist()
        if all(map(lt, listed, listed[1:])):
            return None
        keys = list(zip(listed, *(column.tolist() for column in ids), strict=True))
        return None if keys == sorted(keys) else np.array(sorted(range(len(keys)), key=keys.__getitem__))
    if _is_in_order(times, ids):
        return None
    if len(times) <= FEW_ROWS:
        return np.lexsort((*reversed(ids), times))
    order = np.arange(len(times))
    # A copy, which receives the times in order.
    in_order = times.copy()
    radix_sort(in_order, order)
    columns = [np.ascontiguousarray(column, np.int64) for column in ids]
    if not sort_ties(in_order, order, np.array([address_of(column) for column in columns], np.int64), MANY_TIED):
        # Stable sorts by each column, the most significant last.
        for column in (*reversed(ids), times):
            radix_sort(column[order], order)
    return order


def _is_in_order(times: Numbers, ids: Sequence[Numbers]) -> bool:
    if (times[1:] < times[:-1]).any():
        return False
    undecided = np.flatnonzero(times[1:] == times[:-1])
    for column in ids:
        before, after = column[undecided], column[undecided + 1]
        if (after < before).any():
            return False
        undecided = undecided[after == before]
    return True
