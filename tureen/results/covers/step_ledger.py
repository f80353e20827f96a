"""Which steps of a derived stream are exact: those that no tuple reached after their rows were read.

A derived stream gets the rows of a step once, when the step is over. A tuple that arrives later changes the step, and
not the rows. When a process first uses the stream, its rows are compared with those of the base stream; from then on,
new tuples are compared with what had been read when they arrived.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tureen.matching import Selector
from tureen.pot.registered import RegisteredInput
from tureen.results.changes.changes import new_rows
from tureen.results.covers.step_streams import StepStream
from tureen.results.snapshot.stream_state import StreamState
from tureen.window import WHOLE

MOST_INEXACT = 1_000
"""The number of inexact steps from which on a stream is not used."""


class StepRead(NamedTuple):
    """Rows of steps up to a number were read from a stream with tuples before an id."""

    next_id: int
    last: int


class StepReads(NamedTuple):
    """What a derived stream has read; another generation may have pushed rows twice."""

    generation: int
    reads: Sequence[StepRead]


Recompute = Callable[[StepStream, StreamState, StreamState, int], tuple[pa.Table, pa.Table]]
"""The rows of a step stream up to a step: computed from its base stream, and stored."""


class StepLedger:
    """The inexact steps of one derived stream; used by threads that hold its lock."""

    def __init__(self, source: StepStream, recompute: Recompute) -> None:
        """Nothing is known yet."""
        self.lock = threading.Lock()
        self._source, self._recompute = source, recompute
        self._generation = -1
        self._checked_to = 0
        self._inexact: set[int] = set()
        self._selector = Selector(source.clause, source.base.schema)

    def inexact(self, known: StepReads, base: StreamState, state: StreamState) -> frozenset[int] | None:
        """The inexact steps among those that were read before a snapshot of both streams; None if there are many.

        `known` was read before the snapshot.
        """
        first = known.reads[0]
        if known.generation != self._generation or first.next_id > self._checked_to:
            self._compare(known, base, state)
        elif base.stream.next_id > self._checked_to:
            self._check_new(known.reads, base)
        self._checked_to = base.stream.next_id
        return frozenset(self._inexact) if len(self._inexact) <= MOST_INEXACT else None

    def _compare(self, known: StepReads, base: StreamState, state: StreamState) -> None:
        """Compare the rows of all steps with those of the base stream."""
        self._generation = known.generation
        expected, stored = self._recompute(self._source, base, state, known.reads[-1].last)
        self._inexact = set()
        if not stored.equals(expected):
            self._inexact = {self._source.number_of(time) for time in _differing(self._source, expected, stored)}

    def _check_new(self, reads: Sequence[StepRead], base: StreamState) -> None:
        """Note the steps of tuples that arrived after their step had been read."""
        name, end = base.stream.schema.time_column, base.stream.next_id
        leaf = RegisteredInput(stream_id=base.stream.id)
        new = new_rows(base, [name], WHOLE, leaf, self._selector, self._checked_to, end)
        if not len(new):
            return
        times = new.rows.column(name).cast(pa.int64()).to_numpy()
        steps = (times - self._source.steps.origin) // self._source.steps.width
        read_before = np.searchsorted([read.next_id for read in reads], new.ids, "right") - 1
        last = np.array([read.last for read in reads])[read_before]
        self._inexact.update(np.unique(steps[steps <= last]).tolist())


def _differing(source: StepStream, expected: pa.Table, stored: pa.Table) -> set[int]:
    """The starts of the steps whose rows differ."""
    time = str(source.stream.schema.time)

    def rows_by_step(table: pa.Table) -> dict[int, list[str]]:
        by_step: dict[int, list[str]] = {}
        starts = table.column(time).cast(pa.int64()).to_pylist()
        for start, *row in zip(starts, *(column.to_pylist() for column in table.columns), strict=True):
            by_step.setdefault(start, []).append(repr(row))
        # Final groups are not in the order of their keys.
        return {start: sorted(rows) for start, rows in by_step.items()}

    left, right = rows_by_step(expected), rows_by_step(stored)
    return {start for start in left.keys() | right.keys() if left.get(start) != right.get(start)}
