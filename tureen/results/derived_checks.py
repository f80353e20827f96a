"""What derived streams must have, computed again from their base streams, and what they have."""

from __future__ import annotations

import pyarrow as pa

from tureen.matching import Selector
from tureen.pot.registered import RegisteredInput
from tureen.results.answering import Answers
from tureen.results.covers.reuse import CoveringStream
from tureen.results.covers.step_streams import StepStream
from tureen.results.rows.gather import fields_of
from tureen.results.rows.ranges import ranges_of
from tureen.results.rows.selection import Selection
from tureen.results.rows.stepping import EARLIEST
from tureen.results.snapshot.stream_state import Snapshot, StreamState
from tureen.window import WHOLE, Span


class DerivedChecks:
    """Compares derived streams with the tuples that are retained of their base streams."""

    def __init__(self, answers: Answers) -> None:
        """Evaluate queries with these."""
        self._answers = answers

    def count_rows(self, snapshot: Snapshot, derived: CoveringStream) -> tuple[int, int]:
        """How many tuples a derived stream must have, and how many it has."""
        base, state = snapshot.streams[derived.base.id], snapshot.streams[derived.stream.id]
        horizon, everything = self._answers.horizon(base.stream), WHOLE.span(0)
        selector = Selector(derived.properties.clause, base.stream.schema)
        ranges = ranges_of(base.segments, everything, horizon)
        leaf = RegisteredInput(stream_id=base.stream.id)
        expected = Selection(base, leaf, selector, ranges, None, self._answers.watch).matches()
        held = ranges_of(state.segments, everything, horizon)
        return sum(len(hit.rows) for hit in expected.hits), sum(last - first for first, last in held)

    def steps(self, source: StepStream, base: StreamState, state: StreamState, last: int) -> tuple[pa.Table, pa.Table]:
        """The rows that a stream of steps must have up to a step, and those that it has."""
        answers, ready = self._answers, source.ready
        end, horizon = source.start_of(last + 1), answers.horizon(base.stream)
        leaf = RegisteredInput(stream_id=base.stream.id)
        selection = answers.selection(ready, leaf, base, end, Span(None, end - 1), horizon)
        expected = pa.table(ready.finish(answers.rows(selection, ready)))
        assert selection.stepping is not None
        first = selection.stepping.first
        begin = None if first == EARLIEST else source.start_of(first)
        ranges = ranges_of(state.segments, Span(begin, end - 1), None)
        leaf, everything = RegisteredInput(stream_id=state.stream.id), Selector((), state.stream.schema)
        stored = Selection(state, leaf, everything, ranges, None, answers.watch)
        return expected, stored.matches().table(fields_of(state.stream.schema, expected.column_names))
