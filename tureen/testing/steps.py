"""Step windows: which tuples belong to which step, and which steps are whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from tureen.testing.tuples import OracleStream, Tuple
from tureen.window import Span, Steps, from_micros


@dataclass
class Step:
    """A step and the tuples of the window in it, before WHERE, by time and then arrival."""

    number: int
    start: int
    """Its first instant, or the number of its first tuple."""
    tuples: list[Tuple] = field(default_factory=list)


@dataclass(frozen=True)
class WindowView:
    """A stream, its window at NOW, and the tuples in it."""

    stream: OracleStream
    span: Span
    now: int
    wall: int
    window: Sequence[Tuple]


def steps_of(steps: Steps, view: WindowView) -> list[Step]:
    """The steps of an answer, in their order."""
    locations = _locations(steps, view.stream)
    by_number: dict[int, Step] = {}
    for tuple_ in view.window:
        for number in _covering(steps, locations[tuple_.number]):
            step = by_number.setdefault(number, Step(number, steps.origin + number * steps.slide))
            step.tuples.append(tuple_)
    ascending = [by_number[number] for number in sorted(by_number)]
    if steps.partial:
        return ascending
    is_whole = _has_all_numbers if steps.rows else _has_all_times
    return [step for step in ascending if is_whole(step, steps, view)]


def bounds_of(step: Step, steps: Steps) -> tuple[datetime, datetime]:
    """A step's window_start and window_end."""
    if steps.rows:
        return from_micros(step.tuples[0].time), from_micros(step.tuples[-1].time)
    return from_micros(step.start), from_micros(step.start + steps.width)


def _locations(steps: Steps, stream: OracleStream) -> dict[int, int]:
    """For every tuple, by its arrival number: its time, or its number in time order for steps of rows."""
    ordered = sorted(stream.tuples, key=lambda tuple_: (tuple_.time, tuple_.number))
    return {tuple_.number: row_index if steps.rows else tuple_.time for row_index, tuple_ in enumerate(ordered)}


def _covering(steps: Steps, location: int) -> Iterator[int]:
    """The numbers of the steps that cover a time or a tuple number."""
    number = (location - steps.origin) // steps.slide
    while steps.origin + number * steps.slide + steps.width > location:
        yield number
        number -= 1


def _has_all_numbers(step: Step, steps: Steps, view: WindowView) -> bool:
    return len([tuple_ for tuple_ in step.tuples if tuple_.time <= view.now]) == steps.width


def _has_all_times(step: Step, steps: Steps, view: WindowView) -> bool:
    start, end = step.start, step.start + steps.width
    begins = [view.span.begin, view.stream.horizon(view.wall)]
    if any(begin is not None and begin > start for begin in begins):
        return False
    if view.span.end is not None and end - 1 > view.span.end:
        return False
    return end <= view.now
