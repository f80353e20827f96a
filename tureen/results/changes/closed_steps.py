"""Closed steps: the rows of the steps that are over and were not read before.

A step is closed when NOW has passed its end. Its rows are read once, so that tuples which arrive later for a step that
was read, or for one before it, change nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tureen.errors import Unsupported
from tureen.query import Query
from tureen.results.rows.ranges import Range, ranges_of
from tureen.results.rows.ready import Ready
from tureen.results.rows.selection import Selection
from tureen.results.rows.stepping import Stepping
from tureen.results.snapshot.stream_state import StreamState
from tureen.window import At, Span, Steps, Window

AT_ONCE = 1 << 20
"""The number of tuples after which no further step is read at once."""


@dataclass(frozen=True)
class ClosedSteps:
    """The rows of closed steps, and the number of the last step that has a tuple."""

    rows: pa.Table
    last: int | None
    next_id: int = 0
    """The id of the next tuple that they do not contain."""


_PROGRESS = "steps."
_OFFSET = 1 << 62
"""Makes the numbers of steps positive, so that their texts compare by age."""


def step_progress(last: int) -> str:
    """The text of a derived stream's progress after a step.

    >>> last_step_of(step_progress(-7))
    -7
    """
    return f"{_PROGRESS}{last + _OFFSET:020d}"


def is_step_progress(text: str) -> bool:
    """Whether the progress of a derived stream is a step."""
    return text.startswith(_PROGRESS)


def last_step_of(progress: str) -> int | None:
    """The last step that was read; None before the first one."""
    return int(progress.removeprefix(_PROGRESS)) - _OFFSET if progress else None


SelectSteps = Callable[[StreamState, Span], Selection]
"""Selects a query's tuples in the whole steps of a span at NOW."""


def check_has_steps(query: Query) -> None:
    """Raise for a query whose closed steps cannot be read one after the other."""
    assert query.steps is not None
    if query.joins:
        raise Unsupported("steps over a join have no changes", hint="derive a stream from the join, and one from that")
    if query.steps.rows:
        raise Unsupported("steps of rows have no changes", hint="use steps of time, such as [TUMBLE 1 MINUTE]")
    if query.steps.partial:
        raise Unsupported("steps with EMIT PARTIAL have no changes", hint="leave out EMIT PARTIAL")
    if query.overs or query.finishes or query.uses_now:
        raise Unsupported(
            "steps with window functions, DISTINCT, ORDER BY, LIMIT or NOW have no changes", hint="leave them out"
        )


def closed_steps(
    ready: Ready,
    state: StreamState,
    select: SelectSteps,
    rows_of: Callable[[Selection, Ready], pa.Table | pa.RecordBatch],
    after: int | None,
) -> ClosedSteps:
    """The rows of the steps after that number that are over, or of the first of them if they have many tuples."""
    steps = ready.query.steps
    assert steps is not None
    span = _constant_bounds(ready.query.stream.window)
    if after is not None:
        begin = steps.origin + (after + 1) * steps.slide
        span = Span(begin if span.begin is None else max(span.begin, begin), span.end)
    for selection in _selections(state, select, span):
        # A segment is in order of time. Mostly, all new tuples are in steps that are not over.
        latest = [int(hit.segment.times_at(hit.positions()[-1:])[0]) for hit in selection.matches().hits]
        if latest:
            assert selection.stepping is not None
            last = min(selection.stepping.last, (max(latest) - steps.origin) // steps.slide)
            return ClosedSteps(pa.table(ready.finish(rows_of(selection, ready))), last, state.stream.next_id)
    return ClosedSteps(pa.table({}), after)


def _selections(state: StreamState, select: SelectSteps, span: Span) -> Iterator[Selection]:
    """The tuples in closed steps of a span, in parts of whole steps and of about `AT_ONCE` tuples."""
    while True:
        selection = select(state, span)
        stepping = selection.stepping
        assert stepping is not None
        cut = _cut(state, selection.ranges, stepping, span)
        if cut >= stepping.last:
            yield selection
            return
        steps = stepping.steps
        yield select(state, replace(span, end=_end_of(steps, cut)))
        span = replace(span, begin=steps.origin + (cut + 1) * steps.slide)


def _cut(state: StreamState, ranges: Sequence[Range], stepping: Stepping, span: Span) -> int:
    """The last step of those that have no more than `AT_ONCE` tuples together, or the first that has any."""
    if stepping.first >= stepping.last or sum(last - first for first, last in ranges) <= AT_ONCE:
        return stepping.last
    steps = stepping.steps
    earliest = min(
        int(segment.times_at(np.array([first]))[0])
        for segment, (first, last) in zip(state.segments, ranges, strict=True)
        if last > first
    )

    def tuples_to(step: int) -> int:
        within = ranges_of(state.segments, replace(span, end=_end_of(steps, step)), None)
        return sum(last - first for first, last in within)

    first_step = max(stepping.first, (earliest - steps.width - steps.origin) // steps.slide + 1)
    candidates = range(first_step, stepping.last + 1)
    return candidates[max(0, bisect_right(candidates, AT_ONCE, key=tuples_to) - 1)]


def _end_of(steps: Steps, number: int) -> int:
    """The time of the last instant of a step."""
    return steps.origin + number * steps.slide + steps.width - 1


def _constant_bounds(window: Window) -> Span:
    """The bounds of a window that do not move: a step that was in the window once has been a change."""
    return Span(
        window.begin.micros if isinstance(window.begin, At) else None,
        window.end.micros if isinstance(window.end, At) else None,
    )
