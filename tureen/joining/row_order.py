"""The order of joined rows: by the time of their earliest tuple, and then by the ids of their tuples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tureen.joining.join_input import JoinInput, Numbers
from tureen.joining.joined_rows import JoinedRows
from tureen.stems.tuple_order import order_by_time

WITHOUT_TIME = np.iinfo(np.int64).min
"""The time of rows that contain no tuple of a stream: before all others."""

_NEVER = np.iinfo(np.int64).max


def order_of(inputs: Sequence[JoinInput], rows: JoinedRows) -> Numbers | None:
    """The numbers of joined rows, in order; ids are compared in the order of FROM. None if they are in order."""
    if len(rows) < 2:
        return None
    ids = [ids_or_first(inputs[number], of_input) for number, of_input in sorted(rows.rows.items())]
    return order_by_time(earliest_times(inputs, rows), ids)


def earliest_times(inputs: Sequence[JoinInput], rows: JoinedRows) -> Numbers:
    """The earliest time of each row; `WITHOUT_TIME` for rows that contain no tuple of a stream."""
    earliest: Numbers | None = None
    for number, numbers in rows.rows.items():
        exists = numbers >= 0
        is_whole = bool(exists.all())
        times = inputs[number].times_at(numbers if is_whole else numbers[exists])
        if times is not None:
            if not is_whole:
                of_existing, times = times, np.full(len(rows), _NEVER)
                times[exists] = of_existing
            earliest = times if earliest is None else np.minimum(earliest, times)
    if earliest is None:
        return np.full(len(rows), WITHOUT_TIME)
    return np.where(earliest == _NEVER, WITHOUT_TIME, earliest)


def ids_or_first(source: JoinInput, rows: Numbers) -> Numbers:
    """The ids of rows; a row of NULLs comes before all others."""
    exists = rows >= 0
    if exists.all():
        return source.ids_at(rows)
    ids = np.full(len(rows), -1)
    ids[exists] = source.ids_at(rows[exists])
    return ids
