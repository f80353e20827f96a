"""Which tuples of a stream the changes of a query after a position need: those of a derived stream or of followers.

* Of a query over one stream: the tuples that were not read yet.
* Of steps: the tuples of steps that were not read yet.
* Of a join: those, and the tuples that a later one can be joined with. These are all except the ones that punctuations
  exclude (`tureen.joining.purging`), and those that have left their window for every time that a later tuple can have
  (`tureen.results.changes.early_propagation`).
* Of a join with hidden inputs, of which only the existence of a row counts: those, and the tuples of hidden inputs that
  tell whether a row was reported before. Such a tuple is needed until all tuples that it can have been joined with have
  left their windows, or until all streams have closed the values that it has in common with the rows.
* Of EMIT FINAL: those, and the tuples of groups that are not final.

Of other queries, all tuples. What is not needed at a position is not needed at a later one either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tureen.joining.join_input import Flags, Numbers
from tureen.joining.purging import PurgeRule
from tureen.joining.stem import Ids, Stem
from tureen.position import Mark, Position
from tureen.results.answering import Answers
from tureen.results.changes.closed_inputs import ClosedInputs
from tureen.results.changes.closed_steps import is_step_progress, last_step_of
from tureen.results.changes.early_propagation import Exhaustion
from tureen.results.finals.final_groups import FinalGroups
from tureen.results.following.followed_joins import FollowedJoins
from tureen.results.groups.followed_groups import PreparedGroups
from tureen.results.groups.open_groups import OpenGroups, ReadTo
from tureen.results.joins.join_ready import ReadyJoin
from tureen.results.joins.stem_input import StreamStem, TableStem
from tureen.results.needed_groups import JoinedGroups
from tureen.stems.key_index import valid_flags

BLOCK_TUPLES = 1 << 16
"""The number of tuples that are examined at once."""

IsNeeded = Callable[[Ids, int], bool]
"""Whether a tuple with an id in an interval is needed; all of them are before or at a time."""


def needed_by_changes(
    prepared: PreparedGroups, progress: str, stream_id: int, answers: Answers, joins: FollowedJoins
) -> IsNeeded:
    """Which tuples of a stream the changes of a query after its progress need."""
    query = prepared.query
    if not progress:
        return _everything
    if is_step_progress(progress):
        last, steps = last_step_of(progress), query.steps
        assert last is not None
        assert steps is not None
        begin = steps.origin + (last + 1) * steps.slide
        return lambda _, max_time: max_time >= begin
    position = Position.parse(progress)
    mark = position.marks.get(stream_id)
    if mark is None:
        return _everything
    later = _later_needs(prepared, position, stream_id, answers, joins)
    return lambda ids, max_time: ids[1] > mark.next_id or later(ids, max_time)


def _later_needs(
    prepared: PreparedGroups, position: Position, stream_id: int, answers: Answers, joins: FollowedJoins
) -> IsNeeded:
    """Which of the tuples that were read are needed."""
    registered, snapshot, ready = prepared
    if ready.query.final:
        finals, moment = FinalGroups(*prepared, answers.histories), ReadTo.of(position)
        if not finals.knows(moment.marks):
            return _everything
        if isinstance(ready, ReadyJoin):
            return JoinedGroups(finals, moment, stream_id).have_open
        return lambda ids, _: OpenGroups(ready.query).has_open(answers, prepared, ids, moment)
    if not isinstance(ready, ReadyJoin):
        return _nothing
    exhaustion = joins.exhaustion(registered, snapshot, ready)
    if exhaustion is None or not position.marks.keys() >= snapshot.streams.keys():
        return _everything
    return JoinPartners(prepared, exhaustion, position.marks, stream_id, answers).are_needed


def _everything(ids: Ids, max_time: int) -> bool:  # noqa: ARG001 - as `IsNeeded`
    return True


def _nothing(ids: Ids, max_time: int) -> bool:  # noqa: ARG001 - as `IsNeeded`
    return False


@dataclass(frozen=True)
class JoinPartners:
    """The tuples of a stream that tuples after some marks can be joined with."""

    prepared: PreparedGroups
    exhaustion: Exhaustion
    marks: Mapping[int, Mark]
    stream_id: int
    answers: Answers

    def are_needed(self, ids: Ids, max_time: int) -> bool:
        """Whether a tuple with an id in an interval, which were read, can be in a later row."""
        join = self.exhaustion.punctuated.join
        return any(self._are_needed(number, ids, max_time) for number in join.inputs_of(self.stream_id))

    def _are_needed(self, number: int, ids: Ids, max_time: int) -> bool:
        horizon = self._horizon(number)
        if horizon is not None and max_time < horizon:
            return False
        stem = self._stems[number]
        assert isinstance(stem, StreamStem)
        rows = self._joinable(number, stem, stem.rows_between(ids))
        if horizon is not None:
            rows = rows[stem.times_at(rows) >= horizon]
        is_settled = self._settled if number in self.exhaustion.hidden else self._rule.dead
        blocks = (rows[begin : begin + BLOCK_TUPLES] for begin in range(0, len(rows), BLOCK_TUPLES))
        return not all(is_settled(number, block).all() for block in blocks)

    def _joinable(self, number: int, stem: StreamStem, rows: Numbers) -> Numbers:
        """The tuples that may be joined: NULL equals nothing."""
        names = list(self.exhaustion.punctuated.classes.columns_of(number))
        valid = [valid_flags(column) for column in stem.columns_at(names, rows)]
        return rows[np.logical_and.reduce(valid)] if valid else rows

    def _horizon(self, number: int) -> int | None:
        """The time before which no tuple of an input is needed."""
        if number in self.exhaustion.hidden:
            # Also tuples that no later one is joined with tell whether a row was reported.
            return self.exhaustion.settled_before(number, self._closed)
        return self.exhaustion.horizon(number, self._closed)

    def _settled(self, number: int, rows: Numbers) -> Flags:
        """Which tuples of a hidden input were joined only with rows that no later tuple is joined with."""
        classes, stem = self.exhaustion.reported_classes(number), self._stems[number]
        values = dict(zip(classes.values(), stem.columns_at(list(classes), rows), strict=True))
        settled = np.ones(len(rows), np.bool_)
        for each in self.exhaustion.punctuated.stream_inputs():
            columns = self.exhaustion.columns(each, values)
            settled &= self._closed.closes(each, columns) if columns else False
        return settled

    @cached_property
    def _rule(self) -> PurgeRule:
        punctuated = self.exhaustion.punctuated
        return PurgeRule(punctuated.join, punctuated.classes, self._stems, self._closed.closes)

    @cached_property
    def _closed(self) -> ClosedInputs:
        return ClosedInputs(self.exhaustion.punctuated, self.prepared.snapshot, self.marks)

    @cached_property
    def _stems(self) -> list[Stem]:
        """The tuples of all inputs that were read."""
        stems: list[Stem] = []
        punctuated, snapshot = self.exhaustion.punctuated, self.prepared.snapshot
        for number, relation in enumerate(punctuated.join.relations):
            if relation.stream_id is not None:
                stems.append(self._closed.stem(number, (0, self.marks[relation.stream_id].next_id)))
            else:
                assert relation.table_id is not None
                stems.append(TableStem(self.answers.content(snapshot, relation.table_id), punctuated.indexes))
        return stems
