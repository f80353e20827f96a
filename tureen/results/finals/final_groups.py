"""Final groups: which groups of a query with EMIT FINAL cannot change any more, at a position."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.aggregates.groups import GroupNumbers
from tureen.closed.tuple_groups import GREATEST_TIME, LEAST_TIME, Mask, Times
from tureen.matching import Selector
from tureen.position import Mark
from tureen.pot.registered import Registered, RegisteredInput
from tureen.query import STEP_END, STEP_START, key_name
from tureen.results.changes.changes import new_rows
from tureen.results.finals.final_rule import FinalRule, InputRule, Keys, StepTimes, StreamMoment, stream_inputs
from tureen.results.joins.join_ready import ReadyJoin
from tureen.results.rows.ready import Ready
from tureen.results.rows.stepping import whole_steps
from tureen.results.snapshot.closing_histories import ClosingHistories
from tureen.results.snapshot.past_state import state_up_to
from tureen.results.snapshot.stream_state import Snapshot, StreamState
from tureen.window import WHOLE, At, Now, Window

Marks = Mapping[int, Mark]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class FinalGroups:
    """Decides about the groups of one query, from one snapshot."""

    registered: Registered
    snapshot: Snapshot
    ready: Ready | ReadyJoin
    histories: ClosingHistories

    @cached_property
    def rule(self) -> FinalRule:
        """When groups are final."""
        numbers = stream_inputs(self.ready.query)
        streams = {number: self.state_of(number).stream for number in numbers}
        return FinalRule.of(
            self.ready.query,
            {number: stream.schema for number, stream in streams.items()},
            {number: stream.rules for number, stream in streams.items()},
        )

    def marks(self) -> dict[int, Mark]:
        """How far each stream was read at the end of the snapshot, and its punctuations."""
        return {
            stream_id: Mark(state.stream.next_id, punctuations=state.punctuation_end)
            for stream_id, state in self.snapshot.streams.items()
        }

    def knows(self, marks: Marks) -> bool:
        """Whether it is known what was closed at marks; not at old marks, if there were many punctuations since."""
        return all(
            not mark.punctuations or mark.punctuations >= self.histories.of(self.snapshot.streams[stream_id]).first
            for stream_id, mark in marks.items()
            if stream_id in self.snapshot.streams
        )

    def final(
        self, keys: Keys, bounds: StepTimes, marks: Marks | None = None, final_rule: FinalRule | None = None
    ) -> Mask:
        """Which groups are final by punctuations at marks that are known, by default at the end of the snapshot.

        Each group has a row then, unless another rule is used.
        """
        final_rule = final_rule or self.rule
        moments = {rule.number: self._moment(rule, marks) for rule in final_rule.inputs}

        def latest_times(rule: InputRule, keys: Keys, rows: Rows) -> Times:
            return self._times(rule, keys, rows, WHOLE, marks, np.maximum, LEAST_TIME)

        return final_rule.final(keys, bounds, moments, latest_times)

    def final_rows(self, rows: pa.Table | pa.RecordBatch, now: int, horizon: int | None) -> pa.Table:
        """The groups of an answer at NOW that are final."""
        table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
        return table.filter(pa.array(self.are_final(table, now, horizon)))

    def are_final(self, table: pa.Table, now: int, horizon: int | None) -> Mask:
        """Which groups of an answer at NOW are final; the rows have their keys and the bounds of their steps."""
        grouping = self.ready.query.grouping
        assert grouping is not None
        keys = [table.column(key_name(number)).combine_chunks() for number in range(len(grouping.keys))]
        bounds, is_over = self._steps(table, now, horizon)
        final = self.final(keys, bounds)
        self._remove_waiting(final, keys, bounds, now)
        return final | is_over

    def _steps(self, table: pa.Table, now: int, horizon: int | None) -> tuple[StepTimes, Mask]:
        """The times of the step of each group, and which steps are over, also for tuples as late as declared."""
        steps, window = self.ready.query.steps, self.ready.query.stream.window
        if steps is None:
            return StepTimes.unlimited(table.num_rows), np.zeros(table.num_rows, np.bool_)
        starts, ends = (table.column(name).cast(pa.int64()).to_numpy() for name in (STEP_START, STEP_END))
        span = window.span(now)
        lower = max((time for time in (span.begin, horizon) if time is not None), default=None)
        lateness = self.state_of(0).stream.rules.lateness or 0
        _, last = whole_steps(steps, lower, span.end, now - lateness)
        return StepTimes(starts, ends - 1), (starts - steps.origin) // steps.slide <= last

    def _remove_waiting(self, final: Mask, keys: Keys, bounds: StepTimes, now: int) -> None:
        """Remove groups that have tuples of the future, which enter the window when NOW reaches them."""
        for rule in self.rule.inputs:
            end, state = rule.window.end, self.state_of(rule.number)
            if not isinstance(end, Now) or not final.any():
                continue
            begin = end.at(now) + 1
            if all(segment.max_time < begin for segment in state.segments):
                continue
            rows = np.flatnonzero(final)
            waiting = self._times(rule, keys, rows, Window(At(begin)), None, np.minimum, GREATEST_TIME)
            final[rows] = waiting > np.minimum(bounds.last[rows], GREATEST_TIME - 1)

    def _moment(self, rule: InputRule, marks: Marks | None) -> StreamMoment:
        state = self.state_of(rule.number)
        history = self.histories.of(state)
        if marks is None:
            return StreamMoment(history, state.punctuation_end, state.stream.last_time)
        mark = marks.get(state.stream.id)
        if mark is None:
            return StreamMoment(history, 0, None)
        highest = None
        if rule.rules.lateness is not None:
            segments = state_up_to(state, mark.next_id).segments
            highest = max((segment.max_time for segment in segments), default=None)
        return StreamMoment(history, min(mark.punctuations or 0, state.punctuation_end), highest)

    def _times(
        self,
        rule: InputRule,
        keys: Keys,
        rows: Rows,
        window: Window,
        marks: Marks | None,
        choose: np.ufunc,
        none: int,
    ) -> Times:
        """For some groups, the earliest or latest time of an input's tuples with their values; or `none`."""
        state, (selector, leaf) = self.state_of(rule.number), self.input_of(rule.number)
        end = state.stream.next_id if marks is None else marks[state.stream.id].next_id
        names = [column.column for column in rule.fixed]
        time = state.stream.schema.time_column
        tuples = new_rows(state, list(dict.fromkeys([*names, time])), window, leaf, selector, 0, end).rows
        numbers = GroupNumbers([column.type for column in rule.fixed])
        of_tuples = numbers.codes([tuples.column(name).combine_chunks() for name in names], tuples.num_rows)
        picked = pa.array(rows)
        values = [column.values(keys, len(keys[0]) if keys else len(rows)).take(picked) for column in rule.fixed]
        of_groups = numbers.codes(values, len(rows))
        times = np.full(len(numbers), none)
        choose.at(times, of_tuples, tuples.column(time).cast(pa.int64()).to_numpy())
        of_each: Times = times[of_groups]
        return of_each

    def state_of(self, number: int) -> StreamState:
        """The stream of an input."""
        stream_id = self._leaf(number).stream_id
        assert stream_id is not None
        return self.snapshot.streams[stream_id]

    def _leaf(self, number: int) -> RegisteredInput:
        leaf = self.ready.query.leaf_numbers[number]
        assert leaf is not None
        return self.registered.inputs[leaf]

    def input_of(self, number: int) -> tuple[Selector, RegisteredInput]:
        """The condition of an input's tuples, and how it is registered."""
        ready = self.ready
        selector = ready.inputs[number].selector if isinstance(ready, ReadyJoin) else ready.selector
        assert selector is not None
        return selector, self._leaf(number)
