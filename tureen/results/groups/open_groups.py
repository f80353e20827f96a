"""Open groups: the rows of groups that are not final yet, from position to position.

The rows are those that the query without GROUP BY has as changes. So a group has all its rows whether they are still in
a sliding window or not, and does not depend on when it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.aggregates.expression_values import evaluate
from tureen.aggregates.groups import GroupNumbers
from tureen.closed.tuple_groups import Mask
from tureen.join import Field, field_name
from tureen.position import Mark, Position
from tureen.query import Query
from tureen.results.answering import Answers
from tureen.results.changes.changes import new_rows
from tureen.results.finals.final_groups import FinalGroups
from tureen.results.finals.final_rule import StepTimes, stream_inputs
from tureen.results.groups.followed_groups import PreparedGroups
from tureen.results.joins.join_ready import ReadyJoin
from tureen.results.rows.axis import TimeAxis
from tureen.results.rows.grouped import groups_of_rows
from tureen.results.rows.stepping import EARLIEST, LATEST, Stepping
from tureen.results.snapshot.stream_state import StreamState
from tureen.window import At

Numbers = npt.NDArray[np.int64]

MANY_GROUPS = 1 << 16
"""The number of groups from which on the numbers of groups that are gone are dropped."""


class ReadTo(NamedTuple):
    """How far each stream and its punctuations were read, and which steps were over."""

    marks: Mapping[int, Mark]
    now: int | None

    @classmethod
    def of(cls, position: Position) -> ReadTo:
        """Of a position of the query."""
        return cls(dict(position.marks), position.now)

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for equal moments."""
        marks = tuple(sorted((stream, mark.next_id, mark.punctuations or 0) for stream, mark in self.marks.items()))
        return marks, self.now


class OpenGroups:
    """The rows of the groups of a query that are not final at a moment."""

    def __init__(self, query: Query) -> None:
        """At the beginning: no rows."""
        assert query.grouping is not None
        self._query = query
        self._rows: pa.Table | None = None
        self._types = [key.type for key in query.grouping.keys]
        self._groups = GroupNumbers(self._types)
        self._codes: Numbers = np.empty(0, np.int64)
        self._steps: Numbers = np.empty(0, np.int64)
        self.moment = ReadTo({}, None)

    def __len__(self) -> int:
        """The number of rows."""
        return len(self._codes)

    def skip_to(self, answers: Answers, prepared: PreparedGroups, moment: ReadTo) -> None:
        """Advance to a moment without computing the groups that became final."""
        final = self._read_on(answers, prepared, moment)
        self._drop(final)

    def advance(self, answers: Answers, prepared: PreparedGroups, moment: ReadTo) -> pa.Table | None:
        """Advance to a moment; returns the groups that became final since, before HAVING and the select list."""
        final = self._read_on(answers, prepared, moment)
        groups = self._computed(prepared, final) if final.any() else None
        self._drop(final)
        return groups

    def _read_on(self, answers: Answers, prepared: PreparedGroups, moment: ReadTo) -> Mask:
        """Add new rows; returns which rows belong to groups that are final at the moment."""
        self._add(_new_rows(answers, prepared, self.moment.marks, moment.marks))
        self.moment = moment
        return self._final(answers, prepared, moment)

    def has_open(self, answers: Answers, prepared: PreparedGroups, ids: tuple[int, int], moment: ReadTo) -> bool:
        """Whether a tuple of the query's stream with an id in an interval is in a group that is open at a moment."""
        (stream_id,) = prepared.registered.stream_ids
        first, end = ids
        self._add(_new_rows(answers, prepared, {stream_id: Mark(first)}, {stream_id: Mark(end)}))
        return not self._final(answers, prepared, moment).all()

    def _final(self, answers: Answers, prepared: PreparedGroups, moment: ReadTo) -> Mask:
        """Which rows belong to groups that are final at a moment."""
        if not len(self):
            return np.zeros(0, np.bool_)
        pairs, of_rows = np.unique(np.stack([self._codes, self._steps]), axis=1, return_inverse=True)
        codes, steps = pairs
        bounds = self._bounds(steps)
        final_groups = FinalGroups(*prepared, answers.histories)
        final = final_groups.final(self._groups.columns(codes.astype(np.int32)), bounds, moment.marks)
        if self._query.steps is not None and moment.now is not None:
            final |= bounds.last < moment.now
        of_each: Mask = final[of_rows.reshape(-1)]
        return of_each

    def _add(self, rows: pa.Table) -> None:
        if not len(rows):
            return
        grouping, steps = self._query.grouping, self._query.steps
        assert grouping is not None
        numbers = np.zeros(len(rows), np.int64)
        if steps is not None:
            source, numbers = self._stepping.of_each(self._stepping.axis.coordinates([], rows))
            is_open = self._is_open(numbers)
            rows, numbers = rows.take(pa.array(source[is_open])), numbers[is_open]
        codes = self._groups.codes(evaluate(grouping.keys, rows), len(rows)).astype(np.int64)
        self._rows = rows if self._rows is None else pa.concat_tables([self._rows, rows])
        self._codes = np.concatenate([self._codes, codes])
        self._steps = np.concatenate([self._steps, numbers])

    def _is_open(self, steps: Numbers) -> Mask:
        """Which steps lie in the constant bounds of the window, and were not over before."""
        bounds, window = self._bounds(steps), self._query.stream.window
        is_open: Mask = np.ones(len(steps), np.bool_)
        if isinstance(window.begin, At):
            is_open &= bounds.first >= window.begin.micros
        if isinstance(window.end, At):
            is_open &= bounds.last <= window.end.micros
        if self.moment.now is not None:
            is_open &= bounds.last >= self.moment.now
        return is_open

    def _bounds(self, numbers: Numbers) -> StepTimes:
        steps = self._query.steps
        if steps is None:
            return StepTimes.unlimited(len(numbers))
        starts = steps.origin + numbers * steps.slide
        return StepTimes(starts, starts + steps.width - 1)

    @property
    def _stepping(self) -> Stepping:
        steps, grouping = self._query.steps, self._query.grouping
        assert steps is not None
        assert grouping is not None
        return Stepping(steps, [], EARLIEST, LATEST, TimeAxis([], TIME, steps.origin), 0)

    def _computed(self, prepared: PreparedGroups, final: Mask) -> pa.Table:
        """The groups of some rows."""
        assert self._rows is not None
        picked = np.flatnonzero(final)
        rows, steps = self._rows.take(pa.array(picked)), self._steps[picked]
        times = rows.column(TIME).to_numpy()
        order = np.lexsort((times, steps))
        stepping = None if self._query.steps is None else self._stepping
        batch = groups_of_rows(prepared.ready.plans[0], rows.take(pa.array(order)), steps[order], stepping)
        return pa.Table.from_batches([batch])

    def _drop(self, final: Mask) -> None:
        if not final.any():
            return
        assert self._rows is not None
        keep = np.flatnonzero(~final)
        self._rows = self._rows.take(pa.array(keep)).combine_chunks()
        self._codes, self._steps = self._codes[keep], self._steps[keep]
        if len(self._groups) > MANY_GROUPS and len(self._groups) > 4 * len(np.unique(self._codes)):
            assert self._query.grouping is not None
            self._groups = GroupNumbers(self._types)
            keys = evaluate(self._query.grouping.keys, self._rows)
            self._codes = self._groups.codes(keys, len(self._rows)).astype(np.int64)


TIME = "_time"
"""The column with the time of a row in microseconds: of a joined row, that of its earliest tuple."""


def _new_rows(
    answers: Answers, prepared: PreparedGroups, since: Mapping[int, Mark], until: Mapping[int, Mark]
) -> pa.Table:
    """The rows of the query without its groups that joined its answer between two moments, with their time."""
    registered, snapshot, ready = prepared
    if isinstance(ready, ReadyJoin):
        return _new_joined_rows(answers, prepared, since, until)
    state = snapshot.streams[registered.stream_ids[0]]
    first, last = _interval(state, since, until)
    time = state.stream.schema.time_column
    names = sorted({*ready.query.columns, time})
    new = new_rows(state, names, ready.query.stream.window, registered.stream, ready.selector, first, last)
    return new.rows.append_column(TIME, new.rows.column(time).cast(pa.int64()))


def _interval(state: StreamState, since: Mapping[int, Mark], until: Mapping[int, Mark]) -> tuple[int, int]:
    stream_id = state.stream.id
    return since[stream_id].next_id if stream_id in since else 0, until[stream_id].next_id


def _new_joined_rows(
    answers: Answers, prepared: PreparedGroups, since: Mapping[int, Mark], until: Mapping[int, Mark]
) -> pa.Table:
    registered, snapshot, ready = prepared
    assert isinstance(ready, ReadyJoin)
    fields, times = ready.fields, []
    for number in stream_inputs(ready.query):
        leaf = ready.query.leaf_numbers[number]
        assert leaf is not None
        schema = snapshot.streams[registered.inputs[leaf].stream_id or 0].stream.schema
        times.append(field_name(Field(number, schema.time_column)))
        if times[-1] not in fields.names:
            fields = fields.append(schema.stored.field(schema.time_column).with_name(times[-1]))
    rows_only = replace(ready.query, grouping=None, final=False, order=())
    marks = {stream_id: since.get(stream_id, Mark(0)) for stream_id in snapshot.streams}
    joined = answers.changes_of_join(
        registered.inputs,
        snapshot,
        replace(ready, query=rows_only, fields=fields),
        Position(0, {stream_id: Mark(mark.next_id) for stream_id, mark in marks.items()}),
        {stream_id: mark.next_id for stream_id, mark in until.items()},
    ).rows
    micros = np.minimum.reduce([joined.column(name).cast(pa.int64()).to_numpy() for name in times])
    return joined.append_column(TIME, pa.array(micros))
