"""A stream as it was at an earlier position: without the tuples that arrived later."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from tureen.results.snapshot.segment import Segment
from tureen.results.snapshot.stream_state import StreamState
from tureen.schema import Schema
from tureen.stems.run import in_memory, sort_by_time
from tureen.stems.stored import NTH


def state_up_to(state: StreamState, next_id: int) -> StreamState:
    """A stream without the tuples from that id on.

    A run that was merged since contains older and newer tuples. The older ones are copied.
    """
    if next_id >= state.stream.next_id:
        return state
    segments = list(_segments_up_to(state, next_id))
    return replace(state, segments=segments, runs=[], stream=replace(state.stream, next_id=next_id))


def _segments_up_to(state: StreamState, next_id: int) -> Iterator[Segment]:
    ends = [*(segment.first_id for segment in state.segments), state.stream.next_id][1:]
    for segment, end in zip(state.segments, ends, strict=True):
        if end <= next_id:
            yield segment
        elif segment.first_id < next_id:
            yield from _older(state.stream.schema, segment, next_id)


def _older(schema: Schema, segment: Segment, next_id: int) -> Iterator[Segment]:
    """The tuples of a segment before an id, as a segment without an index."""
    tuples = segment.run().table(schema, 0)
    older = tuples.filter(pa.array(tuples.column(NTH).to_numpy() < next_id - segment.first_id))
    if len(older) == len(tuples):
        yield segment
    elif len(older):
        copied = sort_by_time(schema, older)
        run = in_memory(schema, copied)
        # No other segment has such a key: ids of runs are positive, and keys of pending rows have two numbers.
        key = (*segment.key, -1, next_id)
        yield Segment(key, segment.first_id, len(older), copied.min_time, copied.max_time, lambda: run, list, None)


def latest_time(state: StreamState, next_id: int) -> int | None:
    """The highest time of the tuples before an id; None without any.

    The highest time at the home of a replica is known only for the current moment, so it is not used.
    """
    if next_id >= state.stream.next_id and state.stream.replica_of is None:
        return state.stream.last_time
    return max((segment.max_time for segment in _segments_up_to(state, next_id)), default=None)


def has_all_tuples(state: StreamState, begin: int | None, horizon: int | None) -> bool:
    """Whether no tuple from a time on has expired; None is the beginning of the stream."""
    if horizon is None or (begin is not None and begin >= horizon):
        return True
    retained = sum(segment.rows - segment.rows_before(horizon, inclusive=False) for segment in state.segments)
    return retained == state.stream.next_id
