"""Steps: which tuples of a window belong to which step, and which steps are whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from tureen.testing.tuples import Stream, Tuple
from tureen.window import Span, Steps, from_micros


@dataclass
class Step:
    """One step and the tuples of the window in it, before WHERE, by time and then arrival."""

    number: int
    place: int
    """Where it starts: an instant, or a tuple's number."""
    tuples: list[Tuple] = field(default_factory=list)


@dataclass(frozen=True)
class View:
    """What an invocation looks at: a stream, its window at NOW, and the tuples in it."""

    stream: Stream
    span: Span
    now: int
    wall: int
    window: Sequence[Tuple]


def steps_of(steps: Steps, view: View) -> list[Step]:
    """The steps that an answer is about, in their order."""
    places = _places(steps, view.stream)
    found: dict[int, Step] = {}
    for one in view.window:
        for number in _covering(steps, places[one.number]):
            step = found.setdefault(number, Step(number, steps.origin + number * steps.slide))
            step.tuples.append(one)
    ascending = [found[number] for number in sorted(found)]
    if steps.partial:
        return ascending
    is_whole = _has_all_numbers if steps.rows else _has_all_times
    return [step for step in ascending if is_whole(step, steps, view)]


def bounds_of(step: Step, steps: Steps) -> tuple[datetime, datetime]:
    """A step's window_start and window_end."""
    if steps.rows:
        return from_micros(step.tuples[0].time), from_micros(step.tuples[-1].time)
    return from_micros(step.place), from_micros(step.place + steps.width)


def _places(steps: Steps, stream: Stream) -> dict[int, int]:
    """The place of every tuple that there ever was, by its arrival number."""
    ordered = sorted(stream.tuples, key=lambda one: (one.time, one.number))
    return {one.number: number if steps.rows else one.time for number, one in enumerate(ordered)}


def _covering(steps: Steps, place: int) -> Iterator[int]:
    """The numbers of the steps that cover a place."""
    number = (place - steps.origin) // steps.slide
    while steps.origin + number * steps.slide + steps.width > place:
        yield number
        number -= 1


def _has_all_numbers(step: Step, steps: Steps, view: View) -> bool:
    return len([one for one in step.tuples if one.time <= view.now]) == steps.width


def _has_all_times(step: Step, steps: Steps, view: View) -> bool:
    start, end = step.place, step.place + steps.width
    begins = [view.span.begin, view.stream.horizon(view.wall)]
    if any(begin is not None and begin > start for begin in begins):
        return False
    if view.span.end is not None and end - 1 > view.span.end:
        return False
    return end <= view.now
