"""Changes: the rows that joined a query's answer since a position, in order of arrival."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.errors import TureenError, Unsupported
from tureen.join import Field
from tureen.matching import Selector
from tureen.position import BEGINNING, Mark, Position, QueryKey
from tureen.pot.catalog import Catalog
from tureen.pot.registered import RegisteredInput
from tureen.query import Query
from tureen.results.changes.output_patterns import InputPart, OutputPatterns, PlacedOutput
from tureen.results.rows.gather import gather_segment
from tureen.results.snapshot.segment import Segment
from tureen.results.snapshot.stream_state import StreamState
from tureen.results.snapshot.unread_places import UnreadPlaces, end_places, unread_places
from tureen.schema import Schema
from tureen.window import At, Window

_BEGINNING = Position.parse(BEGINNING)
_NO_IDS: npt.NDArray[np.int64] = np.empty(0, np.int64)
_NO_ROWS = pa.table({})


@dataclass(frozen=True)
class NewRows:
    """The rows that joined an answer since a position, and the tuple id of each."""

    rows: pa.Table
    ids: npt.NDArray[np.int64]
    state: StreamState
    read_before: Mapping[int, QueryKey] = field(default_factory=dict)
    """The index of a row that was read before for the queries of a template up to that one."""
    places: UnreadPlaces | None = None
    """The punctuations of the stream, if they are read too."""
    punctuations: Sequence[PlacedOutput] = ()
    """Those of them that are about outputs, in order."""

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.ids)

    def position(self, index: int | None = None) -> str:
        """The position after the row of that index, or after all of them."""
        places = self.places
        if index is not None:
            tuple_id = int(self.ids[index])
            number = None if places is None else places.number_after(tuple_id)
            return self.state.position_at(Mark(tuple_id + 1, punctuations=number))
        if places is None:
            return self.state.position
        return self.state.position_at(Mark(self.state.stream.next_id, punctuations=places.end))

    def position_after(self, placed: PlacedOutput) -> str:
        """The position after a punctuation."""
        return self.state.position_at(placed.marks[self.state.stream.id])

    def position_within(self, index: int, after: QueryKey) -> str:
        """The position after the queries up to that one of a template, at the row of that index."""
        return self.state.position_at(Mark(int(self.ids[index]), after))

    def tuple_ids(self, stream_id: int) -> npt.NDArray[np.int64]:
        """The tuple of each row."""
        assert stream_id == self.state.stream.id
        return self.ids

    @property
    def row_numbers(self) -> npt.NDArray[np.int64]:
        """Zeros: a tuple is one row, see `NewJoinedRows`."""
        return np.zeros(len(self), np.int64)


def no_new_rows(state: StreamState) -> NewRows:
    """No rows, up to the end of a stream."""
    return NewRows(_NO_ROWS, _NO_IDS, state)


def mark_of(state: StreamState, since: Position | None) -> Mark:
    """How far a stream was read at a position; without one, up to the next tuple."""
    if since is None:
        return Mark(state.stream.next_id)
    if since == _BEGINNING:
        return Mark(0)
    mark = since.marks.get(state.stream.id)
    if mark is None:
        raise TureenError(
            "the position is not one of this stream",
            hint="changes continue from the position of an answer or a change of the same query",
        )
    return mark


def up_to(state: StreamState, next_id: int) -> StreamState:
    """A stream without the tuples from that id on."""
    if next_id >= state.stream.next_id:
        return state
    return replace(state, stream=replace(state.stream, next_id=next_id))


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


def new_rows(
    state: StreamState,
    names: Sequence[str],
    window: Window,
    query_input: RegisteredInput,
    selector: Selector,
    first_id: int,
    end_id: int,
) -> NewRows:
    """Some columns of a query's tuples with an id from `first_id` to before `end_id`, in order of their ids.

    The constant bounds of the window apply. Relative ones do not: a row that joined the answer and has left it since
    was a change nevertheless.
    """
    schema = state.stream.schema
    tables, ids_of_tables = [], []
    # The ids of a segment end before the next one begins.
    ends = [*(segment.first_id for segment in state.segments), state.stream.next_id][1:]
    for segment, end in zip(state.segments, ends, strict=True):
        if end <= first_id or segment.first_id >= end_id:
            continue
        first, last = segment.positions_within(*_bounded(segment, window), (first_id, end_id))
        if last <= first:
            continue
        hits = segment.hits(query_input, selector, first, last)
        if not len(hits.rows):
            continue
        ids = segment.ids_at(hits.positions())
        new = np.flatnonzero((ids >= first_id) & (ids < end_id))
        if len(new):
            tables.append(gather_segment(schema, names, hits).take(pa.array(new)))
            ids_of_tables.append(ids[new])
    if not tables:
        return NewRows(_no_rows(schema, tuple(names)), _NO_IDS, state)
    ids, rows = np.concatenate(ids_of_tables), pa.concat_tables(tables)
    order = np.argsort(ids)
    return NewRows(rows.take(pa.array(order)), ids[order], state)


def with_punctuations(catalog: Catalog, new: NewRows, query: Query, since: Position | None, end_id: int) -> NewRows:
    """New rows of a query up to a tuple, with the punctuations of the stream among them that are about outputs."""
    state, outputs = new.state, OutputPatterns(query)
    places = end_places(state) if since is None else unread_places(catalog, state, mark_of(state, since), end_id)
    placed = []
    for place in places.places:
        pattern = outputs.pattern([InputPart([Field(0, name)], part) for name, part in place.pattern.columns])
        if pattern is not None:
            marks = {state.stream.id: Mark(place.next_id, punctuations=place.number + 1)}
            placed.append(PlacedOutput(int(np.searchsorted(new.ids, place.next_id)), pattern, marks))
    return replace(new, places=places, punctuations=placed)


@lru_cache(maxsize=1024)
def _no_rows(schema: Schema, names: tuple[str, ...]) -> pa.Table:
    """An empty table of those columns: most followers get nothing of most pushes."""
    return pa.schema([schema.stored.field(name) for name in names]).empty_table()


def _bounded(segment: Segment, window: Window) -> tuple[int, int]:
    """The rows of a segment that lie within the constant bounds of a window."""
    begin, end = window.begin, window.end
    first = segment.rows_before(begin.micros, inclusive=False) if isinstance(begin, At) else 0
    last = segment.rows_before(end.micros, inclusive=True) if isinstance(end, At) else segment.rows
    return first, last
