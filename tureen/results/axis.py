"""The axes that steps are cut from: a stream's time, and the numbers of its tuples.

A tuple's *place* on an axis is counted from where steps are aligned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.aggregates.aggregate_kernels import States
from tureen.aggregates.panes import panes_at, panes_of
from tureen.aggregates.strip import Panes, Strip
from tureen.results.gather import StreamMatches
from tureen.results.numbering import Numbering
from tureen.results.view import StreamState

Places = npt.NDArray[np.int64]


class Axis(Protocol):
    """What steps need to know of the axis they are cut from."""

    def panes(self, strip: Strip, number: int, length: int, scratch: States) -> Panes:
        """The panes of a length of the segment of that number, of which the strip is."""

    def places(self, matches: StreamMatches, rows: pa.Table) -> Places:
        """The places of the matches, in order of time as their rows are."""

    def bounds(self, starts: Places, ends: Places) -> tuple[Places, Places]:
        """The instants at which steps start and end that lie between some places."""


@dataclass(frozen=True)
class TimeAxis:
    """Time, from an instant on."""

    state: StreamState
    origin: int

    def panes(self, strip: Strip, number: int, length: int, scratch: States) -> Panes:
        """By the times of the hits."""
        segment = self.state.segments[number]
        division = (length, self.origin)
        return panes_at(
            strip, strip.by_time, lambda: segment.times(0, segment.rows)[strip.hit_rows()], division, scratch
        )

    def places(self, matches: StreamMatches, rows: pa.Table) -> Places:  # noqa: ARG002 - as the other axis
        """Their times."""
        column = rows.column(self.state.stream.schema.time_column)
        times: Places = column.cast(pa.int64()).to_numpy()
        return times - self.origin

    def bounds(self, starts: Places, ends: Places) -> tuple[Places, Places]:
        """The places themselves."""
        return starts + self.origin, ends + self.origin


@dataclass(frozen=True)
class RowAxis:
    """The numbers of tuples, of which the window holds those from `low` to before `high`."""

    state: StreamState
    numbering: Numbering
    low: int
    high: int

    def panes(self, strip: Strip, number: int, length: int, scratch: States) -> Panes:
        """By the numbers of the hits; they can be kept where they follow from the rows."""
        base = self.numbering.base(number)
        if base is None:
            return panes_of(strip, self.numbering.of(number, strip.hit_rows()) // length, scratch)
        return panes_at(strip, strip.by_row, strip.hit_rows, (length, -base), scratch)

    def places(self, matches: StreamMatches, rows: pa.Table) -> Places:  # noqa: ARG002 - as the other axis
        """Their numbers, which go up as time does."""
        numbers = {id(segment): number for number, segment in enumerate(self.state.segments)}
        places = [self.numbering.of(numbers[id(hit.segment)], hit.positions()) for hit in matches.hits]
        return np.sort(np.concatenate([*places, np.empty(0, np.int64)]))

    def bounds(self, starts: Places, ends: Places) -> tuple[Places, Places]:
        """The times of the first and the last tuple of each step that the window holds."""
        first = self.numbering.times(np.maximum(starts, self.low))
        return first, self.numbering.times(np.minimum(ends, self.high) - 1)
