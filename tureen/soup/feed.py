"""Following: the rows that joined the answers of a query, of a template, or of all of an owner's queries.

Reading changes never waits. A follower reads again after the next push or commit: in a thread of its own (`follow` in
`tureen/soup/waiting.py`), or in a server that wakes all of its followers at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial

import numpy as np

from tureen.arguments import check_text
from tureen.errors import QueryFailed, TureenError, UnknownQuery, UnknownStream, Unsupported
from tureen.position import BEGINNING, Mark, Position, QueryKey
from tureen.pot.catalog import Catalog
from tureen.results.changes.changes import NewRows
from tureen.results.changes.join_changes import NewJoinedRows
from tureen.results.following.followers import Follower
from tureen.results.groups.group_changes import GroupChanges
from tureen.results.invoke import Invoker
from tureen.soup.change_batches import ChangeBatch, QueryChanges, TemplateChanges
from tureen.soup.feed_groups import ReadBetween, read_groups, read_rest, since_of
from tureen.soup.feed_parts import FeedChanges, FeedPart, FeedRow, unread_parts
from tureen.soup.feed_queries import FeedQueries, Followed
from tureen.soup.group_batches import ALL_CHANGES, GroupBatch, GroupReader, ReadGroups
from tureen.soup.templates import Templates
from tureen.xml_template import Part


class QueryFollower:
    """Reads the changes of a query again and again; new tuples are matched once for all followers."""

    def __init__(
        self, reader: ChangeReader, handle: str, invoker: Invoker, groups: GroupReader, *, punctuations: bool = False
    ) -> None:
        """Follow a query, until `close` is called."""
        self._reader, self._handle, self._groups, self._punctuations = reader, handle, groups, punctuations
        self._followers, self._followed = invoker.followers, invoker.follow(handle)

    @property
    def clause(self) -> Hashable:
        """What `EmbeddedCalls.clauses_with_changes` returns if there may be changes; None if it must be asked.

        Punctuations come without tuples that satisfy a clause.
        """
        return None if self._followed is None or self._punctuations else self._followed.clause

    def read(self, since: str | None) -> ChangeBatch:
        """What changed in the query's answer since a position."""
        return self._reader.query(self._handle, since, self._groups, self._followed, punctuations=self._punctuations)

    def close(self) -> None:
        """Stop following."""
        followed, self._followed = self._followed, None
        if followed is not None:
            self._followers.remove(followed)


class FeedFollower:
    """Reads the changes of all queries of an owner again and again."""

    def __init__(self, reader: ChangeReader, queries: FeedQueries) -> None:
        """Follow these queries, until `close` is called."""
        self._reader, self._queries = reader, queries
        self._lock = threading.Lock()

    def read(self, since: str | None) -> FeedChanges:
        """What changed in any of the answers since a position."""
        with self._lock:
            return self._reader.feed_changes(since, self._queries)

    def close(self) -> None:
        """Stop following."""
        with self._lock:
            self._queries.close()


class ChangeReader:
    """Reads changes of the answers that an owner sees; an owner of None sees all."""

    def __init__(
        self,
        catalog: Catalog,
        invoker: Invoker,
        templates: Templates,
        owner: str | None,
        check: Callable[[str], None],
    ) -> None:
        """Read the changes of a pot; `check` raises for the handle of a query that the owner does not see."""
        self._catalog, self._invoker, self._templates = catalog, invoker, templates
        self._owner, self._check = owner, check

    def query(
        self,
        handle: str,
        since: str | None,
        groups: GroupReader = ALL_CHANGES,
        follower: Follower | None = None,
        *,
        punctuations: bool = False,
    ) -> ChangeBatch:
        """What changed in a query's answer since a position; without one, nothing yet."""
        self._check(handle)
        if self._invoker.has_groups(handle):
            if punctuations:
                raise Unsupported(
                    "the changes of a query with groups have no punctuations", hint="follow the query without groups"
                )
            changes = groups.read(_parse(since), partial(self._invoker.group_changes, handle))
            return GroupBatch(handle, changes, self._invoker.template_of(handle))
        groups.check_default()
        new = self._invoker.new_rows(handle, _parse(since), follower, punctuations=punctuations)
        return QueryChanges(handle, new)

    def follower(self, handle: str, groups: GroupReader, *, punctuations: bool = False) -> QueryFollower:
        """A follower of a query; it reads the changes of groups with that reader."""
        self._check(handle)
        return QueryFollower(self, handle, self._invoker, groups, punctuations=punctuations)

    def template(self, handle: str, since: str | None, groups: GroupReader = ALL_CHANGES) -> ChangeBatch:
        """What changed in the answers of a template's queries since a position."""
        if self._templates.has_groups(handle, self._owner):
            return GroupBatch(handle, groups.read(_parse(since), self._read_groups_of(handle)))
        groups.check_default()
        return TemplateChanges(self._templates.matches(handle, _parse(since), self._owner))

    def _read_groups_of(self, template: str) -> ReadGroups:
        return lambda since, only_turns: self._templates.group_changes(template, since, only_turns, self._owner)

    def feed(self) -> FeedFollower:
        """A follower of all of the owner's queries."""
        return FeedFollower(self, FeedQueries(self._catalog, self._invoker, self._templates, self._owner))

    def all(self, since: str | None) -> FeedChanges:
        """What joined any of the owner's answers since a position; without one, nothing yet."""
        with closing(self.feed()) as follower:
            return follower.read(since)

    def feed_changes(self, since: str | None, queries: FeedQueries) -> FeedChanges:
        """What joined any of the answers of a feed's queries since a position; without one, nothing yet."""
        position = _parse(since)
        if position is not None and not position.marks and str(position) != BEGINNING:
            raise TureenError(
                "the position is not one of a feed", hint="a feed continues from the position of one of its changes"
            )
        snapshot = self._invoker.snapshot()
        end = snapshot.feed_end(self._invoker.answers.wall_clock())
        if position is None:
            return FeedChanges(end)
        followed = queries.followed(snapshot.streams)
        with_groups = [query.handle for query in followed if query.has_groups]
        if position.unread is not None and position.unread.query:
            rest = read_rest(with_groups, position, self._read_groups(followed))
            position = rest.end
            if len(rest):
                return FeedChanges(position, (), rest, self._xml_templates(followed))
        # A stream that the position does not name was created later: all of it is new.
        before = {stream: position.marks.get(stream, Mark(0)) for stream in snapshot.streams}
        parts = list(unread_parts(before, {stream: mark.next_id for stream, mark in end.marks.items()}))
        groups = (
            read_groups(with_groups, _groups_since(position), end, self._read_groups(followed)) if with_groups else None
        )
        if not parts and not groups:
            return FeedChanges(replace(position, marks=before), (), groups)
        concerned = [[*followed, *queries.concerned(part.stream, part.first, part.end)] for part in parts]
        rows = [self._read(part, of_part) for part, of_part in zip(parts, concerned, strict=True)]
        return FeedChanges(
            end, rows, groups, self._xml_templates([query for of_part in concerned for query in of_part])
        )

    def _xml_templates(self, followed: Sequence[Followed]) -> dict[str, Part]:
        """What renders the rows of queries in WXQuery as XML."""
        templates: dict[str, Part] = {}
        for query in followed:
            # One that was unregistered since it was listed has no changes.
            with suppress(TureenError):
                template = None if query.language == "sql" else self._invoker.template_of(query.handle)
                templates |= {} if template is None else {query.handle: template}
        return templates

    def _read(self, part: FeedPart, followed: Sequence[Followed]) -> FeedPart:
        """A part with its rows."""
        concerned = [query for query in followed if part.stream in query.streams and not query.has_groups]
        rows = [entry for query in concerned for entry in self._rows_of(query, part) if not part.is_read(entry)]
        return part._replace(rows=sorted(rows, key=lambda entry: entry.order))

    def _read_groups(self, followed: Sequence[Followed]) -> ReadBetween:
        templates = {query.handle for query in followed if query.is_template}

        def read(handle: str, since: Position, end: Position) -> GroupChanges:
            if handle in templates:
                return self._templates.group_changes(handle, since, False, self._owner, feed_end=end)
            return self._invoker.group_changes(handle, since, feed_end=end)

        return read

    def _rows_of(self, followed: Followed, part: FeedPart) -> Iterator[FeedRow]:
        """What joined the answers of a query or a template by the tuples of a part."""
        since = Position(0, {stream: Mark(mark.next_id) for stream, mark in part.marks.items()})
        until = {stream: mark.next_id for stream, mark in part.marks.items()} | {part.stream: part.end}
        new: NewRows | NewJoinedRows
        try:
            if followed.is_template:
                matches = self._templates.matches(followed.handle, since, until=until)
                new, indexes, rows = matches.new, matches.indexes, matches.rows
                numbers, labels = matches.numbers.tolist(), matches.labels
            else:
                new = self._invoker.new_rows(followed.handle, since, until=until)
                indexes, rows = np.arange(len(new)), new.rows
                numbers, labels = [-1] * len(new), [None] * len(new)
        except (Unsupported, QueryFailed, UnknownQuery, UnknownStream):
            # It cannot be followed, or was unregistered since it was listed; the others go on.
            return
        ids, joined = new.tuple_ids(part.stream)[indexes].tolist(), new.row_numbers[indexes].tolist()
        keys = [QueryKey(followed.handle, number) for number in numbers]
        yield from map(FeedRow, ids, joined, keys, rows.to_pylist(), labels)


def _groups_since(position: Position) -> Position:
    """The position since which groups were not read: for a position between rows, the one before these rows."""
    unread = position.unread
    return position if unread is None else since_of(unread)


def _parse(since: str | None) -> Position | None:
    return None if since is None else Position.parse(check_text(since, "a position"))
