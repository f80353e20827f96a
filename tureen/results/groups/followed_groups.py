"""Followed groups: what changed in the groups of a query, from moment to moment, for all of its followers.

Followers of queries with the same groups in the same window share one `FollowedGroups`: the groups are computed once
for each moment. The last differences are kept, so that a follower which is a few moments behind gets their sum. For any
other position, the groups at that position are computed from its tuples.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Hashable
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from tureen.bounded_cache import BoundedCache
from tureen.errors import TureenError
from tureen.position import Position
from tureen.pot.registered import Registered
from tureen.query import Query
from tureen.results.answering import Answers
from tureen.results.changes.changes import mark_of
from tureen.results.groups.group_changes import FollowedOutputs
from tureen.results.groups.group_deltas import GroupDelta, GroupIdentity, NumberedGroups, composed, difference
from tureen.results.groups.incremental_groups import GroupRows, IncrementalGroups, WindowContent
from tureen.results.joins.join_ready import ReadyJoin
from tureen.results.rows.ready import Ready
from tureen.results.rows.window_edges import UNKNOWN_DELAY, needs_polling, next_edge, next_step_end
from tureen.results.snapshot.past_state import has_all_tuples, state_up_to
from tureen.results.snapshot.stream_state import Snapshot
from tureen.window import RowsBack

KEPT_DELTAS = 64
"""How many of the last differences are kept."""

KEPT_ROWS = 1 << 17
"""The maximum number of rows in them, if there is more than one."""

KEPT_MOMENTS = 4096
"""How many of the last positions are known."""

MANY_GROUPS = 1 << 16
"""The number of groups from which on the numbers of groups that are gone are dropped."""


class PreparedGroups(NamedTuple):
    """A registered query with groups, and the snapshot that it is answered from."""

    registered: Registered
    snapshot: Snapshot
    ready: Ready | ReadyJoin

    @property
    def query(self) -> Query:
        """The bound query."""
        return self.ready.query


class GroupSource(Protocol):
    """Computes the groups of a query moment by moment."""

    def advance(self, prepared: PreparedGroups, now: int) -> GroupRows:
        """Advance to a moment; returns the groups that may differ."""

    def rows(self) -> pa.Table:
        """The rows of all groups at the last moment."""

    @property
    def count(self) -> int:
        """The number of these groups."""


class PartialSource:
    """Groups that are computed from partial aggregates, only where tuples join or leave."""

    def __init__(self, answers: Answers, ready: Ready) -> None:
        """Compute the groups of a query over one stream."""
        self._answers, self._groups = answers, IncrementalGroups(ready.plans[0])
        self._evaluated: pa.Table | None = None
        """The groups, while they cannot be computed from partial aggregates."""

    def advance(self, prepared: PreparedGroups, now: int) -> GroupRows:
        """Advance to a moment; returns the groups that may differ."""
        registered, snapshot, ready = prepared
        assert isinstance(ready, Ready)
        state = snapshot.streams[registered.stream_ids[0]]
        span, horizon = ready.query.stream.window.span(now), self._answers.horizon(state.stream)
        begin = max((time for time in (span.begin, horizon) if time is not None), default=None)
        content = WindowContent(state.stream.next_id, begin, span.end)
        with self._answers.structure(state, ready.plans[0]) as structure:
            changed = self._groups.advance(structure, state, content, registered.inputs[0], ready.selector)
        if changed is None:
            before = self.rows()
            self._evaluated = self._answers.rows_before_finish(registered, snapshot, ready, now)
            return GroupRows(before, self._evaluated)
        if self._evaluated is not None:
            before, self._evaluated = self._evaluated, None
            return GroupRows(before, self.rows())
        return changed

    def rows(self) -> pa.Table:
        """The rows of all groups at the last moment."""
        return self._groups.rows() if self._evaluated is None else self._evaluated

    @property
    def count(self) -> int:
        """The number of these groups."""
        return len(self._groups) if self._evaluated is None else len(self._evaluated)


class EvaluatedSource:
    """Groups that are all computed again at each moment: of joins, steps, DISTINCT values, and windows of rows."""

    def __init__(self, answers: Answers) -> None:
        """Compute groups as an invocation does."""
        self._answers = answers
        self._rows: pa.Table | None = None

    def advance(self, prepared: PreparedGroups, now: int) -> GroupRows:
        """Advance to a moment; returns all groups."""
        before = self._rows
        self._rows = self._answers.rows_before_finish(*prepared, now)
        return GroupRows(self._rows.slice(0, 0) if before is None else before, self._rows)

    def rows(self) -> pa.Table:
        """The rows of all groups at the last moment."""
        assert self._rows is not None
        return self._rows

    @property
    def count(self) -> int:
        """The number of these groups."""
        return len(self.rows())


class FollowedGroups:
    """The groups of queries that differ in HAVING and the select list only."""

    def __init__(self, answers: Answers, prepared: PreparedGroups) -> None:
        """Follow the groups of a query; `advance` must be called first."""
        self.lock = threading.Lock()
        self._answers = answers
        self._source = source_of(answers, prepared)
        self.identity = GroupIdentity(prepared.query)
        self._deltas: deque[GroupDelta] = deque()
        self._dropped = 0
        """How many differences were dropped before the first one that is kept."""
        self._moments: OrderedDict[tuple[object, ...], int] = OrderedDict()
        """The number of differences before each position."""
        self.position: Position | None = None
        self.next_edge: int | None = None
        """The earliest NOW at which time alone may change the groups; None if it never does."""
        self._checked: BoundedCache[Hashable, int] = BoundedCache(KEPT_MOMENTS)
        """For each query, the number of differences up to which its expressions raised no error for any group."""
        self._has_tables = bool(prepared.snapshot.tables)
        self._tables: object = None
        self._nothing = NumberedGroups(np.empty(0, np.int64), pa.table({}))

    def advance(self, prepared: PreparedGroups, now: int) -> Position:
        """Advance to the present; returns its position."""
        snapshot, before = prepared.snapshot, self.position
        position = snapshot.position_at(now)
        if before is not None and not self._has_news(before, position, snapshot, now):
            return self._note(position)
        rows = self._source.advance(prepared, now)
        if before is None:
            self._nothing = self.identity.numbered(self._source.rows().slice(0, 0))
        else:
            delta = difference(self.identity.numbered(rows.before), self.identity.numbered(rows.after))
            if not delta.is_empty:
                self._deltas.append(delta)
        self._tables = _contents(snapshot)
        self.next_edge = edge_after(self._answers, prepared, now)
        self._trim()
        return self._note(position)

    def is_after(self, position: Position) -> bool:
        """Whether the last moment is after a position, so that the groups at it are not those of the last moment."""
        last = self.position
        if last is None or (last.marks == position.marks and last.now == position.now):
            return False
        if any(mark.next_id > position.marks[stream].next_id for stream, mark in last.marks.items()):
            return True
        return last.now is not None and position.now is not None and last.now > position.now

    def _has_news(self, before: Position, position: Position, snapshot: Snapshot, now: int) -> bool:
        """Whether tuples arrived, a table was replaced, or an edge passed a tuple."""
        if position.marks != before.marks or self._tables != _contents(snapshot):
            return True
        assert before.now is not None
        return now < before.now or (self.next_edge is not None and now >= self.next_edge)

    def _note(self, position: Position) -> Position:
        self.position = position
        self._moments[self._key(position)] = self._dropped + len(self._deltas)
        if len(self._moments) > KEPT_MOMENTS:
            self._moments.popitem(last=False)
        return position

    def _key(self, position: Position) -> tuple[object, ...]:
        """What determines the answer at a position: also the commit, if tables are joined, which may be replaced."""
        marks = tuple(sorted((stream, mark.next_id) for stream, mark in position.marks.items()))
        return (marks, position.now, position.seq if self._has_tables else None)

    def _trim(self) -> None:
        """Drop the oldest differences, and the numbers of groups if most groups are gone."""
        if len(self.identity) > MANY_GROUPS and len(self.identity) > 4 * self._source.count:
            self._dropped += len(self._deltas)
            self._deltas.clear()
            self._moments.clear()
            self.identity.clear()
        rows = sum(delta.rows for delta in self._deltas)
        while len(self._deltas) > KEPT_DELTAS or (rows > KEPT_ROWS and len(self._deltas) > 1):
            rows -= self._deltas.popleft().rows
            self._dropped += 1

    def since(self, prepared: PreparedGroups, since: Position) -> GroupDelta | None:
        """What changed from a position to the last moment; None if the groups at the position are no longer known."""
        number = self._moments.get(self._key(since), -1) - self._dropped
        if number >= 0:
            deltas = list(self._deltas)[number:]
            return composed(deltas) if deltas else GroupDelta(self._nothing, self._nothing)
        before = self._rows_at(prepared, since)
        if before is None:
            return None
        return difference(self.identity.numbered(before), self.identity.numbered(self._source.rows()))

    def check(self, prepared: PreparedGroups, since: Position, outputs: FollowedOutputs) -> None:
        """Raise if an expression of a query fails for a group of the last moment.

        The groups that changed since a position have just been read without an error. Others are evaluated if they
        have changed since all groups were.
        """
        checked, last = self._checked.find(outputs.key), self._dropped + len(self._deltas)
        if checked is None or checked < self._dropped:
            everything = self.since(prepared, Position(0))
            assert everything is not None
            outputs.evaluate(everything.after)
        elif self._moments.get(self._key(since), last) > checked:
            outputs.evaluate(composed(list(self._deltas)[checked - self._dropped :]).after)
        self._checked.put(outputs.key, last)

    def between(self, prepared: PreparedGroups, since: Position, end: Position) -> GroupDelta | None:
        """What changed between two positions; None if the groups at one of them are no longer known."""
        first, last = (self._moments.get(self._key(position), -1) - self._dropped for position in (since, end))
        if first >= 0 and last >= first:
            deltas = list(self._deltas)[first:last]
            return composed(deltas) if deltas else GroupDelta(self._nothing, self._nothing)
        before, after = self._rows_at(prepared, since), self._rows_at(prepared, end)
        if before is None or after is None:
            return None
        before = after.slice(0, 0) if not before.column_names else before
        return difference(self.identity.numbered(before), self.identity.numbered(after))

    def forget(self, position: Position) -> None:
        """Forget the groups at a position: a follower that continues from it gets all rows again."""
        self._moments.pop(self._key(position), None)

    def _rows_at(self, prepared: PreparedGroups, since: Position) -> pa.Table | None:
        """The rows of all groups at a position; None if tuples have expired that were in them, or a table replaced."""
        registered, snapshot, ready = prepared
        if not since.marks and since.now is None:
            # The beginning, before all rows.
            return self._nothing.rows
        if since.now is None:
            raise TureenError(
                "the position does not tell the NOW of an answer",
                hint="changes of groups continue from the position of an answer or a change of the same query",
            )
        if any(table.changed_seq > since.seq for table in snapshot.tables.values()):
            return None
        streams = {}
        for leaf, entry in zip(ready.query.leaves, registered.inputs, strict=True):
            if entry.stream_id is None:
                continue
            state = snapshot.streams[entry.stream_id]
            window, horizon = leaf.window, self._answers.horizon(state.stream)
            begin = None if isinstance(window.begin, RowsBack) else window.span(since.now).begin
            if not has_all_tuples(state, begin, horizon):
                return None
            streams[entry.stream_id] = state_up_to(state, mark_of(state, since).next_id)
        past = replace(snapshot, streams=streams, joins={})
        return self._answers.rows_before_finish(registered, past, ready, since.now)


def source_of(answers: Answers, prepared: PreparedGroups) -> GroupSource:
    """What computes the groups of a query."""
    ready = prepared.ready
    if isinstance(ready, Ready) and is_incremental(ready):
        return PartialSource(answers, ready)
    return EvaluatedSource(answers)


def is_incremental(ready: Ready | ReadyJoin) -> bool:
    """Whether only the groups are computed that tuples join or leave."""
    if isinstance(ready, ReadyJoin) or ready.query.steps is not None or len(ready.plans) != 1:
        return False
    window, plans = ready.query.stream.window, ready.plans[0]
    counts = isinstance(window.begin, RowsBack) or isinstance(window.end, RowsBack)
    return plans.uses_partials and plans.partial.distinct is None and not counts


def edge_after(answers: Answers, prepared: PreparedGroups, now: int) -> int | None:
    """The earliest NOW after `now` at which time alone may change the groups."""
    registered, snapshot, ready = prepared
    edges = [] if ready.query.steps is None else [next_step_end(ready.query.steps, now)]
    if needs_polling(ready.query):
        edges.append(now + UNKNOWN_DELAY)
    for leaf, entry in zip(ready.query.leaves, registered.inputs, strict=True):
        if entry.stream_id is not None:
            state = snapshot.streams[entry.stream_id]
            edge = next_edge(state, leaf.window, now, answers.horizon(state.stream))
            edges += [] if edge is None else [edge]
    return min(edges, default=None)


def _contents(snapshot: Snapshot) -> list[str]:
    return [table.content.path for _, table in sorted(snapshot.tables.items())]
