"""The axes along which steps are laid: a stream's time, or the numbers of its tuples.

The *coordinate* of a tuple on an axis is counted from the origin of the steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.aggregates.aggregate_kernels import States
from tureen.aggregates.panes import panes_at, panes_of
from tureen.aggregates.strip import Panes, Strip
from tureen.results.rows.numbering import Numbering
from tureen.results.snapshot.segment import Hits, Segment
from tureen.results.snapshot.stream_state import StreamState

Coordinates = npt.NDArray[np.int64]


class Axis(Protocol):
    """An axis along which steps are laid."""

    def panes(self, strip: Strip, number: int, length: int, scratch: States) -> Panes:
        """The panes of a length, for the strip of the segment of that number."""

    def coordinates(self, hits: Sequence[Hits], rows: pa.Table) -> Coordinates:
        """The coordinates of tuples, in order of time, as their rows are."""

    def bounds(self, starts: Coordinates, ends: Coordinates) -> tuple[Coordinates, Coordinates]:
        """The instants at which steps with these coordinates start and end."""


@dataclass(frozen=True)
class TimeAxis:
    """Time, counted from an instant."""

    segments: Sequence[Segment]
    time_column: str
    origin: int

    def panes(self, strip: Strip, number: int, length: int, scratch: States) -> Panes:
        """By the times of the hits."""
        segment = self.segments[number]
        division = (length, self.origin)
        return panes_at(
            strip, strip.by_time, lambda: segment.times(0, segment.rows)[strip.hit_rows()], division, scratch
        )

    def coordinates(self, hits: Sequence[Hits], rows: pa.Table) -> Coordinates:  # noqa: ARG002 - as the other axis
        """Their times."""
        column = rows.column(self.time_column)
        times: Coordinates = column.cast(pa.int64()).to_numpy()
        return times - self.origin

    def bounds(self, starts: Coordinates, ends: Coordinates) -> tuple[Coordinates, Coordinates]:
        """The coordinates as instants."""
        return starts + self.origin, ends + self.origin


@dataclass(frozen=True)
class RowAxis:
    """The numbers of tuples; the window contains those from `low` to before `high`."""

    state: StreamState
    numbering: Numbering
    low: int
    high: int

    def panes(self, strip: Strip, number: int, length: int, scratch: States) -> Panes:
        """By the numbers of the hits; the panes can be cached if numbers are rows plus a constant."""
        base = self.numbering.base(number)
        if base is None:
            return panes_of(strip, self.numbering.of(number, strip.hit_rows()) // length, scratch)
        return panes_at(strip, strip.by_row, strip.hit_rows, (length, -base), scratch)

    def coordinates(self, hits: Sequence[Hits], rows: pa.Table) -> Coordinates:  # noqa: ARG002 - as the other axis
        """Their numbers, which ascend with time."""
        numbers = {id(segment): number for number, segment in enumerate(self.state.segments)}
        coordinates = [self.numbering.of(numbers[id(hit.segment)], hit.positions()) for hit in hits]
        return np.sort(np.concatenate([*coordinates, np.empty(0, np.int64)]))

    def bounds(self, starts: Coordinates, ends: Coordinates) -> tuple[Coordinates, Coordinates]:
        """The times of the first and the last tuple of each step within the window."""
        first = self.numbering.times(np.maximum(starts, self.low))
        return first, self.numbering.times(np.minimum(ends, self.high) - 1)
