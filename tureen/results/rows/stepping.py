"""The steps of an answer, and the tuples that they contain.

Steps are combined from panes: intervals of the axis that divide every step evenly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd

import numpy as np
import pyarrow as pa

from tureen.aggregates.panes import covering, steps_over, stretches
from tureen.query import STEP_END, STEP_START
from tureen.results.rows.axis import Axis, Coordinates, RowAxis, TimeAxis
from tureen.results.rows.numbering import Numbering
from tureen.results.rows.ranges import Range, ranges_of
from tureen.results.snapshot.stream_state import StreamState
from tureen.window import At, Span, Steps, Window

EARLIEST, LATEST = -(1 << 60), 1 << 60
"""Bounds of step numbers that exclude no step: the tuples alone determine which steps exist."""


@dataclass(frozen=True)
class Stepping:
    """The steps of one invocation."""

    steps: Steps
    ranges: list[Range]
    """The tuples of each segment that lie in steps."""
    first: int
    last: int
    """The first and the last step of the answer."""
    axis: Axis
    held: int
    """The number of tuples in the window, in steps or not."""

    @property
    def pane(self) -> int:
        """The length of a pane."""
        return gcd(self.steps.width, self.steps.slide)

    @property
    def in_panes(self) -> tuple[int, int]:
        """The width and the slide of a step, in panes."""
        return self.steps.width // self.pane, self.steps.slide // self.pane

    def over(self, panes: Coordinates) -> Coordinates:
        """The steps of the answer that cover at least one of the panes, which ascend; without duplicates."""
        return steps_over(panes, *self.in_panes, self.first, self.last)

    def of_each(self, coordinates: Coordinates) -> tuple[Coordinates, Coordinates]:
        """For each pair of a coordinate and a step of the answer that covers it: their indexes and the steps."""
        first, last = covering(coordinates // self.pane, *self.in_panes)
        first, last = np.maximum(first, self.first), np.minimum(last, self.last)
        return stretches(first, np.maximum(last - first + 1, 0))

    def columns(self, numbers: Coordinates) -> dict[str, pa.Array]:
        """The columns with the start and the end of steps."""
        starts = numbers * self.steps.slide
        bounds = self.axis.bounds(starts, starts + self.steps.width)
        kind = pa.timestamp("us", tz="UTC")
        return {name: pa.array(times).cast(kind) for name, times in zip((STEP_START, STEP_END), bounds, strict=True)}


def steps_at(state: StreamState, steps: Steps, span: Span, now: int, horizon: int | None) -> Stepping:
    """The steps of a stream at one NOW."""
    return _by_number(state, steps, span, now, horizon) if steps.rows else _by_time(state, steps, span, now, horizon)


def _by_time(state: StreamState, steps: Steps, span: Span, now: int, horizon: int | None) -> Stepping:
    axis = TimeAxis(state.segments, state.stream.schema.time_column, steps.origin)
    ranges = ranges_of(state.segments, span, horizon)
    if steps.partial:
        return Stepping(steps, ranges, EARLIEST, LATEST, axis, _size(ranges))
    lower = max((time for time in (span.begin, horizon) if time is not None), default=None)
    first, last = whole_steps(steps, lower, span.end, now)
    within = Span(
        None if lower is None else steps.origin + first * steps.slide,
        steps.origin + last * steps.slide + steps.width - 1,
    )
    return Stepping(steps, ranges_of(state.segments, within, horizon), first, last, axis, _size(ranges))


def open_steps_at(state: StreamState, steps: Steps, window: Window, span: Span, horizon: int | None) -> Stepping:
    """The steps of a stream that start in a window, also those that are not over."""
    axis = TimeAxis(state.segments, state.stream.schema.time_column, steps.origin)
    ranges = ranges_of(state.segments, span, horizon)
    lower = max((time for time in (span.begin, horizon) if time is not None), default=None)
    first, _ = whole_steps(steps, lower, None, LATEST)
    last = LATEST
    if isinstance(window.end, At):
        last = (window.end.micros + 1 - steps.width - steps.origin) // steps.slide
    begin = None if lower is None else steps.origin + first * steps.slide
    within = ranges_of(state.segments, replace(span, begin=begin), horizon)
    return Stepping(steps, within, first, last, axis, _size(ranges))


def whole_steps(steps: Steps, begin: int | None, end: int | None, now: int) -> tuple[int, int]:
    """The first and the last step in a window that is over; with EMIT PARTIAL, all steps."""
    if steps.partial:
        return EARLIEST, LATEST
    upper = now if end is None else min(now, end + 1)
    last = (upper - steps.width - steps.origin) // steps.slide
    first = EARLIEST if begin is None else -((steps.origin - begin) // steps.slide)
    return first, last


def _by_number(state: StreamState, steps: Steps, span: Span, now: int, horizon: int | None) -> Stepping:
    stored = sum(segment.rows for segment in state.segments)
    # Expired tuples have numbers too, which precede those of all stored tuples.
    numbering = Numbering(state.segments, state.stream.next_id - stored)
    if not steps.partial:
        span = replace(span, end=now if span.end is None else min(now, span.end))
    ranges = ranges_of(state.segments, span, horizon)
    ends = [
        numbering.of(number, np.array([first, last - 1])) for number, (first, last) in enumerate(ranges) if last > first
    ]
    low = min((int(first) for first, _ in ends), default=0)
    high = max((int(last) + 1 for _, last in ends), default=0)
    axis = RowAxis(state, numbering, low, high)
    if steps.partial:
        return Stepping(steps, ranges, EARLIEST, LATEST, axis, _size(ranges))
    first, last = -(-low // steps.slide), (high - steps.width) // steps.slide
    begin, end = first * steps.slide, last * steps.slide + steps.width
    inner = [
        (numbering.rows_before(number, begin), numbering.rows_before(number, max(begin, end)))
        for number in range(len(state.segments))
    ]
    return Stepping(steps, inner, first, last, axis, _size(ranges))


def _size(ranges: Sequence[Range]) -> int:
    return sum(last - first for first, last in ranges)
