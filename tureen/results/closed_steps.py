"""Closed steps: the rows of the steps that are over and were not read before.

A step is closed when NOW has passed its end. Its rows are read once, so that tuples which arrive later for a step that
was read, or for one before it, change nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from tureen.errors import Unsupported
from tureen.query import Query
from tureen.results.ready import Ready
from tureen.results.selection import Selection
from tureen.results.stream_state import StreamState
from tureen.window import At, Span, Window


@dataclass(frozen=True)
class ClosedSteps:
    """The rows of closed steps, and the number of the last step that has a tuple."""

    rows: pa.Table
    last: int | None


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
    """The rows of the steps after that number that are over."""
    steps = ready.query.steps
    assert steps is not None
    span = _constant_bounds(ready.query.stream.window)
    if after is not None:
        begin = steps.origin + (after + 1) * steps.slide
        span = Span(begin if span.begin is None else max(span.begin, begin), span.end)
    selection = select(state, span)
    assert selection.stepping is not None
    # A segment is in order of time. Mostly, all new tuples are in steps that are not over.
    latest = [int(hit.segment.times_at(hit.positions()[-1:])[0]) for hit in selection.matches().hits]
    if not latest:
        return ClosedSteps(pa.table({}), after)
    last = min(selection.stepping.last, (max(latest) - steps.origin) // steps.slide)
    return ClosedSteps(pa.table(ready.finish(rows_of(selection, ready))), last)


def _constant_bounds(window: Window) -> Span:
    """The bounds of a window that do not move: a step that was in the window once has been a change."""
    return Span(
        window.begin.micros if isinstance(window.begin, At) else None,
        window.end.micros if isinstance(window.end, At) else None,
    )
