"""Changes of a join: the joined rows that appeared since a position, in order of arrival.

A joined row is new if one of its tuples is. Its windows are those at the time of its latest tuple, so that which rows
appear does not depend on when they are read (docs/decisions/0030).

The new rows are read stream by stream: those of the first stream's new tuples with the old ones of all others, then
those of the second stream's new tuples with all of the first stream's, and so on. So each row is read once, and after
each row the position is a mark per stream.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.errors import Unsupported
from tureen.join import InnerJoin, JoinOpaque
from tureen.joining.join_evaluation import JoinEvaluation
from tureen.joining.join_input import JoinInput, Numbers
from tureen.joining.joined_rows import JoinedRows
from tureen.position import Mark, Position
from tureen.pot.queries import Registered, RegisteredInput
from tureen.query import Input, Query, RelationKind
from tureen.results.changes import check_has_changes, mark_of
from tureen.results.gather import StreamMatches
from tureen.results.join_inputs import Ids, StreamInput, with_ids
from tureen.results.join_ready import ReadyInput, ReadyJoin
from tureen.results.joined import JoinedMatches
from tureen.results.stream_state import Snapshot, StreamState
from tureen.window import At, Bound, Now, RowsBack

ReadTable = Callable[[ReadyInput, RegisteredInput], JoinInput]
"""The rows of an input that is a table."""


@dataclass(frozen=True)
class NewJoinedRows:
    """The joined rows that appeared since a position, and the marks after each."""

    rows: pa.Table
    snapshot: Snapshot
    marks: Mapping[int, Mark]
    """The marks after all rows."""
    _row_marks: Sequence[Mapping[int, Mark]]

    def __len__(self) -> int:
        """The number of rows."""
        return len(self._row_marks)

    def position(self, index: int | None = None) -> str:
        """The position after the row of that index, or after all of them."""
        marks = self.marks if index is None else self._row_marks[index]
        return str(Position(self.snapshot.seq, marks, self.snapshot.pushes))


@dataclass(frozen=True)
class _Part:
    """Rows that one pass has read, in order, each with the tuple by which it is new."""

    rows: pa.Table
    tuple_ids: Numbers


class JoinChangeReader:
    """Reads the changes of one join from one snapshot."""

    def __init__(self, registered: Registered, snapshot: Snapshot, ready: ReadyJoin, read_table: ReadTable) -> None:
        """Read from that snapshot."""
        check_can_follow(ready.query)
        self._snapshot, self._ready, self._read_table = snapshot, ready, read_table
        self._leaves = registered.inputs
        self._inputs_of = {
            stream_id: [number for number, leaf in enumerate(self._leaves) if leaf.stream_id == stream_id]
            for stream_id in sorted(snapshot.streams)
        }

    def read(self, since: Position | None) -> NewJoinedRows:
        """The rows that appeared since a position; without one, none yet."""
        ends = {stream_id: self._state(stream_id).stream.next_id for stream_id in self._inputs_of}
        marks = {stream_id: mark_of(self._state(stream_id), since) for stream_id in self._inputs_of}
        parts: list[pa.Table] = []
        row_marks: list[Mapping[int, Mark]] = []
        for stream_id, mark in list(marks.items()):
            if mark.rows:
                # Some rows of this tuple were read with the marks that the position has.
                part = self._new(stream_id, (mark.next_id, mark.next_id + 1), marks)
                self._add(part, stream_id, marks, parts, row_marks, skipped=mark.rows)
                marks[stream_id] = Mark(mark.next_id + 1)
        for stream_id, end in ends.items():
            first = marks[stream_id].next_id
            if end > first:
                self._add(self._new(stream_id, (first, end), marks), stream_id, marks, parts, row_marks)
            marks[stream_id] = Mark(max(first, end))
        rows = pa.concat_tables([self._ready.fields.empty_table() if self._ready.fields.names else _NO_COLUMNS, *parts])
        return NewJoinedRows(self._ready.finish(rows), self._snapshot, marks, row_marks)

    def _add(
        self,
        part: _Part,
        stream_id: int,
        marks: Mapping[int, Mark],
        parts: list[pa.Table],
        row_marks: list[Mapping[int, Mark]],
        *,
        skipped: int = 0,
    ) -> None:
        """Add rows, with the marks after each: of the last row of a tuple, those after the tuple."""
        ids = part.tuple_ids.tolist()
        count = 0
        for index, tuple_id in enumerate(ids):
            count = count + 1 if index and ids[index - 1] == tuple_id else 1
            is_last = index + 1 == len(ids) or ids[index + 1] != tuple_id
            if index >= skipped:
                mark = Mark(tuple_id + 1) if is_last else Mark(tuple_id, rows=count)
                row_marks.append({**marks, stream_id: mark})
        parts.append(part.rows.slice(skipped))

    def _new(self, stream_id: int, new: Ids, marks: Mapping[int, Mark]) -> _Part:
        """The rows with a new tuple of one stream; of each other stream, the tuples before its mark.

        A row with new tuples in several inputs over the stream is read with the first of them.
        """
        tables, ids_of_tables = [], []
        inputs = self._inputs_of[stream_id]
        for number in inputs:
            limits: dict[int, Ids] = {}
            for other, leaf in enumerate(self._leaves):
                if leaf.stream_id is None:
                    continue
                if leaf.stream_id != stream_id:
                    limits[other] = (0, marks[leaf.stream_id].next_id)
                elif other == number:
                    limits[other] = new
                else:
                    limits[other] = (0, new[0] if other < number else new[1])
            matches = self._joined(limits, number)
            tables.append(matches.table(self._ready.fields))
            ids_of_tables.append(matches.ids())
        ids = np.concatenate(ids_of_tables, axis=1)
        latest = np.maximum.reduce(ids[inputs])
        # The order of a tuple's rows does not depend on which of them are read together.
        order = np.lexsort((*ids[::-1], latest))
        return _Part(pa.concat_tables(tables).take(pa.array(order)), latest[order])

    def _joined(self, limits: Mapping[int, Ids], number: int) -> JoinedMatches:
        """The joined rows of tuples within limits, of which those of one input are new."""
        new = self._stream_input(number, limits[number], None)
        earliest = int(new.times.min()) if len(new) else None
        join_inputs: list[JoinInput] = []
        for other, entry in enumerate(self._ready.inputs):
            if other == number:
                join_inputs.append(new)
            elif entry.input.kind is RelationKind.TABLE:
                join_inputs.append(self._read_table(entry, self._leaves[other]))
            else:
                ids = limits[other] if earliest is not None else (0, 0)
                join_inputs.append(self._stream_input(other, ids, earliest))
        rows = JoinEvaluation(join_inputs, 0).rows(self._ready.query.source)
        return JoinedMatches(join_inputs, self._within_windows(join_inputs, rows))

    def _within_windows(self, inputs: Sequence[JoinInput], rows: JoinedRows) -> JoinedRows:
        """The rows whose tuples are in their windows at the time of the latest of them."""
        times = {
            number: entry.times[rows.rows[number]] for number, entry in enumerate(inputs) if entry.times is not None
        }
        latest = np.maximum.reduce(list(times.values()))
        inside: npt.NDArray[np.bool_] = np.ones(len(rows), np.bool_)
        for number, of_input in times.items():
            window = self._ready.inputs[number].input.window
            begin, end = _bounds_at(window.begin, latest), _bounds_at(window.end, latest)
            inside &= True if begin is None else of_input >= begin
            inside &= True if end is None else of_input <= end
        return rows.take(np.flatnonzero(inside))

    def _stream_input(self, number: int, ids: Ids, earliest: int | None) -> StreamInput:
        """The tuples of an input with ids in an interval; partners of tuples from a time on."""
        entry, leaf = self._ready.inputs[number], self._leaves[number]
        state = self._state(leaf.stream_id)
        assert entry.selector is not None
        begin, end = _constant_bounds(entry.input, earliest)
        hits = []
        ends = [*(segment.first_id for segment in state.segments), state.stream.next_id][1:]
        for segment, last_id in zip(state.segments, ends, strict=True):
            if last_id <= ids[0] or segment.first_id >= ids[1]:
                continue
            first = 0 if begin is None else segment.rows_before(begin, inclusive=False)
            last = segment.rows if end is None else segment.rows_before(end, inclusive=True)
            if last > first:
                hits.append(with_ids(segment.hits(leaf, entry.selector, first, last), ids))
        return StreamInput(StreamMatches(state.stream.schema, [hit for hit in hits if len(hit.rows)]))

    def _state(self, stream_id: int | None) -> StreamState:
        assert stream_id is not None
        return self._snapshot.streams[stream_id]


_NO_COLUMNS = pa.table({"_none": pa.nulls(0)})


def check_can_follow(query: Query) -> None:
    """Raise for a join whose rows can disappear, or appear without a tuple that arrives."""
    check_has_changes(query)
    source = query.source
    if not isinstance(source, InnerJoin) or not all(isinstance(side, int) for side in source.sides):
        raise Unsupported(
            "an outer join, EXISTS, IN, ASOF JOIN or a query in parentheses has no changes",
            hint="invoke it: its rows can disappear when a tuple arrives",
        )
    if any(entry.block is not None for entry in query.inputs):
        raise Unsupported("a join with a query in parentheses has no changes", hint="invoke it")
    if any(isinstance(bound, RowsBack) for entry in query.inputs for bound in (entry.window.begin, entry.window.end)):
        raise Unsupported("a join with a window of rows has no changes", hint="invoke it, or use a window of time")
    if any(isinstance(factor, JoinOpaque) and factor.uses_now for factor in source.factors):
        raise Unsupported("a join that uses NOW outside its windows has no changes", hint="invoke it")


def _constant_bounds(entry: Input, earliest: int | None) -> tuple[int | None, int | None]:
    """Times outside which no tuple of an input can be a partner of tuples from a time on."""
    begin, end = entry.window.begin, entry.window.end
    low = begin.micros if isinstance(begin, At) else None
    if isinstance(begin, Now) and earliest is not None:
        low = begin.at(earliest)
    return low, end.micros if isinstance(end, At) else None


def _bounds_at(bound: Bound | None, times: Numbers) -> Numbers | int | None:
    """A bound of a window at each of several times."""
    match bound:
        case Now(micros, 0):
            return times + micros
        case Now():
            return np.array([bound.at(time) for time in times.tolist()], np.int64)
        case At(micros):
            return micros
        case _:
            return None
