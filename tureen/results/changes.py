"""Changes: the tuples that joined a query's answer since a position, in order of arrival."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.errors import TureenError, Unsupported
from tureen.matching import Selector
from tureen.pot.position import Position
from tureen.pot.queries import Registered
from tureen.query import Query
from tureen.results.gather import gather_segment
from tureen.results.segment import Segment
from tureen.results.view import StreamState
from tureen.window import At, Window


@dataclass(frozen=True)
class News:
    """The tuples that came since a position: the columns that were asked for, and the id of each."""

    rows: pa.Table
    ids: npt.NDArray[np.int64]
    state: StreamState

    def __len__(self) -> int:
        """How many."""
        return len(self.ids)

    def position(self, place: int | None = None) -> str:
        """Where to go on after the row at that place, or after all of them."""
        return self.position_at(self.state.stream.next_id if place is None else int(self.ids[place]) + 1)

    def position_at(self, ids: int, member: int = 0) -> str:
        """The position before that id, or before a template's query of that number within it."""
        return str(Position(self.state.seq, self.state.stream.id, 0, ids, member))


def first_new(state: StreamState, since: Position | None) -> int:
    """The first id that comes after a position; with none given, that of the next tuple to come."""
    if since is None:
        return state.stream.next_id
    if since == Position(0):
        # Before everything: all that the stream retains is new.
        return 0
    if since.ids is None or since.stream != state.stream.id:
        raise TureenError(
            "changes go on from an answer's position, or from a change's, of the same stream",
            hint="invoke the query, and take the answer's position",
        )
    return since.ids


def check_has_changes(query: Query) -> None:
    """Raise for a query whose answer does not grow row by row."""
    if query.grouping is not None or query.overs or query.finishes:
        raise Unsupported(
            "a query with aggregates, window functions, DISTINCT, ORDER BY or LIMIT has no changes",
            hint="invoke it, or ask for the changes of the rows themselves",
        )
    if query.steps is not None:
        raise Unsupported(
            "a query with steps has no changes", hint="invoke it, or leave the steps out and follow the rows"
        )
    if query.uses_now:
        # Rows would join and leave its answer as time passes, without a tuple that arrives.
        raise Unsupported(
            "a query that uses NOW outside its window has no changes",
            hint="invoke it, or write the condition as a window: BEGIN NOW - … END NOW",
        )


def news(
    state: StreamState, names: Sequence[str], window: Window, registered: Registered, selector: Selector, since: int
) -> News:
    """Some columns of a query's tuples with an id from `since` on, in order of their ids.

    The constant bounds of a window count. Relative ones do not: a row that joined the answer and has left it since
    was a change nevertheless.
    """
    schema = state.stream.schema
    tables, numbers = [], []
    # The ids of a segment end before the next one begins.
    ends = [*(segment.first_id for segment in state.segments), state.stream.next_id][1:]
    for segment, end in zip(state.segments, ends, strict=True):
        if end <= since:
            continue
        first, last = _bounded(segment, window)
        if last <= first:
            continue
        hits = segment.hits(registered, selector, first, last)
        ids = segment.ids_at(hits.positions())
        new = np.flatnonzero(ids >= since)
        if len(new):
            tables.append(gather_segment(schema, names, hits).take(pa.array(new)))
            numbers.append(ids[new])
    if not tables:
        fields = pa.schema([schema.stored.field(name) for name in names])
        return News(fields.empty_table(), np.empty(0, np.int64), state)
    ids, rows = np.concatenate(numbers), pa.concat_tables(tables)
    order = np.argsort(ids)
    return News(rows.take(pa.array(order)), ids[order], state)


def _bounded(segment: Segment, window: Window) -> tuple[int, int]:
    """The rows of a segment that lie within the constant bounds of a window."""
    begin, end = window.begin, window.end
    first = segment.place(begin.micros, after=False) if isinstance(begin, At) else 0
    last = segment.place(end.micros, after=True) if isinstance(end, At) else segment.rows
    return first, last
