"""The joined tuples of new tuples: of each stream the new ones with the old ones of the streams before it, and with all
of the streams after it. So each combination with a new tuple occurs once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from tureen.joining.join_evaluation import JoinEvaluation
from tureen.joining.join_input import Numbers
from tureen.joining.join_limits import DEFAULT_LIMITS, JoinLimits
from tureen.results.joins.index_join import Joined, joined_by_indexes
from tureen.results.joins.join_inputs import Ids, StreamInput
from tureen.stems.join_run import JoinedTuples, concatenated
from tureen.stream_join import StreamJoin

InputWithin = Callable[[int, Ids, StreamInput | None], StreamInput]
"""The tuples of one of a join's streams with ids in an interval, as far as they can be partners of certain tuples."""


def id_limits(progress: Sequence[int], ends: Sequence[int]) -> list[tuple[int, list[Ids]]]:
    """For each stream with new tuples its index, and the ids of the tuples of all streams that these are joined with.

    >>> id_limits([5, 7], [6, 8])
    [(0, [(5, 6), (0, 8)]), (1, [(0, 5), (7, 8)])]
    """
    return [
        (
            new,
            [
                (progress[index] if index == new else 0, progress[index] if index < new else end)
                for index, end in enumerate(ends)
            ],
        )
        for new in range(len(ends))
        if ends[new] > progress[new]
    ]


def join_new(
    join: StreamJoin,
    new: int,
    limits: Sequence[Ids],
    input_within: InputWithin,
    join_limits: JoinLimits = DEFAULT_LIMITS,
    reach: int | None = None,
) -> JoinedTuples:
    """The joined tuples within limits, of which those of the stream `new` are new.

    With a reach, only those whose times differ at most by that.
    """
    tuples = input_within(new, limits[new], None)
    if not len(tuples):
        return concatenated(len(join.streams), [])
    inputs = [tuples if index == new else input_within(index, ids, tuples) for index, ids in enumerate(limits)]
    joined: Iterable[Joined] | None = joined_by_indexes(join.tree, inputs, join_limits)
    if joined is None:
        joined = [_evaluated(join, inputs, join_limits)]
    return concatenated(len(inputs), [_within(ids, times, reach) for ids, times in joined])


def _evaluated(join: StreamJoin, inputs: Sequence[StreamInput], limits: JoinLimits) -> Joined:
    """The ids and times of joined tuples."""
    rows = JoinEvaluation(inputs, 0, limits).rows(join.tree)
    of_inputs = [(entry, rows.rows[index]) for index, entry in enumerate(inputs)]
    ids = [entry.ids_at(numbers) for entry, numbers in of_inputs]
    return ids, [entry.times_at(numbers) for entry, numbers in of_inputs]


def _within(ids: Sequence[Numbers], times: Sequence[Numbers], reach: int | None) -> JoinedTuples:
    joined = JoinedTuples(ids, np.minimum.reduce(times))
    if reach is None:
        return joined
    return joined.take(np.maximum.reduce(times) - joined.times <= reach)
