"""Streams as the oracle stores them: every tuple ever pushed, and which of them a window contains."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tureen.schema import Schema
from tureen.window import Span


@dataclass(frozen=True)
class Tuple:
    """An accepted row: its arrival number, its time, and its stored values."""

    number: int
    time: int
    values: dict[str, Any]


@dataclass
class OracleStream:
    """A stream and all tuples that were ever pushed to it, in arrival order."""

    name: str
    schema: Schema
    clock: str = "wall"
    retain: int | None = None
    tuples: list[Tuple] = field(default_factory=list)

    def highest_time(self) -> int | None:
        """The highest time seen, retained or not."""
        return max((tuple_.time for tuple_ in self.tuples), default=None)

    def now(self, wall: int) -> int:
        """NOW on this stream's clock."""
        if self.clock == "stream":
            return self.highest_time() or 0
        return wall

    def horizon(self, wall: int) -> int | None:
        """The time before which tuples are dropped; None if the stream retains everything."""
        highest = self.highest_time()
        return None if self.retain is None or highest is None else min(wall, highest) - self.retain

    def retained(self, wall: int) -> list[Tuple]:
        """The tuples that are not dropped yet, by time and then by arrival."""
        oldest = self.horizon(wall)
        live = [tuple_ for tuple_ in self.tuples if oldest is None or tuple_.time >= oldest]
        return sorted(live, key=lambda tuple_: (tuple_.time, tuple_.number))


def in_window(tuples: list[Tuple], span: Span) -> list[Tuple]:
    """The tuples in a span; `tuples` are in order of time and then arrival."""
    if span.until is not None:
        visible = [tuple_ for tuple_ in tuples if tuple_.time <= span.until]
        tuples = []
        for number, tuple_ in enumerate(reversed(visible), start=1):
            if number > span.skip and (span.take is None or number <= span.take):
                tuples.insert(0, tuple_)
    return [
        tuple_
        for tuple_ in tuples
        if (span.begin is None or tuple_.time >= span.begin) and (span.end is None or tuple_.time <= span.end)
    ]
