"""The order of joined tuples: by time, and then by the ids of their tuples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]

SAMPLE = 1024
"""How many times are compared with each other to estimate whether many are equal."""

FEW_TIES = 16
"""Few times are equal if fewer than one in this many of the sample equals another one."""


def order_by_time(times: Numbers, ids: Sequence[Numbers]) -> Numbers | None:
    """The permutation into the order of times, and of ids where times are equal, the first ids first.

    None if they are in order already. If few times are equal, one sort by time and one of the tuples with equal times
    take a fraction of the time of sorting by all columns.

    >>> order_by_time(np.array([5, 3, 3]), [np.array([0, 2, 1])]).tolist()
    [2, 1, 0]
    """
    if _is_in_order(times, ids):
        return None
    if _has_many_ties(times):
        return np.lexsort((*reversed(ids), times))
    order = np.argsort(times)
    by_time = times[order]
    ties = np.flatnonzero(by_time[1:] == by_time[:-1])
    if len(ties):
        # All tuples whose time equals that of the one before or after them.
        tied = np.union1d(ties, ties + 1)
        rows = order[tied]
        order[tied] = rows[np.lexsort((*(column[rows] for column in reversed(ids)), times[rows]))]
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


def _has_many_ties(times: Numbers) -> bool:
    sample = np.sort(times[:: max(1, len(times) // SAMPLE)])
    return int((sample[1:] == sample[:-1]).sum()) * FEW_TIES > len(sample)
