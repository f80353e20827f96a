"""Following groups: reads what changed in the answers of queries with groups since a position."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
from time import thread_time

from tureen.bounded_cache import BoundedCache
from tureen.errors import QueryFailed, Unsupported
from tureen.position import Mark, Position
from tureen.query import Query
from tureen.results.answering import Answers
from tureen.results.groups.followed_groups import FollowedGroups, PreparedGroups, is_incremental
from tureen.results.groups.group_changes import (
    ChangedRow,
    FollowedOutputs,
    GroupChanges,
    GroupOutputs,
    after_reset,
    in_order,
)
from tureen.results.rows.ready import Ready
from tureen.results.snapshot.past_state import latest_time

FOLLOWED_GROUPINGS = 512
"""The number of groupings that a process keeps up to date; others are computed again when they are read."""

LEAST_DELAY = 0.02
"""The minimum number of seconds between reads because of time alone: changes within it are read together."""

REST = 4.0
"""The minimum delay as a multiple of the last read's processor time, so that time alone does not keep a core busy."""


def check_can_follow_groups(query: Query) -> None:
    """Raise for a query with groups whose changes are not defined."""
    if query.overs:
        raise Unsupported(
            "groups with window functions have no changes", hint="invoke the query, or leave out the window functions"
        )
    if query.limit is not None or query.offset:
        raise Unsupported(
            "groups with LIMIT or OFFSET have no changes",
            hint="leave it out, or write the condition as HAVING: a group is in the answer while it satisfies it",
        )
    if query.distinct:
        raise Unsupported("groups with SELECT DISTINCT have no changes", hint="leave out DISTINCT")
    if query.uses_now:
        raise Unsupported(
            "groups of a query that uses NOW outside its window have no changes",
            hint="write the condition as a window: BEGIN NOW - … END NOW",
        )
    if query.steps is not None and query.steps.rows:
        raise Unsupported("steps of rows have no changes", hint="use steps of time, such as [TUMBLE 1 MINUTE]")


class GroupFollowing:
    """The followed groups of one process."""

    def __init__(self, answers: Answers) -> None:
        """Start without any."""
        self._answers = answers
        self._followed: BoundedCache[Hashable, FollowedGroups] = BoundedCache(FOLLOWED_GROUPINGS)

    def read(
        self,
        prepare: Callable[[], PreparedGroups],
        since: Position | None,
        only_turns: bool,
        feed_end: Position | None,
        outputs: FollowedOutputs | None = None,
    ) -> GroupChanges:
        """The changes since a position; with `feed_end`, between two positions of a feed."""
        if since is not None and feed_end is not None:
            return self.changes_between(prepare, since, feed_end, outputs)
        return self.changes(prepare, since, only_turns, outputs)

    def changes(
        self,
        prepare: Callable[[], PreparedGroups],
        since: Position | None,
        only_turns: bool,
        outputs: FollowedOutputs | None = None,
    ) -> GroupChanges:
        """The changes of a query's answer since a position; without one, none yet.

        `prepare` returns the query and the current snapshot. With `only_turns`, rows that differ are not changes.
        `outputs` are those of the queries of a template.
        """
        prepared = prepare()
        check_can_follow_groups(prepared.query)
        followed = self._of(prepared)
        outputs = outputs or GroupOutputs(prepared.query)
        began = thread_time()
        with followed.lock:
            # Read again: another thread may have gone on to a later moment.
            prepared = prepare()
            now = self._answers.now_of([state.stream for state in prepared.snapshot.streams.values()])
            end = replace(followed.advance(prepared, now), members=outputs.next_number)
            due = self._due(followed, prepared, now)
            if since is None:
                return GroupChanges((), end, end, due)
            if since.unread is not None:
                read = self._rest(followed, prepared, since, outputs, only_turns)
                if read is not None:
                    return read
                since = replace(since, unread=None)
            try:
                changed = _changed(followed, prepared, since, end, outputs, only_turns)
                if changed is not None:
                    followed.check(prepared, since, outputs)
            except QueryFailed:
                # The answer at the position may be what fails; the reset raises if that of now does.
                changed = None
            if changed is None:
                return self._reset(followed, prepared, end, due, outputs)
            return GroupChanges(changed, since, end, _rested(due, thread_time() - began))

    def changes_between(
        self,
        prepare: Callable[[], PreparedGroups],
        since: Position,
        end: Position,
        outputs: FollowedOutputs | None = None,
    ) -> GroupChanges:
        """The changes of a query's answer between two positions of a feed, whose NOW is that of the wall clock."""
        prepared = prepare()
        check_can_follow_groups(prepared.query)
        followed = self._of(prepared)
        read_all = (outputs or GroupOutputs(prepared.query)).changed
        began = thread_time()
        with followed.lock:
            prepared = prepare()
            first, last = _position_in(prepared, since), _position_in(prepared, end)
            assert last is not None
            assert last.now is not None
            due: float | None = LEAST_DELAY
            delta_since = partial(followed.between, prepared, end=last)
            # Otherwise rows were pushed or a table was replaced since the end, or another follower has read on.
            if _is_present(prepared, last) and not followed.is_after(last):
                followed.advance(prepared, last.now)
                due, delta_since = self._due(followed, prepared, last.now), partial(followed.since, prepared)

            def read_rows(since: Position) -> list[ChangedRow] | None:
                delta = delta_since(since)
                return None if delta is None else read_all(delta, followed.identity.columns, False)

            try:
                changed = None if first is None else read_rows(first)
            except QueryFailed:
                # See `changes`.
                changed = None
            if changed is not None:
                return GroupChanges(in_order(changed), first or last, last, _rested(due, thread_time() - began))
            rows = read_rows(Position(0))
            if rows is None:
                # The groups at the end are not known any more. Those of now come, and again with the next read.
                followed.forget(last)
                followed.advance(
                    prepared, self._answers.now_of([state.stream for state in prepared.snapshot.streams.values()])
                )
                delta = followed.since(prepared, Position(0))
                assert delta is not None
                rows = read_all(delta, followed.identity.columns, False)
            return GroupChanges(after_reset(rows), Position(0), last, due)

    def _rest(
        self,
        followed: FollowedGroups,
        prepared: PreparedGroups,
        position: Position,
        outputs: FollowedOutputs,
        only_turns: bool,
    ) -> GroupChanges | None:
        """The rest of the changes of a read that was interrupted; None if there are none."""
        unread = position.unread
        assert unread is not None
        since = Position(0, unread.marks, 0, unread.now, members=unread.members)
        end = replace(position, unread=None)
        rows = _changed(followed, prepared, since, end, outputs, only_turns, is_past=True)
        if rows is None:
            assert followed.position is not None
            last = replace(followed.position, members=outputs.next_number)
            return self._reset(followed, prepared, last, 0.0, outputs)
        changed = [change for change in rows if change.hash > unread.after]
        return GroupChanges(in_order(changed), since, end, 0.0) if changed else None

    def _reset(
        self,
        followed: FollowedGroups,
        prepared: PreparedGroups,
        end: Position,
        due: float | None,
        outputs: FollowedOutputs,
    ) -> GroupChanges:
        """All rows of the answer, where the groups at a position are not known any more."""
        beginning = Position(0)
        delta = followed.since(prepared, beginning)
        assert delta is not None
        rows = outputs.changed(delta, followed.identity.columns, False)
        followed.check(prepared, beginning, outputs)
        return GroupChanges(after_reset(rows), beginning, end, due)

    def _of(self, prepared: PreparedGroups) -> FollowedGroups:
        ready, registered = prepared.ready, prepared.registered
        key: Hashable = (registered.id, registered.sql)
        if isinstance(ready, Ready) and is_incremental(ready):
            key = (registered.stream_ids[0], ready.plans[0].shape, ready.query.stream.window)
        return self._followed.get_once(key, lambda: FollowedGroups(self._answers, prepared))

    def _due(self, followed: FollowedGroups, prepared: PreparedGroups, now: int) -> float | None:
        """The number of seconds until time alone may change the groups."""
        if followed.next_edge is None:
            return None
        if all(state.stream.clock == "stream" for state in prepared.snapshot.streams.values()):
            return None
        return max((followed.next_edge - now) / 1_000_000, LEAST_DELAY)


def _rested(due: float | None, cost: float) -> float | None:
    """The delay of the next read because of time alone, given the processor time of the last one in seconds."""
    return None if due is None else max(due, REST * cost)


def _is_present(prepared: PreparedGroups, position: Position) -> bool:
    """Whether streams and tables are still those of a position."""
    snapshot = prepared.snapshot
    is_same = snapshot.position_at(position.now).marks == position.marks
    return is_same and all(table.changed_seq <= position.seq for table in snapshot.tables.values())


def _position_in(prepared: PreparedGroups, position: Position) -> Position | None:
    """The position of a query's answer at a position of a feed; None if that does not tell NOW."""
    if not position.marks and position.now is None:
        return Position(0)
    if position.now is None:
        return None
    states = prepared.snapshot.streams
    marks = {stream: Mark(position.marks[stream].next_id if stream in position.marks else 0) for stream in states}
    times = [latest_time(state, marks[id_].next_id) for id_, state in states.items() if state.stream.clock == "stream"]
    known = [time for time in times if time is not None]
    now = max(known) if known and len(times) == len(states) else position.now
    return Position(position.seq, marks, position.pushes, now)


def _changed(
    followed: FollowedGroups,
    prepared: PreparedGroups,
    since: Position,
    end: Position,
    outputs: FollowedOutputs,
    only_turns: bool,
    *,
    is_past: bool = False,
) -> list[ChangedRow] | None:
    """The changes of answers between a position and the present, or another one; None if one of them is not known.

    Queries that were added to a template in between had no answer before.
    """
    between = partial(followed.between, end=end) if is_past else followed.since
    delta = between(prepared, since)
    if delta is None:
        return None
    keys = followed.identity.columns
    if since.members is None:
        return in_order(outputs.changed(delta, keys, only_turns))
    changed = outputs.between(0, since.members).changed(delta, keys, only_turns)
    if end.members is not None and end.members > since.members:
        everything = between(prepared, Position(0))
        if everything is None:
            return None
        changed += outputs.between(since.members, end.members).changed(everything, keys, only_turns)
    return in_order(changed)
