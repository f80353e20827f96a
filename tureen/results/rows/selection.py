"""A selection: the tuples of a stream that an invocation asks for, perhaps in steps."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter_ns
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.matching import Selector
from tureen.pot.registered import RegisteredInput
from tureen.query import Expression
from tureen.results.rows.gather import StreamMatches
from tureen.results.rows.matches import rows_in_steps
from tureen.results.rows.ranges import Range
from tureen.results.rows.remembered_rows import RememberedRows
from tureen.results.rows.stepping import Stepping
from tureen.results.rows.watch import Watch
from tureen.results.snapshot.segment import Hits, Segment
from tureen.results.snapshot.stream_state import StreamState


class Selection(NamedTuple):
    """A query's tuples within ranges of a stream's segments."""

    state: StreamState
    query_input: RegisteredInput
    selector: Selector
    ranges: Sequence[Range]
    stepping: Stepping | None
    watch: Watch
    now: int | None = None
    """The NOW of the invocation, where the query uses it outside its window."""
    at_now: Expression | None = None
    """A condition that tuples must satisfy beside the query's clause."""
    begin: int | None = None
    """The time before which no tuple is selected, where it is known."""
    end: int | None = None
    """The time after which no tuple is selected, where it is known."""
    remembered: RememberedRows | None = None
    """The rows of runs that were selected before, and will be again."""

    @property
    def window_rows(self) -> int:
        """The number of tuples in the window, whether they satisfy the query or not."""
        if self.stepping is not None:
            return self.stepping.held
        return sum(last - first for first, last in self.ranges)

    def matches(self) -> StreamMatches:
        """The tuples that satisfy the query's clause."""
        began = perf_counter_ns()
        hits = [
            self.hits(segment, first, last)
            for segment, (first, last) in zip(self.state.segments, self.ranges, strict=True)
            if last > first
        ]
        if self.query_input.clause_id is not None:
            self._count(self.query_input.clause_id, hits, perf_counter_ns() - began)
        return StreamMatches(self.state.stream.schema, [hit for hit in hits if len(hit.rows)])

    def hits(self, segment: Segment, first: int, last: int) -> Hits:
        """Those of an interval of a segment."""
        if self.remembered is None:
            return segment.hits(self.query_input, self.selector, first, last)
        return self.remembered.hits(segment, self.query_input, self.selector, first, last)

    def rows(self, fields: pa.Schema) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        """Some columns of the matches, and the step of each row; see `rows_in_steps`."""
        matches, stepping = self.matches(), self.stepping
        if stepping is None:
            return rows_in_steps(matches, fields, self.now, self.at_now, None)
        axis = stepping.axis
        return rows_in_steps(
            matches, fields, self.now, self.at_now, lambda rows: stepping.of_each(axis.coordinates(matches.hits, rows))
        )

    def _count(self, clause_id: int, hits: Sequence[Hits], nanoseconds: int) -> None:
        """Count the request for the decision which results to keep ready; a tail is scanned in any case."""
        indexed = sum(
            last - first
            for segment, (first, last) in zip(self.state.segments, self.ranges, strict=True)
            if segment.matched_seq is not None
        )
        if indexed:
            matched = sum(len(hit.rows) for hit in hits)
            eager = self.query_input.number is not None
            self.watch.note(
                clause_id,
                self.state.stream.id,
                indexed,
                matched,
                nanoseconds,
                eager=eager,
                calls_functions=self.selector.calls_functions,
            )
