"""Streams as the oracle keeps them: every tuple that ever came, and which of them a window holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tureen.schema import Schema
from tureen.window import Span


@dataclass(frozen=True)
class Tuple:
    """One accepted row: its arrival number, its time, and its kept values."""

    number: int
    time: int
    values: dict[str, Any]


@dataclass
class Stream:
    """A stream and everything that was ever pushed to it, in arrival order."""

    name: str
    schema: Schema
    clock: str = "wall"
    retain: int | None = None
    tuples: list[Tuple] = field(default_factory=list)

    def highest_time(self) -> int | None:
        """The highest time seen, retained or not."""
        return max((one.time for one in self.tuples), default=None)

    def now(self, wall: int) -> int:
        """What NOW is on this stream's clock."""
        if self.clock == "stream":
            return self.highest_time() or 0
        return wall

    def horizon(self, wall: int) -> int | None:
        """The time before which tuples are gone, if some are to go."""
        highest = self.highest_time()
        return None if self.retain is None or highest is None else min(wall, highest) - self.retain

    def retained(self, wall: int) -> list[Tuple]:
        """The tuples that are still there, by time and then by arrival."""
        oldest = self.horizon(wall)
        there = [one for one in self.tuples if oldest is None or one.time >= oldest]
        return sorted(there, key=lambda one: (one.time, one.number))


def in_window(tuples: list[Tuple], span: Span) -> list[Tuple]:
    """The tuples of a span; `tuples` are in order of time and then arrival."""
    if span.until is not None:
        counted = [one for one in tuples if one.time <= span.until]
        tuples = []
        for number, one in enumerate(reversed(counted), start=1):
            if number > span.skip and (span.take is None or number <= span.take):
                tuples.insert(0, one)
    return [
        one
        for one in tuples
        if (span.begin is None or one.time >= span.begin) and (span.end is None or one.time <= span.end)
    ]
