"""Following final groups: the groups of queries with EMIT FINAL that became final since a position, each once."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from tureen.bounded_cache import BoundedCache
from tureen.position import Mark, Position
from tureen.pot.catalog import Catalog
from tureen.query import Query
from tureen.results.answering import Answers
from tureen.results.finals.final_groups import FinalGroups
from tureen.results.groups.followed_groups import PreparedGroups
from tureen.results.groups.group_changes import ChangedRow, GroupChanges, GroupOutputs, in_order
from tureen.results.groups.group_deltas import GroupDelta, GroupIdentity, NumberedGroups
from tureen.results.groups.open_groups import OpenGroups, ReadTo
from tureen.results.rows.window_edges import final_step_end, next_step_end
from tureen.results.snapshot.past_state import latest_time
from tureen.results.snapshot.stream_state import StreamState
from tureen.results.snapshot.unread_places import unread_places

FOLLOWED_QUERIES = 256
"""The number of queries whose open groups a process keeps; those of others are read again."""

LEAST_DELAY = 0.02
"""The least number of seconds until the next read, if time alone closes steps."""

KEPT_READS = 64
"""The number of reads that are kept for followers that are slightly behind."""


class FollowedFinals:
    """The open groups of one query, and the groups that became final in the last reads."""

    def __init__(self) -> None:
        """Nothing was read yet."""
        self.lock = threading.Lock()
        self.open: OpenGroups | None = None
        self._reads: deque[tuple[tuple[object, ...], pa.Table | None]] = deque()
        """For each of the last reads, the moment before it, and the groups."""

    def advance(self, answers: Answers, prepared: PreparedGroups, moment: ReadTo, since: ReadTo | None) -> None:
        """Advance to a moment; the first call starts at the position of the follower."""
        if self.open is None or self.is_behind(moment):
            self._reads.clear()
            self.open = OpenGroups(prepared.query)
            start = moment if since is None else since
            if start.marks:
                self.open.skip_to(answers, prepared, start)
        if self.open.moment.key == moment.key:
            return
        before = self.open.moment.key
        try:
            self._reads.append((before, self.open.advance(answers, prepared, moment)))
        except BaseException:
            # It may have read on without computing the groups.
            self.open = None
            raise
        if len(self._reads) > KEPT_READS:
            self._reads.popleft()

    def is_behind(self, moment: ReadTo) -> bool:
        """Whether a moment is before that of the open groups, as after a backup was restored."""
        assert self.open is not None
        return any(
            stream_id not in moment.marks or moment.marks[stream_id].next_id < mark.next_id
            for stream_id, mark in self.open.moment.marks.items()
        )

    def since(self, moment: ReadTo) -> list[pa.Table] | None:
        """The groups that became final since a moment; None if that is not one of the last reads."""
        assert self.open is not None
        if moment.key == self.open.moment.key:
            return []
        keys = [key for key, _ in self._reads]
        if moment.key not in keys:
            return None
        reads = list(self._reads)[keys.index(moment.key) :]
        return [groups for _, groups in reads if groups is not None]


class FinalFollowing:
    """The followed queries with EMIT FINAL of one process."""

    def __init__(self, catalog: Catalog, answers: Answers) -> None:
        """Start without any."""
        self._catalog, self._answers = catalog, answers
        self._followed: BoundedCache[str, FollowedFinals] = BoundedCache(FOLLOWED_QUERIES)
        self._in_feeds: BoundedCache[str, FollowedFinals] = BoundedCache(FOLLOWED_QUERIES)
        """Feeds read between positions of their own."""

    def read(
        self, prepare: Callable[[], PreparedGroups], since: Position | None, feed_end: Position | None
    ) -> GroupChanges:
        """The changes since a position; with `feed_end`, between two positions of a feed."""
        if since is not None and feed_end is not None:
            return self.changes_between(prepare, since, feed_end)
        return self.changes(prepare, since)

    def changes(self, prepare: Callable[[], PreparedGroups], since: Position | None) -> GroupChanges:
        """The groups of a query that became final since a position; without one, none yet."""
        prepared = prepare()
        followed = self._followed.get_once(prepared.registered.id, FollowedFinals)
        with followed.lock:
            # Read again: another thread may have gone on to a later moment.
            prepared = prepare()
            end = self._end(prepared)
            due = self._due(prepared, end)
            if since is None:
                return GroupChanges((), end, end, due)
            if since.unread is not None:
                rest = self._rest(prepared, since)
                if rest is not None:
                    return rest
                since = replace(since, unread=None)
            start = ReadTo.of(since)
            if not FinalGroups(*prepared, self._answers.histories).knows(start.marks):
                return self._reset(prepared, end, due)
            followed.advance(self._answers, prepared, ReadTo.of(end), start)
            groups = followed.since(start)
            if groups is None:
                groups = self._between(prepared, start, ReadTo.of(end))
            return GroupChanges(in_order(_changed(prepared.query, groups)), since, end, due)

    def changes_between(self, prepare: Callable[[], PreparedGroups], since: Position, end: Position) -> GroupChanges:
        """The groups of a query that became final between two positions of a feed, whose NOW is the wall clock."""
        followed = self._in_feeds.get_once(prepare().registered.id, FollowedFinals)
        with followed.lock:
            prepared = prepare()
            start, last = self._moment(prepared, since), self._moment(prepared, end)
            due = self._due(prepared, replace(end, now=last.now))
            is_known = FinalGroups(*prepared, self._answers.histories).knows(start.marks)
            if not is_known:
                groups = self._between(prepared, ReadTo({}, None), last)
                return GroupChanges(
                    [ChangedRow("reset", 0, {}), *in_order(_changed(prepared.query, groups))], since, end, due
                )
            known = None
            # Otherwise another feed has read on.
            if followed.open is None or not followed.is_behind(last):
                followed.advance(self._answers, prepared, last, start)
                known = followed.since(start)
            groups = self._between(prepared, start, last) if known is None else known
            return GroupChanges(in_order(_changed(prepared.query, groups)), since, end, due)

    def _moment(self, prepared: PreparedGroups, position: Position) -> ReadTo:
        """What a position of a feed means for a query: its streams, and the last step that is final then."""
        states = {
            stream_id: state for stream_id, state in prepared.snapshot.streams.items() if stream_id in position.marks
        }
        marks = {stream_id: self._mark(state, position.marks[stream_id]) for stream_id, state in states.items()}
        steps, (stream_id, *_) = prepared.query.steps, prepared.registered.stream_ids
        if steps is None or stream_id not in states:
            return ReadTo(marks, None)
        state, now = states[stream_id], position.now
        if state.stream.clock == "stream":
            now = latest_time(state, marks[stream_id].next_id)
        return ReadTo(marks, None if now is None else final_step_end(steps, now, state.stream.rules))

    def _mark(self, state: StreamState, mark: Mark) -> Mark:
        """A mark with the number of the next punctuation, and without changes within a tuple."""
        number = mark.punctuations
        if number is None:
            number = unread_places(self._catalog, state, mark, mark.next_id).first
        return Mark(mark.next_id, punctuations=number)

    def _rest(self, prepared: PreparedGroups, position: Position) -> GroupChanges | None:
        """The rest of the changes of a read that was interrupted; None if there are none."""
        unread = position.unread
        assert unread is not None
        since, end = Position(0, unread.marks, 0, unread.now), replace(position, unread=None)
        groups = self._between(prepared, ReadTo.of(since), ReadTo.of(end))
        changed = [change for change in _changed(prepared.query, groups) if change.hash > unread.after]
        return GroupChanges(in_order(changed), since, end, 0.0) if changed else None

    def _reset(self, prepared: PreparedGroups, end: Position, due: float | None) -> GroupChanges:
        """All final groups, where it is not known which of them were final at the position."""
        groups = self._between(prepared, ReadTo({}, None), ReadTo.of(end))
        changed = [ChangedRow("reset", 0, {}), *in_order(_changed(prepared.query, groups))]
        return GroupChanges(changed, Position(0), end, due)

    def _between(self, prepared: PreparedGroups, start: ReadTo, end: ReadTo) -> list[pa.Table]:
        """The groups that became final between two moments."""
        open_groups = OpenGroups(prepared.query)
        if start.marks:
            open_groups.skip_to(self._answers, prepared, start)
        groups = open_groups.advance(self._answers, prepared, end)
        return [] if groups is None else [groups]

    def _end(self, prepared: PreparedGroups) -> Position:
        snapshot = prepared.snapshot
        marks = FinalGroups(*prepared, self._answers.histories).marks()
        # Of NOW, only the steps that are over matter.
        now = self._answers.last_step_end(prepared.query, snapshot)
        return Position(snapshot.seq, marks, snapshot.pushes, now)

    def _due(self, prepared: PreparedGroups, end: Position) -> float | None:
        """The number of seconds until time alone closes the next step."""
        steps = prepared.query.steps
        (state, *_) = prepared.snapshot.streams.values()
        if steps is None or end.now is None or state.stream.clock == "stream":
            return None
        now = self._answers.now_of([state.stream]) - (state.stream.rules.lateness or 0)
        return max((next_step_end(steps, now) - now) / 1_000_000, LEAST_DELAY)


def _changed(query: Query, groups: list[pa.Table]) -> list[ChangedRow]:
    if not groups:
        return []
    rows = pa.concat_tables(groups)
    empty = NumberedGroups(np.empty(0, np.int64), rows.slice(0, 0))
    delta = GroupDelta(empty, NumberedGroups(np.arange(len(rows)), rows))
    return GroupOutputs(query).changed(delta, GroupIdentity(query).columns, only_turns=False)
