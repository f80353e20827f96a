"""Changes of a join: the joined rows that appeared since a position.

A joined row is new if one of its tuples is. Its windows are those at the time of its latest tuple, so that which rows
appear does not depend on when they are read (docs/decisions/0030).

The new rows are read stream by stream: those of the first stream's new tuples with the old ones of all others, then
those of the second stream's new tuples with all of the first stream's, and so on. So each row is read once, and after
each row the position is a mark per stream. A row comes before all rows whose tuples are the same or later ones; the
order of others depends on what is read together, because the order of arrival across streams is not stored.

A row of a semi join appears with its first combination of tuples and partners: it is new if it has a combination with a
new tuple, and none without (`tureen/results/joins/flat_join.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.errors import Unsupported
from tureen.join import InnerJoin, Join, JoinKind, JoinOpaque, JoinTree
from tureen.joining.join_evaluation import JoinEvaluation
from tureen.joining.join_input import JoinInput, Numbers
from tureen.joining.joined_rows import JoinedRows
from tureen.position import Mark, Position, QueryKey, UnreadChanges
from tureen.pot.registered import RegisteredInput
from tureen.query import Input, Query, RelationKind
from tureen.results.changes.changes import check_has_changes, mark_of
from tureen.results.changes.output_patterns import PlacedOutput
from tureen.results.joins.flat_join import FlatJoin, first_of_each, flat_join, occurs_in
from tureen.results.joins.join_inputs import Ids, StreamInput, matches_within
from tureen.results.joins.join_ready import ReadyInput, ReadyJoin
from tureen.results.joins.joined import JoinedMatches
from tureen.results.joins.key_indexes import KeyIndexes
from tureen.results.snapshot.segment import Hits
from tureen.results.snapshot.stream_state import Snapshot, StreamState
from tureen.window import At, Bound, Now, RowsBack

ReadTable = Callable[[ReadyInput, RegisteredInput], JoinInput]
"""The rows of an input that is a table."""


@dataclass(frozen=True)
class JoinedPart:
    """The rows that are new by new tuples of one stream, in order."""

    stream_id: int
    marks: Mapping[int, Mark]
    """How far each stream was read before."""
    rows: pa.Table
    latest: Mapping[int, Numbers]
    """For each stream, the latest tuple of each row; that of this stream is the one by which the row is new."""
    skipped: int = 0
    """The number of rows that were read before."""

    def __len__(self) -> int:
        """The number of rows that were not read before."""
        return len(self.latest[self.stream_id]) - self.skipped

    @cached_property
    def counts(self) -> Numbers:
        """For each row, the number of rows of its tuple before it."""
        ids = self.latest[self.stream_id]
        return np.arange(len(ids)) - np.searchsorted(ids, ids)

    def marks_after(self, row: int) -> Mapping[int, Mark]:
        """The marks after a row: after the last row of a tuple, those after the tuple."""
        ids = self.latest[self.stream_id]
        if row + 1 == len(ids) or ids[row + 1] != ids[row]:
            return {**self.marks, self.stream_id: Mark(int(ids[row]) + 1)}
        return self.marks_within(row + 1, QueryKey())

    def marks_within(self, row: int, after: QueryKey) -> Mapping[int, Mark]:
        """The marks before a row, and after the queries up to that one of a template at the row."""
        mark = Mark(int(self.latest[self.stream_id][row]), after, int(self.counts[row]))
        return {**self.marks, self.stream_id: mark}


@dataclass(frozen=True)
class NewJoinedRows:
    """The joined rows that appeared since a position."""

    rows: pa.Table
    snapshot: Snapshot
    marks: Mapping[int, Mark]
    """The marks after all rows."""
    parts: Sequence[JoinedPart]
    read_before: Mapping[int, QueryKey]
    """See `NewRows`."""
    end: str | None = None
    """The position after all rows, if it is known as a text."""
    punctuations: Sequence[PlacedOutput] = ()
    """See `NewRows`."""
    unread: UnreadChanges | None = None
    """At the positions of rows, the punctuations that come after all of them, if they are read too."""

    def __len__(self) -> int:
        """The number of rows."""
        return sum(map(len, self.parts))

    def position(self, index: int | None = None) -> str:
        """The position after the row of that index, or after all of them."""
        if index is None:
            return self.end or self._position(self.marks)
        part, row = self._find(index)
        marks = part.marks_after(row)
        return str(Position(self.snapshot.seq, marks, self.snapshot.pushes, unread=self.unread))

    def position_after(self, placed: PlacedOutput) -> str:
        """The position after a punctuation."""
        return str(Position(self.snapshot.seq, placed.marks, self.snapshot.pushes, unread=placed.unread))

    def position_within(self, index: int, after: QueryKey) -> str:
        """The position after the queries up to that one of a template, at the row of that index."""
        part, row = self._find(index)
        return self._position(part.marks_within(row, after))

    def tuple_ids(self, stream_id: int) -> Numbers:
        """The latest tuple of a stream in each row."""
        return np.concatenate([np.empty(0, np.int64), *(part.latest[stream_id][part.skipped :] for part in self.parts)])

    @property
    def row_numbers(self) -> Numbers:
        """The number of each row among those of its tuple, from 1 on."""
        return 1 + np.concatenate([np.empty(0, np.int64), *(part.counts[part.skipped :] for part in self.parts)])

    @cached_property
    def _starts(self) -> Numbers:
        return np.cumsum([0, *map(len, self.parts)])

    def _find(self, index: int) -> tuple[JoinedPart, int]:
        """The part with the row of an index, and the row's number in it."""
        number = int(np.searchsorted(self._starts, index, side="right")) - 1
        part = self.parts[number]
        return part, index - int(self._starts[number]) + part.skipped

    def _position(self, marks: Mapping[int, Mark]) -> str:
        return str(Position(self.snapshot.seq, marks, self.snapshot.pushes))


class JoinChangeReader:
    """Reads the changes of one join from one snapshot."""

    def __init__(
        self,
        leaves: Sequence[RegisteredInput],
        snapshot: Snapshot,
        ready: ReadyJoin,
        read_table: ReadTable,
        indexes: KeyIndexes,
    ) -> None:
        """Read from that snapshot the columns of `ready.fields`; `leaves` are the join's streams and tables.

        Partners of few new tuples are found by `indexes`.
        """
        self._flat = check_can_follow(ready.query)
        self._indexes = indexes
        self._snapshot, self._ready, self._read_table = snapshot, ready, read_table
        self._leaves = leaves
        self._inputs_of = {
            stream_id: [number for number, leaf in enumerate(self._leaves) if leaf.stream_id == stream_id]
            for stream_id in sorted(snapshot.streams)
        }

    def read(self, since: Position | None, until: Mapping[int, int] | None = None) -> NewJoinedRows:
        """The rows that appeared since a position; without one, none yet. `until` limits the tuples of each stream."""
        ends = {stream_id: self._state(stream_id).stream.next_id for stream_id in self._inputs_of}
        if until is not None:
            ends = {stream_id: min(end, until[stream_id]) for stream_id, end in ends.items()}
        marks = {stream_id: mark_of(self._state(stream_id), since) for stream_id in self._inputs_of}
        parts: list[JoinedPart] = []
        read_before: dict[int, QueryKey] = {}
        for stream_id, mark in list(marks.items()):
            if mark.is_within:
                # Some rows of this tuple were read with the marks that the position has.
                part = self._new(stream_id, (mark.next_id, mark.next_id + 1), marks)
                if len(part) > mark.rows:
                    read_before[sum(map(len, parts))] = mark.after
                    parts.append(replace(part, skipped=mark.rows))
                marks[stream_id] = Mark(mark.next_id + 1)
        for stream_id, end in ends.items():
            first = marks[stream_id].next_id
            if end > first:
                parts.append(self._new(stream_id, (first, end), marks))
            marks[stream_id] = Mark(max(first, end))
        empty = self._ready.fields.empty_table() if self._ready.fields.names else _NO_COLUMNS
        rows = pa.concat_tables([empty, *(part.rows.slice(part.skipped) for part in parts)])
        return NewJoinedRows(rows, self._snapshot, marks, parts, read_before)

    def _new(self, stream_id: int, new: Ids, marks: Mapping[int, Mark]) -> JoinedPart:
        """The rows with a new tuple of one stream; of each other stream, the tuples before its mark.

        A row with new tuples in several inputs over the stream is read with the first of them.
        """
        tables, ids_of_tables = [], []
        for number in self._inputs_of[stream_id]:
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
            if number not in self._flat.visible:
                matches = self._without_earlier(matches, self._before(stream_id, new, marks))
            tables.append(matches.table(self._ready.fields))
            ids_of_tables.append(matches.ids())
        ids = np.concatenate(ids_of_tables, axis=1)
        latest = {stream: np.maximum.reduce(ids[inputs]) for stream, inputs in self._inputs_of.items()}
        # The order of a tuple's rows does not depend on which of them are read together.
        order = np.lexsort((*ids[::-1], latest[stream_id]))
        if self._flat.has_hidden:
            order = order[first_of_each(ids[list(self._flat.visible)][:, order])]
        rows = pa.concat_tables(tables).take(pa.array(order))
        return JoinedPart(stream_id, dict(marks), rows, {stream: of_rows[order] for stream, of_rows in latest.items()})

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
        return self._evaluated(join_inputs)

    def _evaluated(self, inputs: Sequence[JoinInput]) -> JoinedMatches:
        rows = JoinEvaluation(inputs, 0).rows(self._flat.join)
        return JoinedMatches(inputs, self._within_windows(inputs, rows))

    def _before(self, stream_id: int, new: Ids, marks: Mapping[int, Mark]) -> Mapping[int, Ids]:
        """For each input over a stream, the tuples that were read before new ones of one stream."""
        ends = {stream: mark.next_id for stream, mark in marks.items()} | {stream_id: new[0]}
        return {
            number: (0, ends[leaf.stream_id]) for number, leaf in enumerate(self._leaves) if leaf.stream_id is not None
        }

    def _without_earlier(self, matches: JoinedMatches, before: Mapping[int, Ids]) -> JoinedMatches:
        """The matches whose rows have no partner from before, which was read; if the row is new, it is read with it."""
        rows, inputs, visible = matches.in_order, list(matches.inputs), list(self._flat.visible)
        if not len(rows):
            return matches
        earliest: int | None = None
        for number in visible:
            entry = inputs[number]
            if isinstance(entry, StreamInput):
                inputs[number] = of_rows = StreamInput(entry.subset(np.unique(rows.rows[number])))
                earliest = int(of_rows.times.min())
        for number in before.keys() - set(visible):
            inputs[number] = self._stream_input(number, before[number], earliest)
        has_earlier = occurs_in(matches.ids()[visible], self._evaluated(inputs).ids()[visible])
        return JoinedMatches(matches.inputs, rows.take(np.flatnonzero(~has_earlier)))

    def _within_windows(self, inputs: Sequence[JoinInput], rows: JoinedRows) -> JoinedRows:
        """The rows whose tuples are in their windows at the time of the latest of them."""
        times_at = {number: entry.times_at(rows.rows[number]) for number, entry in enumerate(inputs)}
        times = {number: of_rows for number, of_rows in times_at.items() if of_rows is not None}
        latest = np.maximum.reduce(list(times.values()))
        inside: npt.NDArray[np.bool_] = np.ones(len(rows), np.bool_)
        for number, of_input in times.items():
            window = self._ready.inputs[number].input.window
            begin, end = bounds_at(window.begin, latest), bounds_at(window.end, latest)
            inside &= True if begin is None else of_input >= begin
            inside &= True if end is None else of_input <= end
        return rows.take(np.flatnonzero(inside))

    def _stream_input(self, number: int, ids: Ids, earliest: int | None) -> StreamInput:
        """The tuples of an input with ids in an interval; partners of tuples from a time on."""
        entry, leaf = self._ready.inputs[number], self._leaves[number]
        state = self._state(leaf.stream_id)
        selector, stream = entry.selector, state.stream
        assert selector is not None
        begin, end = _constant_bounds(entry.input, earliest)

        def select(number: int) -> Hits | None:
            segment = state.segments[number]
            first = 0 if begin is None else segment.rows_before(begin, inclusive=False)
            last = segment.rows if end is None else segment.rows_before(end, inclusive=True)
            first, last = segment.positions_within(first, last, ids)
            return segment.hits(leaf, selector, first, last) if last > first else None

        matches = matches_within(stream.schema, state.segments, stream.next_id, ids, select)
        return StreamInput(matches, None if earliest is None else self._indexes)

    def _state(self, stream_id: int | None) -> StreamState:
        assert stream_id is not None
        return self._snapshot.streams[stream_id]


_NO_COLUMNS = pa.table({"_none": pa.nulls(0)})


def check_can_follow(query: Query) -> FlatJoin:
    """The join that is followed; raise for one whose rows can disappear, or appear without a tuple that arrives."""
    check_has_changes(query)
    flat = flat_join(query.source)
    if flat is None and _has_anti_join(query.source):
        raise Unsupported(
            "NOT EXISTS, NOT IN and ANTI JOIN have no changes: a row disappears when a partner arrives",
            hint="invoke it, or follow the rows without this condition",
        )
    if flat is None:
        raise Unsupported(
            "an outer join, ASOF JOIN, or a subquery whose value is computed for each row has no changes",
            hint="invoke it: its rows can disappear when a tuple arrives",
        )
    if any(entry.block is not None for entry in query.inputs):
        raise Unsupported("a join with a query in parentheses has no changes", hint="invoke it")
    if flat.has_hidden and all(query.inputs[number].kind is RelationKind.TABLE for number in flat.visible):
        raise Unsupported(
            "the rows of a table have no changes, whatever their partners are",
            hint="invoke it, or join the stream to the table: each row with a partner is a change",
        )
    if any(isinstance(bound, RowsBack) for entry in query.inputs for bound in (entry.window.begin, entry.window.end)):
        raise Unsupported("a join with a window of rows has no changes", hint="invoke it, or use a window of time")
    if any(isinstance(entry.window.end, Now) and entry.window.end.at(0) < 0 for entry in query.inputs):
        raise Unsupported(
            "a join whose window ends before NOW has no changes: its rows appear as time passes",
            hint="invoke it, or end its window at NOW",
        )
    if any(isinstance(factor, JoinOpaque) and factor.uses_now for factor in flat.join.factors):
        raise Unsupported("a join that uses NOW outside its windows has no changes", hint="invoke it")
    return flat


def _has_anti_join(tree: JoinTree) -> bool:
    match tree:
        case InnerJoin(sides):
            return any(map(_has_anti_join, sides))
        case Join(kind, left, right):
            return kind is JoinKind.ANTI or _has_anti_join(left) or _has_anti_join(right)
        case _:
            return False


def _constant_bounds(entry: Input, earliest: int | None) -> tuple[int | None, int | None]:
    """Times outside which no tuple of an input can be a partner of tuples from a time on."""
    begin, end = entry.window.begin, entry.window.end
    low = begin.micros if isinstance(begin, At) else None
    if isinstance(begin, Now) and earliest is not None:
        low = begin.at(earliest)
    return low, end.micros if isinstance(end, At) else None


def bounds_at(bound: Bound | None, times: Numbers) -> Numbers | int | None:
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
