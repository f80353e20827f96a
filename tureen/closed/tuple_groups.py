"""Groups of tuples that may still arrive, and which of them are closed.

A group has certain values of some columns, and a time between two instants. It is closed if no tuple with these would
be accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.closed.closed_ranges import CodeIntervals
from tureen.closed.closed_set import BatchCodes, matching
from tureen.closed.closing_history import ClosingHistory
from tureen.closed.pattern import CodeRange, Pattern

LEAST_TIME, GREATEST_TIME = -(1 << 63), (1 << 63) - 1
"""The ends of an interval of times that is not bounded."""

Mask = npt.NDArray[np.bool_]
Times = npt.NDArray[np.int64]


class TupleGroups(NamedTuple):
    """Groups of tuples: for each the values of some columns, and the times that its tuples may have."""

    size: int
    """The number of groups."""
    values: Mapping[str, pa.Array]
    time: str | None
    """The time column; None if punctuations cannot be about instants of it."""
    first: Times
    last: Times


def closed_groups(history: ClosingHistory, groups: TupleGroups, number: int, late_before: int | None) -> Mask:
    """Which groups are closed by the punctuations before a number, and by a lateness that rejects earlier times."""
    mask: Mask = np.zeros(groups.size, np.bool_)
    if not groups.size:
        return mask
    times = closed_times(history, groups.time, number, late_before)
    mask |= times.covers(groups.first, groups.last)
    if groups.values:
        mask |= history.closes(groups.values, number)
        if groups.time is not None and groups.time in groups.values:
            mask |= times.marks_of(_micros(groups.values[groups.time])) == 0
        _add_parts_of_time(mask, history, groups, number, times)
    return mask


def closed_times(history: ClosingHistory, time: str | None, number: int, late_before: int | None) -> CodeIntervals:
    """The times that no later tuple can have."""
    times = CodeIntervals()
    if time is not None:
        for interval in history.ranges_before(time, number):
            times.add(interval, 0)
    if late_before is not None:
        times.add(CodeRange(high=late_before - 1), 0)
    return times


def least_open_time(times: CodeIntervals) -> int:
    """The earliest time that is not closed with all times before it."""
    first = next((interval for interval, _ in times.intervals()), None)
    if first is None or first.low is not None:
        return LEAST_TIME
    return GREATEST_TIME if first.high is None else int(first.high) + 1


def _add_parts_of_time(
    mask: Mask, history: ClosingHistory, groups: TupleGroups, number: int, times: CodeIntervals
) -> None:
    """Add the groups whose times are closed for their values by several patterns together."""
    batch = pa.RecordBatch.from_arrays(list(groups.values.values()), list(groups.values))
    codes = BatchCodes(history.schema, batch)
    of_groups: dict[int, list[CodeRange]] = {}
    for pattern in history.others_before(number):
        fixed = tuple((name, part) for name, part in pattern.columns if name in groups.values)
        rest = [(name, part) for name, part in pattern.columns if name not in groups.values]
        if not fixed or len(rest) != 1 or rest[0][0] != groups.time or not isinstance(rest[0][1], CodeRange):
            continue
        matched = matching(history.schema, Pattern(fixed), codes)
        for row in np.flatnonzero(matched & ~mask).tolist():
            of_groups.setdefault(row, []).append(rest[0][1])
    for row, intervals in of_groups.items():
        union = CodeIntervals()
        for interval in [*(known for known, _ in times.intervals()), *intervals]:
            union.add(interval, 0)
        mask[row] = union.covers(groups.first[row : row + 1], groups.last[row : row + 1])[0]


def _micros(times: pa.Array) -> Times:
    micros: Times = times.cast(pa.int64()).fill_null(GREATEST_TIME).to_numpy(zero_copy_only=False)
    return micros
