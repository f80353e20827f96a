"""Invocation: handle → prepared query and snapshot → answer.

It starts no Spark job and scans only the tail: published cells are looked up, owed and lazy ones are evaluated from the
index.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from tureen.bounded_cache import BoundedCache
from tureen.errors import UnknownQuery, UnknownStream
from tureen.handle import is_query_handle
from tureen.joining.join_limits import DEFAULT_LIMITS, JoinLimits
from tureen.position import Position
from tureen.pot.catalog import Catalog, micros_now
from tureen.pot.registered import Registered
from tureen.pot.streams import Stream, taken_offsets
from tureen.query import Query
from tureen.results.answer import Answer
from tureen.results.answering import Answers
from tureen.results.changes.changes import (
    NewRows,
    check_has_changes,
    mark_of,
    new_rows,
    no_new_rows,
    up_to,
    with_punctuations,
)
from tureen.results.changes.closed_steps import ClosedSteps
from tureen.results.changes.join_changes import NewJoinedRows
from tureen.results.covers.kept_covers import KeptCovers
from tureen.results.covers.reuse import CoveringStreams
from tureen.results.derived_checks import DerivedChecks
from tureen.results.explain import Explainer
from tureen.results.following.followed import FollowedQuery
from tureen.results.following.followed_joins import JoinFollower
from tureen.results.following.followers import Follower, Followers
from tureen.results.groups.final_following import FinalFollowing
from tureen.results.groups.followed_groups import PreparedGroups
from tureen.results.groups.group_changes import GroupChanges
from tureen.results.groups.group_following import GroupFollowing
from tureen.results.joins.join_ready import ReadyJoin
from tureen.results.prepared_queries import PreparedQueries
from tureen.results.rows.ready import Ready
from tureen.results.snapshot.held_files import with_files
from tureen.results.snapshot.standing_check import check_standing
from tureen.results.snapshot.stream_state import Snapshot, StreamState
from tureen.results.snapshot.view import View
from tureen.results.templates.template_matches import TemplateMatches, finish_matches, match_template
from tureen.results.templates.template_rule import TemplateRule
from tureen.routing_policies import ROUTING_POLICIES
from tureen.schema import Column, Schema
from tureen.xml_template import Part

Result = TypeVar("Result")

LIGHT_ROWS = 1 << 20
"""The maximum number of rows of a small stream, whose rows are gathered in a few milliseconds."""

LIGHT_TEXT = 2_000
"""The maximum length of a short text, which is parsed in a millisecond or two."""

KNOWN_QUERIES = 1 << 16
"""The number of queries of which a process remembers whether they have groups."""


class Invoker:
    """Answers standing queries of one pot; needs neither the lease nor Spark."""

    def __init__(
        self,
        catalog: Catalog,
        clock: Callable[[], int] = micros_now,
        limits: JoinLimits = DEFAULT_LIMITS,
        routing: str = ROUTING_POLICIES[0],
    ) -> None:
        """Answer from that catalog, joins within limits; `clock` returns NOW in microseconds.

        `routing` is the policy by which new tuples are routed through followed joins.
        """
        self.view = View(catalog)
        self.prepared = PreparedQueries(self.view)
        self._grouped: BoundedCache[str, bool] = BoundedCache(KNOWN_QUERIES)
        self.answers = Answers(catalog, clock, limits)
        self.watch = self.answers.watch
        self.key_indexes = self.answers.indexes
        self.followers = Followers(self.view, self.answers.content, self.key_indexes, routing)
        # What punctuations close is read once for both.
        self.followers.joins.histories = self.answers.histories
        self._kept_covers = KeptCovers(catalog)
        checks = DerivedChecks(self.answers)
        self.covering = CoveringStreams(self.view, checks.count_rows, checks.steps)
        self._explainer = Explainer(catalog, self.answers, self.followers.joins, self.covering, self._kept_covers)
        self._groups = GroupFollowing(self.answers)
        self._finals = FinalFollowing(catalog, self.answers)

    def invoke(self, handle: str, now: int | None = None) -> Answer:
        """The answer of a query at `now`, by default at the stream's NOW."""
        return self._with_files(lambda: self._invoke(handle, now))

    def is_light(self, handle: str) -> bool:
        """Whether an invocation only looks up rows of a small stream and selects columns.

        A query with a long text is not light, because parsing it at the first invocation takes time.
        """
        return self._with_files(lambda: self._is_light(handle))

    def _is_light(self, handle: str) -> bool:
        registered, snapshot = self.prepared.look_up(handle)
        rows = sum(run.rows for state in snapshot.streams.values() for run in state.runs)
        if len(registered.sql) > LIGHT_TEXT or rows > LIGHT_ROWS:
            return False
        return self.prepared.find(registered, snapshot).light

    def answer_once(self, sql: str, now: int | None = None, language: str = "sql") -> Answer:
        """The answer of an unregistered query, evaluated from the index."""
        return self._with_files(lambda: self._answer(*self.prepared.unregistered(sql, language), now))

    def follow(self, handle: str) -> Follower | None:
        """Add a follower of a query to those that share work; None if it computes its changes alone."""

        def add() -> Follower | None:
            version = self.view.version
            registered, snapshot = self.prepared.look_up(handle)
            ready = self.prepared.find(registered, snapshot)
            if ready.query.grouping is not None:
                return None
            follower = self.followers.add(registered, snapshot, ready)
            if isinstance(follower, JoinFollower) and registered.error is None:
                follower.checked = version
            return follower

        return self._with_files(add)

    def new_rows(
        self,
        handle: str,
        since: Position | None,
        follower: Follower | None = None,
        at_most: int | None = None,
        until: Mapping[int, int] | None = None,
        *,
        punctuations: bool = False,
    ) -> NewRows | NewJoinedRows:
        """The rows that joined a query's answer since a position; without one, none yet.

        For a follower, new tuples are matched and joined together with those of the others. With `at_most`, only that
        many tuples of each stream are read. With `until`, only tuples before that id of each stream are read. With
        `punctuations`, also those of the answer.
        """
        asked = since
        if since is not None and until is None and isinstance(follower, JoinFollower):
            joined = self._joined_rows(follower, since, at_most)
            if isinstance(joined, NewJoinedRows):
                rows = joined
                return self._with_files(lambda: self._propagated(handle, rows, asked)) if punctuations else joined
            since = joined
        elif since is not None and isinstance(follower, FollowedQuery) and not punctuations:
            since, end = self.followers.queries.unread(follower, since)
            if end is not None:
                return no_new_rows(end)
        return self._with_files(lambda: self._new_rows(handle, since, at_most, until, asked, punctuations))

    def _joined_rows(self, follower: JoinFollower, since: Position, at_most: int | None) -> NewJoinedRows | Position:
        """The new rows of a follower from the operator of its join, or since when it must compute them alone."""
        self.view.refresh()
        if self.view.version != follower.checked:
            version = self.view.version
            check_standing(self.view.query(follower.clause.handle))
            follower.checked = version
        return self.followers.joins.read(follower, since, at_most)

    def _new_rows(
        self,
        handle: str,
        since: Position | None,
        at_most: int | None,
        until: Mapping[int, int] | None,
        asked: Position | None,
        punctuations: bool,
    ) -> NewRows | NewJoinedRows:
        """The new rows since a position; with punctuations since the one that was asked for, which may be earlier."""
        registered, snapshot = self.prepared.look_up(handle)
        check_standing(registered)
        ready = self.prepared.find(registered, snapshot)
        if isinstance(ready, ReadyJoin):
            if at_most is not None:
                until = {
                    stream_id: mark_of(state, since).next_id + at_most for stream_id, state in snapshot.streams.items()
                }
            joined = self.answers.changes_of_join(registered.inputs, snapshot, ready, since, until)
            joined = replace(joined, rows=ready.finish.each(joined.rows))
            if punctuations:
                return self.followers.joins.propagated(registered, snapshot, ready, joined, asked)
            return joined
        check_has_changes(ready.query)
        state = snapshot.streams[registered.stream_ids[0]]
        query, mark = ready.query, mark_of(state, since)
        if at_most is not None:
            state = up_to(state, mark.next_id + at_most)
        end = _end_of(state, until)
        names = query.columns or (state.stream.schema.time_column,)
        new = new_rows(state, names, query.stream.window, registered.stream, ready.selector, mark.next_id, end)
        new = replace(new, rows=ready.finish.each(new.rows))
        return with_punctuations(self.view.catalog, new, query, since, end) if punctuations else new

    def _propagated(self, handle: str, joined: NewJoinedRows, since: Position | None) -> NewJoinedRows:
        """New rows of a join with the punctuations of its output."""
        registered, snapshot = self.prepared.look_up(handle)
        ready = self.prepared.find(registered, snapshot)
        assert isinstance(ready, ReadyJoin)
        return self.followers.joins.propagated(registered, snapshot, ready, joined, since)

    def has_groups(self, handle: str) -> bool:
        """Whether a query has groups, whose changes `group_changes` reads."""

        def look_up() -> bool:
            return self.query_of(handle).grouping is not None

        # Another query may get a name, but never a handle.
        return self._grouped.get(handle, look_up) if is_query_handle(handle) else look_up()

    def group_changes(
        self, handle: str, since: Position | None, only_turns: bool = False, feed_end: Position | None = None
    ) -> GroupChanges:
        """The changes of the answer of a query with groups since a position; without one, none yet.

        With `only_turns`, rows that differ are not changes: only those that join and leave. With `feed_end`, both
        positions are those of a feed.
        """

        def prepare() -> PreparedGroups:
            registered, snapshot = self.prepared.look_up(handle)
            check_standing(registered)
            return PreparedGroups(registered, snapshot, self.prepared.find(registered, snapshot))

        def read() -> GroupChanges:
            if prepare().query.final:
                return self._finals.read(prepare, since, feed_end)
            return self._groups.read(prepare, since, only_turns, feed_end)

        return self._with_files(read)

    def template_group_changes(
        self,
        rule: TemplateRule,
        since: Position | None,
        only_turns: bool = False,
        feed_end: Position | None = None,
    ) -> GroupChanges:
        """The changes of the answers of a template's queries with groups; see `group_changes`."""
        groups = rule.groups

        def prepare() -> PreparedGroups:
            snapshot = self.view.snapshot(rule.template.stream_ids, rule.template.table_ids)
            return PreparedGroups(groups.registered, snapshot, groups.ready)

        def read() -> GroupChanges:
            members = self.view.members(rule.template.id)
            if members is None:
                raise UnknownQuery(f"there is no template '{rule.template.id}'", hint="it was unregistered before")
            return self._groups.read(prepare, since, only_turns, feed_end, groups.outputs(members))

        return self._with_files(read)

    def query_of(self, handle: str) -> Query:
        """The bound query of a handle."""
        registered, snapshot = self._with_files(lambda: self.prepared.look_up(handle))
        return self.prepared.find(registered, snapshot).query

    def closed_steps(self, handle: str, after: int | None) -> ClosedSteps:
        """The rows of a query's steps after that number that are over."""

        def read() -> ClosedSteps:
            registered, snapshot = self.prepared.look_up(handle)
            check_standing(registered)
            ready = self.prepared.find(registered, snapshot)
            assert isinstance(ready, Ready)
            return self.answers.closed_steps(registered, snapshot, ready, after)

        return self._with_files(read)

    def template_matches(
        self, rule: TemplateRule, since: Position | None, until: Mapping[int, int] | None = None
    ) -> TemplateMatches:
        """The rows that joined the answers of a template's queries since a position; see `new_rows`."""
        return self._with_files(lambda: self._template_matches(rule, since, until))

    def _template_matches(
        self, rule: TemplateRule, since: Position | None, until: Mapping[int, int] | None
    ) -> TemplateMatches:
        check_has_changes(rule.query)
        snapshot = self.view.snapshot(rule.template.stream_ids, rule.template.table_ids)
        # Read after the streams: an older version of the template could lack queries, see `View.members`.
        members = self.view.members(rule.template.id, at_least=snapshot.seq)
        if members is None:
            raise UnknownQuery(f"there is no template '{rule.template.id}'", hint="it was unregistered before")
        pairing = rule.pairing(members)
        names = sorted({*rule.columns, *pairing.columns})
        if rule.query.joins:
            joined = self.answers.changes_of_join(rule.template.inputs, snapshot, rule.join(names), since, until)
            return finish_matches(rule, match_template(joined, pairing, members), members)
        (state,), (stream,) = snapshot.streams.values(), rule.template.inputs
        mark, names = mark_of(state, since), names or [state.stream.schema.time_column]
        end = _end_of(state, until)
        new = new_rows(state, names, rule.query.stream.window, stream, rule.selector, mark.next_id, end)
        if len(new) and new.ids[0] == mark.next_id:
            new = replace(new, read_before={0: mark.after})
        return finish_matches(rule, match_template(new, pairing, members), members)

    def snapshot(self) -> Snapshot:
        """All streams, with their pending rows."""

        def read() -> Snapshot:
            while True:
                with self.view.catalog.read() as tx:
                    streams = list(taken_offsets(tx))
                # A stream that is dropped in the meantime is not listed again.
                with suppress(UnknownStream):
                    return self.view.snapshot(streams)
                self.view.refresh()

        return self._with_files(read)

    def with_stream(self, stream_id: int, use: Callable[[StreamState], Result]) -> Result:
        """Call `use` with a stream and its pending rows; again, if a file was removed in the meantime."""
        return self._with_files(lambda: use(self.view.stream(stream_id)))

    def next_ids(self, stream_ids: Sequence[int]) -> tuple[int, ...]:
        """For each of these streams, the id of the next tuple that is pushed to it."""
        streams = self._with_files(lambda: self.view.snapshot(stream_ids)).streams
        return tuple(streams[stream_id].stream.next_id for stream_id in stream_ids)

    def schema_of(self, handle: str) -> Schema:
        """The columns of a query's answers."""
        registered, snapshot = self._with_files(lambda: self.prepared.look_up(handle))
        query = self.prepared.find(registered, snapshot).query
        return Schema(tuple(Column(output.name, output.value.type) for output in query.outputs))

    def template_of(self, handle: str) -> Part | None:
        """How the rows of a query in WXQuery become XML; None for others."""
        registered, snapshot = self._with_files(lambda: self.prepared.look_up(handle))
        return self.prepared.find(registered, snapshot).query.template

    def _with_files(self, answer: Callable[[], Result]) -> Result:
        return with_files(self.view, answer)

    def _invoke(self, handle: str, now: int | None) -> Answer:
        registered, snapshot = self.prepared.look_up(handle)
        check_standing(registered)
        return self._answer(registered, snapshot, self.prepared.find(registered, snapshot), now)

    def _answer(self, registered: Registered, snapshot: Snapshot, ready: Ready | ReadyJoin, now: int | None) -> Answer:
        if isinstance(ready, ReadyJoin):
            return self.answers.of_join(registered, snapshot, ready, now)
        reuse = self.covering.find(registered, ready)
        if reuse is not None:
            return self.answers.of_derived(reuse, now)
        composition = self.covering.find_steps(registered, ready)
        if composition is not None:
            answer = self.answers.of_steps(composition, ready, now)
            self.covering.note_steps(registered, is_composed=answer is not None)
            if answer is not None:
                return answer
        kept = self._kept_covers.find(registered, snapshot, ready)
        return self.answers.of_stream(registered, snapshot, ready if kept is None else kept, now)

    def now_of(self, stream: Stream) -> int:
        """The NOW of a stream: the wall clock, or the highest time seen."""
        return self.answers.now_of([stream])

    def explain(self, handle: str) -> dict[str, Any]:
        """How a query is answered: its factors, its access path, and the state of its cells."""
        return self.with_prepared(handle, self._explainer.explain)

    def with_prepared(self, handle: str, use: Callable[[Registered, Snapshot, Ready | ReadyJoin], Result]) -> Result:
        """Call `use` with a query, the snapshot that an invocation would answer from, and the prepared query."""

        def look_up_and_use() -> Result:
            registered, snapshot = self.prepared.look_up(handle)
            return use(registered, snapshot, self.prepared.find(registered, snapshot))

        return self._with_files(look_up_and_use)

    def explain_once(self, sql: str, language: str = "sql") -> dict[str, Any]:
        """How an unregistered query would be answered."""
        return self._with_files(lambda: self._explainer.explain(*self.prepared.unregistered(sql, language)))


def _end_of(state: StreamState, until: Mapping[int, int] | None) -> int:
    """The tuple of a stream at which changes end."""
    return state.stream.next_id if until is None else until[state.stream.id]
