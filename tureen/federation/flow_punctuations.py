"""The punctuations of a flow: those of its stream that are about columns of the flow, in their places among the rows.

A lateness is sent as punctuations of the time, because the tuples of a flow do not tell the highest time of its stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tureen.closed.pattern import CodeRange, Pattern
from tureen.closed.section import PlacedPattern
from tureen.federation.flow_source import FlowSource
from tureen.federation.frame import FlowFrame
from tureen.federation.frame_punctuations import EARLIEST
from tureen.position import Mark
from tureen.pot.catalog import Catalog
from tureen.results.snapshot.stream_state import StreamState
from tureen.results.snapshot.unread_places import unread_places


class FlowPunctuations:
    """Reads the punctuations of one flow, each once."""

    def __init__(self, catalog: Catalog, source: FlowSource, *, is_from_start: bool) -> None:
        """Begin with those that stand before the first tuple that is read, or with all that are known."""
        self._catalog, self._columns = catalog, frozenset(source.columns)
        self._is_home, self._is_from_start = source.progress is None, is_from_start
        self._number: int | None = None
        """The number of the next one; None before the first read."""
        self._closed_to = EARLIEST
        """The latest time that the lateness of the stream was known to close."""

    def read(self, state: StreamState, first: int, end: int, ids: npt.NDArray[np.int64]) -> list[PlacedPattern]:
        """The next ones up to the tuple `end`, among rows with these ids; those before `first` were read."""
        mark = Mark(0 if self._is_from_start else first, punctuations=self._number)
        unread = unread_places(self._catalog, state, mark, end)
        self._number = unread.end or 0
        placed = [
            PlacedPattern(int(np.searchsorted(ids, place.next_id)), place.pattern)
            for place in unread.places
            if self._columns.issuperset(name for name, _ in place.pattern.columns)
        ]
        if self._is_home and end >= state.stream.next_id:
            placed += [PlacedPattern(len(ids), pattern) for pattern in self._late(state)]
        return placed

    def _late(self, state: StreamState) -> list[Pattern]:
        """What the lateness of the stream closes now, if that is more than before."""
        schema, lateness = state.stream.schema, state.stream.rules.lateness
        if lateness is None or state.stream.last_time is None or schema.time is None or schema.has_abstract_clock:
            return []
        closed_to = state.stream.last_time - lateness - 1
        if closed_to <= self._closed_to:
            return []
        self._closed_to = closed_to
        return [Pattern(((schema.time, CodeRange(high=closed_to)),))]


def with_punctuations(frames: Sequence[FlowFrame], placed: Sequence[PlacedPattern]) -> list[FlowFrame]:
    """Frames of one read with the punctuations among their rows, each in the frame of the row after it."""
    if not placed:
        return list(frames)
    counts = [0 if frame.rows is None else frame.rows.num_rows for frame in frames]
    ends = np.cumsum(counts)
    of_frames = np.minimum(np.searchsorted(ends, [at for at, _ in placed], "right"), len(frames) - 1)
    inside: list[list[PlacedPattern]] = [[] for _ in frames]
    for number, (at, pattern) in zip(of_frames.tolist(), placed, strict=True):
        inside[number].append(PlacedPattern(at - int(ends[number]) + counts[number], pattern))
    return [replace(frame, punctuations=tuple(each)) for frame, each in zip(frames, inside, strict=True)]
