"""When time alone changes an answer: the next moment at which the edge of a window passes a tuple."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tureen.closed.rules import Rules
from tureen.query import Query, RelationKind, SetOperation
from tureen.results.snapshot.segment import Segment
from tureen.results.snapshot.stream_state import StreamState
from tureen.window import Bound, Now, RowsBack, Steps, Window

UNKNOWN_DELAY = 1_000_000
"""After how many microseconds to look again, where the next moment is not computed."""


def next_edge(state: StreamState, window: Window, now: int, horizon: int | None) -> int | None:
    """The earliest NOW after `now` at which another tuple is in a window, or one no longer; None if there is none."""
    edges = [*_begin_edges(state, window.begin, now), *_end_edges(state, window, now)]
    if horizon is not None and state.stream.last_time is not None and state.stream.last_time > now:
        # The horizon moves with time while the stream has tuples of the future.
        edges.append(now + UNKNOWN_DELAY)
    return min(edges, default=None)


def last_step_end(steps: Steps, now: int) -> int:
    """The end of the last step that is over at `now`."""
    return steps.origin + last_step_before(steps, now) * steps.slide + steps.width


def last_step_before(steps: Steps, now: int) -> int:
    """The number of the last step that is over at `now`."""
    return (now - steps.width - steps.origin) // steps.slide


def final_step_end(steps: Steps, now: int, rules: Rules) -> int:
    """The end of the last step that is final at `now`: tuples may come until the declared lateness after its end."""
    return last_step_end(steps, now - (rules.lateness or 0))


def next_step_end(steps: Steps, now: int) -> int:
    """The earliest NOW after `now` at which another step is over."""
    return last_step_end(steps, now) + steps.slide


def needs_polling(query: Query) -> bool:
    """Whether an answer may change at moments that `next_edge` and `next_step_end` do not tell."""
    return any(
        isinstance(entry.block, SetOperation)
        or (isinstance(entry.block, Query) and (entry.block.steps is not None or entry.block.uses_now))
        for entry in query.inputs
        if entry.kind is RelationKind.BLOCK
    )


def _begin_edges(state: StreamState, begin: Bound | None, now: int) -> Iterator[int]:
    if not isinstance(begin, Now):
        return
    first = _first_time(state.segments, begin.at(now), inclusive=True)
    if first is None:
        return
    yield now + UNKNOWN_DELAY if begin.months else first - begin.micros + 1


def _end_edges(state: StreamState, window: Window, now: int) -> Iterator[int]:
    end = window.end
    if isinstance(window.begin, RowsBack) or isinstance(end, RowsBack):
        # Rows are counted back from NOW.
        end = Now()
    if not isinstance(end, Now):
        return
    following = _first_time(state.segments, end.at(now), inclusive=False)
    if following is None:
        return
    yield now + UNKNOWN_DELAY if end.months else following - end.micros


def _first_time(segments: Sequence[Segment], time: int, *, inclusive: bool) -> int | None:
    """The earliest time of a tuple after a time; with `inclusive`, at or after it."""
    times = []
    for segment in segments:
        before = segment.rows_before(time, inclusive=not inclusive)
        if before == 0:
            times.append(segment.min_time)
        elif before < segment.rows:
            times.append(int(segment.times(before, before + 1)[0]))
    return min(times, default=None)
