"""Calls by handle: the methods behind handles and routes, on the queries and templates of an open pot."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tureen.arguments import check_count, check_moment, check_text, check_timeout
from tureen.deferred_import import DeferredModule
from tureen.errors import Forbidden, UnknownQuery
from tureen.language.templates.member import member_text
from tureen.pot.members import Members
from tureen.pot.registered import Registered
from tureen.results.answer import Answer, Change
from tureen.results.following.followers import ChangeConsumer, Followers
from tureen.soup.change_batches import ChangeBatch
from tureen.soup.feed import ChangeReader, FeedFollower, QueryFollower
from tureen.soup.group_batches import GroupReader
from tureen.soup.open_pot import OpenPot
from tureen.soup.standing import Following
from tureen.soup.turns import change_choice
from tureen.soup.waiting import follow
from tureen.why.explanation import MAX_LIMIT, Explanation
from tureen.window import to_micros

if TYPE_CHECKING:
    from tureen.why import asking
else:
    asking = DeferredModule("tureen.why.asking")

ALL_OWNERS = "*"
"""Selects the queries of all owners in lists."""


class EmbeddedCalls:
    """The queries and templates of an open pot, as one owner sees them; an owner of None sees all."""

    def __init__(self, pot: OpenPot, owner: str | None) -> None:
        """Act for an owner."""
        self._pot, self._owner = pot, owner

    # Queries

    def listed_owner(self, owner: str | None) -> str | None:
        """The owner whose queries a list contains: by default this one; None for all owners."""
        if owner is None:
            return self._owner
        if self._owner not in (None, check_text(owner, "an owner")):
            raise Forbidden("listing queries of other owners needs an admin")
        return None if owner == ALL_OWNERS else owner

    def registered_queries(
        self,
        after: str | None,
        limit: int | None,
        owner: str | None,
        search: str | None = None,
        *,
        failed: bool = False,
    ) -> list[Registered]:
        """The catalog entries of the queries that `Soup.queries` returns, or of some of them."""
        listed_owner = self.listed_owner(owner)
        if not self._pot.exists():
            return []
        return self._pot.components.registry.page(
            listed_owner, after, limit, with_shared=owner is None, search=search, failed=failed
        )

    def registered(self, handle_or_name: str) -> Registered:
        """The catalog entry of a query."""
        return self._pot.components.registry.find(handle_or_name, self._owner)

    def answer(self, handle: str, now: datetime | None, wait_for: str | None, timeout: float | None) -> Answer:
        """Invoke a query; see `StandingQuery.invoke`."""
        self._check_visible(handle)
        seconds, moment = check_timeout(timeout), check_moment(now)
        if wait_for is not None:
            self._pot.wait(wait_for, seconds)
        return self._pot.components.invoker.invoke(handle, None if moment is None else to_micros(moment))

    def is_light(self, handle: str) -> bool:
        """Whether an invocation only looks up rows, so that it takes less time than dispatching it to a thread."""
        self._check_visible(handle)
        return self._pot.components.invoker.is_light(handle)

    def explain(self, handle: str) -> dict[str, Any]:
        """How a query is answered."""
        self._check_visible(handle)
        invoker, network = self._pot.components.invoker, self._pot.network
        explained = invoker.explain(handle)
        if network is not None:
            replicas = invoker.with_prepared(handle, lambda query, *_: query.stream_ids)
            remote = network.placements(replicas, invoker.query_of(handle))
            explained |= {"remote": remote} if remote else {}
        return explained

    def why(self, handle: str, condition: str, now: datetime | None, limit: int) -> Explanation:
        """Why tuples are in a query's answer or not; see `StandingQuery.why`."""
        self._check_visible(handle)
        text, moment = check_text(condition, "a condition"), check_moment(now)
        count = check_count(limit, "limit", MAX_LIMIT)
        instant = None if moment is None else to_micros(moment)
        return asking.explain_tuples(self._pot.components.invoker, handle, text, instant, count)

    def unregister(self, handle: str) -> None:
        """Unregister a query."""
        check_text(handle, "a handle")
        self._pot.engine()
        self._pot.components.registry.unregister(handle, self._owner)

    def _check_visible(self, handle: str) -> None:
        """Raise `UnknownQuery` also for a query of another owner that is not shared."""
        check_text(handle, "a handle")
        if self._owner is not None:
            invoker = self._pot.components.invoker
            invoker.view.refresh()
            try:
                query = invoker.view.query(handle)
            except UnknownQuery:
                # Without the hint, which may contain names of other owners.
                raise UnknownQuery(f"there is no query '{handle}'") from None
            if query.id != handle or (query.owner != self._owner and not query.shared):
                raise UnknownQuery(f"there is no query '{handle}'")

    # Changes

    @property
    def change_reader(self) -> ChangeReader:
        """Reads the changes since a position, without waiting."""
        pot = self._pot.components
        return ChangeReader(pot.catalog, pot.invoker, pot.templates, self._owner, self._check_visible)

    def changes(self, handle: str, asked: Following) -> Iterator[Change]:
        """Follow a query; see `StandingQuery.changes`."""
        seconds, reader = check_timeout(asked.timeout), self.change_reader
        groups, punctuations = GroupReader(change_choice(asked.on, asked.hold)), asked.punctuations
        first = reader.query(handle, asked.since, groups, punctuations=punctuations)
        return self._follow_with(lambda: reader.follower(handle, groups, punctuations=punctuations), first, seconds)

    def _follow_with(
        self, follower_of: Callable[[], QueryFollower | FeedFollower], first: ChangeBatch, seconds: float | None
    ) -> Iterator[Change]:
        with closing(follower_of()) as follower:
            for batch in follow(self._pot.components.progress, first, follower.read, seconds, self._pot.ensure_fed):
                yield from batch

    def clauses_with_changes(self) -> Callable[[], Collection[Hashable] | None]:
        """Returns, at each call, the clauses of followers with possible changes since the last; None for all.

        For one server: each has a function of its own.
        """
        known: dict[Followers, ChangeConsumer] = {}

        def advance() -> Collection[Hashable] | None:
            followers = self._pot.components.invoker.followers
            if followers not in known:
                known[followers] = followers.consumer()
            return followers.advance(known[followers])

        return advance

    def join_counts(self) -> dict[str, int]:
        """Sums over the operators of followed joins."""
        return self._pot.components.invoker.followers.joins.counts()

    def template_changes(self, handle: str, asked: Following) -> Iterator[Change]:
        """Follow all queries of a template; see `QueryTemplate.changes`."""
        groups = GroupReader(change_choice(asked.on, asked.hold))
        return self._follow(lambda at: self.change_reader.template(handle, at, groups), asked.since, asked.timeout)

    def feed(self, since: str | None, timeout: float | None) -> Iterator[Change]:
        """Follow all queries and templates; see `AnySoup.feed`."""
        seconds, reader = check_timeout(timeout), self.change_reader
        return self._follow_with(reader.feed, reader.all(since), seconds)

    def _follow(
        self, read: Callable[[str | None], ChangeBatch], since: str | None, timeout: float | None
    ) -> Iterator[Change]:
        """The changes since a position; the first batch is read now, so that the call itself raises errors."""
        seconds = check_timeout(timeout)
        batches = follow(self._pot.components.progress, read(since), read, seconds, self._pot.ensure_fed)
        return (change for batch in batches for change in batch)

    # Templates

    def template_members(self, handle: str) -> Members:
        """The queries of a template."""
        return self._pot.components.templates.members(handle, self._owner)

    def template_numbers(self, handle: str) -> Sequence[int]:
        """The numbers of a template's queries."""
        return self.template_members(handle)

    def template_query(self, handle: str, index: int) -> Registered:
        """A query of a template, by its index."""
        members = self.template_members(handle)
        query = members.find(members[index], member_text)
        assert query is not None
        return query

    def add_to_template(self, handle: str, rows: Any) -> Sequence[int]:
        """Register a query for each row of parameters; see `QueryTemplate.add`."""
        return self._pot.writable().templates.add(check_text(handle, "a handle"), rows, self._owner)

    def remove_from_template(
        self, handle: str, numbers: int | Iterable[int] | None, where: Mapping[str, Any] | None
    ) -> int:
        """Unregister queries of a template; see `QueryTemplate.remove`."""
        return self._pot.writable().templates.remove(check_text(handle, "a handle"), numbers, where, self._owner)

    def explain_template(self, handle: str) -> dict[str, Any]:
        """How the queries of a template are matched; see `QueryTemplate.explain`."""
        return self._pot.components.templates.explain(handle, self._owner)

    def unregister_template(self, handle: str) -> None:
        """Unregister a template and all its queries."""
        check_text(handle, "a handle")
        self._pot.writable().templates.drop(handle, self._owner)
