"""The queries of a feed, and which of them new tuples concern.

A feed follows all queries of an owner, of which most pushes concern few. So the clauses of its queries over one stream
are matched with new tuples together, as those of other followers are (`tureen/results/following/followed.py`), and only
the queries with a match are read. The queries are listed again when one was changed or unregistered; new ones are
added.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Container, Hashable, Iterable
from contextlib import suppress
from itertools import takewhile
from typing import NamedTuple

from tureen.errors import TureenError
from tureen.pot.catalog import Catalog
from tureen.pot.queries import list_queries, standing_version
from tureen.pot.registered import Registered
from tureen.pot.templates import list_templates
from tureen.results.following.followed import FollowedQuery
from tureen.results.invoke import Invoker
from tureen.soup.templates import Templates


class Followed(NamedTuple):
    """A query or a template that a feed follows, and its streams."""

    handle: str
    streams: tuple[int, ...]
    is_template: bool
    has_groups: bool = False
    language: str = "sql"
    follower: FollowedQuery | None = None
    """What matches new tuples with its clause; None if it is read after every push."""
    known_from: int = 0
    """The first tuple that is matched with its clause."""


class FeedQueries:
    """The queries and templates of an owner that a feed follows; an owner of None has all."""

    def __init__(self, catalog: Catalog, invoker: Invoker, templates: Templates, owner: str | None) -> None:
        """Start without queries."""
        self._catalog, self._invoker, self._templates, self._owner = catalog, invoker, templates, owner
        self._version = -1
        self._cursor: str | None = None
        """After which query new ones are listed."""
        self._queries: dict[str, Followed] = {}
        self._others: list[Followed] = []
        """The templates, and the queries that are read after every push."""
        self._by_clause: dict[Hashable, list[Followed]] = {}
        self._by_age: dict[Hashable, list[Followed]] = {}
        """The queries over each stream in order of `known_from`: tuples before it were not matched with the clause."""

    def followed(self, streams: Container[int]) -> list[Followed]:
        """The templates and queries that are read after every push, over these streams."""
        self._refresh()
        # One over a stream that was just created is read with the next batch.
        return [entry for entry in self._others if all(stream in streams for stream in entry.streams)]

    def concerned(self, stream: int, first: int, end: int) -> Iterable[Followed]:
        """The other queries that may have rows with a tuple of a stream with an id from `first` to before `end`."""
        matched = self._invoker.followers.queries.matched_between(stream, first, end)
        if matched is None:
            return [entry for entry in self._queries.values() if entry.follower and stream in entry.streams]
        added_later = takewhile(lambda entry: entry.known_from > first, reversed(self._by_age.get(stream, ())))
        handles = {entry.handle: entry for entry in added_later}
        handles |= {entry.handle: entry for clause in matched for entry in self._by_clause.get(clause, ())}
        return handles.values()

    def close(self) -> None:
        """Stop matching tuples with their clauses."""
        queries, self._queries = self._queries, {}
        for entry in queries.values():
            if entry.follower is not None:
                self._invoker.followers.queries.remove(entry.follower)

    def _refresh(self) -> None:
        """List the queries that are new, or all if one was changed or unregistered."""
        with self._catalog.read() as tx:
            version = standing_version(tx)
            is_same = version == self._version
            new = list_queries(tx, self._owner, self._cursor if is_same else None)
            templates = list_templates(tx, self._owner)
        if not is_same:
            standing = {query.id for query in new}
            for handle in [handle for handle in self._queries if handle not in standing]:
                self._remove(self._queries.pop(handle))
        for query in new:
            if query.id not in self._queries:
                self._add(query)
        if new:
            self._cursor = f"{new[-1].seq}.{new[-1].id}"
        self._version = version
        others = [entry for entry in self._queries.values() if entry.follower is None] if new or not is_same else None
        if others is not None or len(templates) != sum(entry.is_template for entry in self._others):
            others = [entry for entry in self._others if not entry.is_template] if others is None else others
            self._others = others + [
                Followed(template.id, tuple(template.stream_ids), True, self._has_groups(template.id))
                for template in templates
            ]

    def _add(self, query: Registered) -> None:
        followed = Followed(query.id, query.stream_ids, is_template=False, language=query.language)
        # One that was unregistered since it was listed, or cannot be bound, has no changes.
        with suppress(TureenError):
            bound = self._invoker.query_of(query.id)
            followed = followed._replace(has_groups=bound.grouping is not None)
            if bound.grouping is None and not bound.joins:
                follower = self._invoker.followers.queries.add(query.stream_ids[0], bound.stream.clause)
                followed = followed._replace(follower=follower, known_from=follower.clause.known_from)
                self._by_clause.setdefault(follower.clause, []).append(followed)
                # The clause may be that of an older query.
                insort(self._by_age.setdefault(query.stream_ids[0], []), followed, key=lambda entry: entry.known_from)
        self._queries[query.id] = followed

    def _remove(self, followed: Followed) -> None:
        if followed.follower is None:
            return
        clause = followed.follower.clause
        self._invoker.followers.queries.remove(followed.follower)
        for queries, key in ((self._by_age, followed.streams[0]), (self._by_clause, clause)):
            queries[key].remove(followed)
            if not queries[key]:
                del queries[key]

    def _has_groups(self, template: str) -> bool:
        with suppress(TureenError):
            return self._templates.has_groups(template, self._owner)
        # It was unregistered since it was listed.
        return False
