"""Followers of queries in this process, and which of them may have changes.

Followers of queries over one stream share the matching of new tuples (`tureen.results.following.followed`), those of
queries over joins the joining (`tureen.results.following.followed_joins`).
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Hashable

from tureen.pot.registered import Registered
from tureen.results.following.followed import FollowedQueries, FollowedQuery
from tureen.results.following.followed_joins import FollowedJoins, JoinFollower
from tureen.results.following.join_operator import ReadTable
from tureen.results.joins.join_ready import ReadyJoin
from tureen.results.joins.key_indexes import KeyIndexes
from tureen.results.rows.ready import Ready
from tureen.results.snapshot.stream_state import Snapshot
from tureen.results.snapshot.view import View

Follower = FollowedQuery | JoinFollower


class ChangeConsumer:
    """The queries with possible changes that one consumer, such as a server, has not fetched yet."""

    def __init__(self) -> None:
        """Start without any; the first call of `Followers.advance` concerns all queries."""
        self.matched: set[Hashable] = set()
        self.version = -1


class Followers:
    """All followers of a process."""

    def __init__(self, view: View, read_table: ReadTable, indexes: KeyIndexes, routing: str) -> None:
        """Start without followers."""
        self._view = view
        self.queries = FollowedQueries(view)
        self.joins = FollowedJoins(view, read_table, indexes, routing)
        self._consumers: weakref.WeakSet[ChangeConsumer] = weakref.WeakSet()
        self._lock = threading.Lock()

    def add(self, registered: Registered, snapshot: Snapshot, ready: Ready | ReadyJoin) -> Follower | None:
        """Add a follower of a query; None if it shares nothing with others."""
        if isinstance(ready, ReadyJoin):
            return self.joins.add(registered, snapshot, ready)
        return self.queries.add(registered.stream_ids[0], ready.query.stream.clause)

    def remove(self, follower: Follower) -> None:
        """Remove a follower."""
        if isinstance(follower, JoinFollower):
            self.joins.remove(follower)
        else:
            self.queries.remove(follower)

    def consumer(self) -> ChangeConsumer:
        """A new consumer, for which changes are counted from now on, as long as it exists."""
        consumer = ChangeConsumer()
        with self._lock:
            self._consumers.add(consumer)
        return consumer

    def advance(self, consumer: ChangeConsumer) -> set[Hashable] | None:
        """The clauses and joins of followers that may have changes since the last call with the same consumer.

        None if queries were changed, unregistered or stopped since then: each follower must read its changes.
        """
        self._view.refresh()
        version = self._view.version
        with self._lock:
            matched = self.queries.advance() | self.joins.advance()
            for other in self._consumers:
                other.matched |= matched
            unread, consumer.matched = consumer.matched, set()
            is_same, consumer.version = version == consumer.version, version
            return unread if is_same else None
