"""The first rows of a join with LIMIT, without joining all tuples.

Rows are in order of their earliest tuple. So the rows with a tuple up to some time come before all others, and they
suffice if there are enough of them. A part of the tuples is joined first, then a larger one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from tureen.join import InnerJoin
from tureen.joining.join_evaluation import JoinEvaluation
from tureen.joining.join_input import Numbers
from tureen.joining.join_limits import JoinLimits
from tureen.joining.joined_rows import JoinedRows
from tureen.joining.row_order import earliest_times
from tureen.results.joins.join_inputs import StreamInput
from tureen.results.joins.joined import JoinedMatches
from tureen.results.rows.gather import StreamMatches
from tureen.results.rows.placed_tuples import placed_by_id
from tureen.results.snapshot.segment import Hits
from tureen.stems.join_run import JoinedTuples, concatenated

MANY_TUPLES = 1 << 15
"""The least number of tuples for which a part of them is tried first: fewer are joined in a millisecond or two."""

PARTS = (64, 8)
"""The parts of the tuples that are joined before all are: one in 64, then one in 8."""

_SAMPLE = 256


def first_joined(
    inputs: Sequence[StreamInput], join: InnerJoin, now: int, limits: JoinLimits, count: int
) -> JoinedMatches | None:
    """The first `count` rows of a join of streams; None if all tuples have to be joined, or are few."""
    size = sum(map(len, inputs))
    if size < MANY_TUPLES:
        return None
    for part in PARTS:
        parts = [_divided(entry.matches, _time_after(inputs, size // part)) for entry in inputs]
        tuples = [
            _joined(_inputs(inputs, parts, number), join, now, limits)
            for number, (early, _) in enumerate(parts)
            if len(early)
        ]
        joined = concatenated(len(inputs), tuples)
        if len(joined) >= count:
            first = joined.in_order_of(range(len(inputs))).take(slice(0, count))
            return _matches(inputs, first)
    return None


def _time_after(inputs: Sequence[StreamInput], count: int) -> int:
    """A time up to which the inputs have about `count` tuples together, estimated from a sample."""
    times, weights = [], []
    for entry in inputs:
        rows = np.unique(np.linspace(0, len(entry) - 1, min(_SAMPLE, len(entry))).astype(np.int64))
        times.append(entry.times_at(rows))
        weights.append(np.full(len(rows), len(entry) / max(len(rows), 1)))
    all_times, all_weights = np.concatenate(times), np.concatenate(weights)
    order = np.argsort(all_times)
    before = np.searchsorted(np.cumsum(all_weights[order]), count)
    return int(all_times[order[min(int(before), len(order) - 1)]])


def _divided(matches: StreamMatches, time: int) -> tuple[StreamMatches, StreamMatches]:
    """The tuples up to a time, and those after it."""
    early, late = [], []
    for hit in matches.hits:
        count = _hits_before(hit, hit.segment.rows_before(time, inclusive=True))
        early.append(Hits(hit.segment, hit.run, hit.rows[:count], np.minimum(hit.starts, count)))
        late.append(Hits(hit.segment, hit.run, hit.rows[count:], np.maximum(hit.starts - count, 0)))
    with_hits = ([hit for hit in hits if len(hit.rows)] for hits in (early, late))
    first, second = (StreamMatches(matches.schema, hits) for hits in with_hits)
    return first, second


def _hits_before(hit: Hits, position: int) -> int:
    """The number of a segment's hits before a position."""
    block = bisect_right(hit.run.starts, position) - 1
    if block >= len(hit.run.blocks):
        return len(hit.rows)
    begin, end = hit.starts[block], hit.starts[block + 1]
    return int(begin + np.searchsorted(hit.rows[begin:end], position - hit.run.starts[block]))


def _inputs(
    inputs: Sequence[StreamInput], parts: Sequence[tuple[StreamMatches, StreamMatches]], number: int
) -> list[StreamInput]:
    """The early tuples of an input, with the late ones of those before it: so each early row occurs once."""
    return [
        entry.of_part(parts[other][0] if other == number else parts[other][1]) if other <= number else entry
        for other, entry in enumerate(inputs)
    ]


def _joined(inputs: Sequence[StreamInput], join: InnerJoin, now: int, limits: JoinLimits) -> JoinedTuples:
    rows = JoinEvaluation(inputs, now, limits).rows(join)
    ids = [entry.ids_at(rows.rows[number]) for number, entry in enumerate(inputs)]
    return JoinedTuples(ids, earliest_times(inputs, rows))


def _matches(inputs: Sequence[StreamInput], tuples: JoinedTuples) -> JoinedMatches:
    numbers: Numbers = np.arange(len(tuples))
    placed = [
        placed_by_id(entry.matches.schema, [hit.segment for hit in entry.matches.hits], ids)
        for entry, ids in zip(inputs, tuples.ids, strict=True)
    ]
    return JoinedMatches(placed, JoinedRows(dict.fromkeys(range(len(inputs)), numbers), len(tuples)), tuples.times)
