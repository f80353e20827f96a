"""Handles of standing queries and of templates.

Both make their calls through `HandleCalls`, so that embedded pots and HTTP clients have the same handles.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol, overload

from tureen.errors import Unsupported
from tureen.handle import member_handle
from tureen.results.answer import Answer, Change
from tureen.why.explanation import DEFAULT_LIMIT, Explanation


class RegisteredQuery(Protocol):
    """The current state of a standing query in the catalog."""

    @property
    def id(self) -> str:
        """Its handle."""

    @property
    def name(self) -> str | None:
        """Its name, if it has one."""

    @property
    def sql(self) -> str:
        """The text of its SELECT."""

    @property
    def registered_at(self) -> int:
        """When it was registered, in microseconds."""

    @property
    def error(self) -> str | None:
        """The error that stopped it, if it failed."""

    @property
    def state(self) -> str:
        """Either "standing", or "failed" after it raised an error on a tuple."""

    @property
    def label(self) -> str | int | None:
        """Its label, if it belongs to a template with labels."""

    @property
    def language(self) -> str:
        """The language of its text."""


class Following(NamedTuple):
    """What a follower asks for, as the arguments of `StandingQuery.changes`."""

    since: str | None = None
    timeout: float | None = None
    on: str | None = None
    hold: str | None = None
    punctuations: bool = False


class HandleCalls(Protocol):
    """The calls that handles make: to an embedded pot, or to a server."""

    def registered(self, handle_or_name: str) -> RegisteredQuery:
        """The current state of a query."""

    def answer(self, handle: str, now: datetime | None, wait_for: str | None, timeout: float | None) -> Answer:
        """Invoke a query; see `StandingQuery.invoke`."""

    def changes(self, handle: str, asked: Following) -> Iterator[Change]:
        """Follow a query; see `StandingQuery.changes`."""

    def explain(self, handle: str) -> dict[str, Any]:
        """How a query is answered."""

    def why(self, handle: str, condition: str, now: datetime | None, limit: int) -> Explanation:
        """Why tuples are in a query's answer or not; see `StandingQuery.why`."""

    def unregister(self, handle: str) -> None:
        """Unregister a query."""

    def template_numbers(self, handle: str) -> Sequence[int]:
        """The numbers of a template's queries."""

    def template_query(self, handle: str, index: int) -> RegisteredQuery:
        """A query of a template, by its index."""

    def add_to_template(self, handle: str, rows: Any) -> Sequence[int]:
        """Register a query for each row of parameters; see `QueryTemplate.add`."""

    def remove_from_template(
        self, handle: str, numbers: int | Iterable[int] | None, where: Mapping[str, Any] | None
    ) -> int:
        """Unregister queries of a template; see `QueryTemplate.remove`."""

    def template_changes(self, handle: str, asked: Following) -> Iterator[Change]:
        """Follow all queries of a template; see `QueryTemplate.changes`."""

    def explain_template(self, handle: str) -> dict[str, Any]:
        """How the queries of a template are matched."""

    def unregister_template(self, handle: str) -> None:
        """Unregister a template and all its queries."""


class StandingQuery:
    """A handle of a standing query."""

    def __init__(
        self,
        calls: HandleCalls,
        handle: str,
        name: str | None,
        sql: str,
        place: str | None = None,
        label: str | int | None = None,
    ) -> None:
        """Refer to a query; `place` is the cursor of a query that was listed: pass it as `after` to `Soup.queries`."""
        self._calls = calls
        self.id = handle
        self.name = name
        self.sql = sql
        self.place = place
        self.label = label

    def invoke(
        self,
        *,
        now: datetime | None = None,
        wait_for: str | None = None,
        timeout: float | None = None,
    ) -> Answer:
        """The answer over the window at `now`, after the position `wait_for` is reached."""
        return self._calls.answer(self.id, now, wait_for, timeout)

    def changes(
        self,
        *,
        since: str | None = None,
        timeout: float | None = None,
        on: str | None = None,
        hold: str | None = None,
        punctuations: bool = False,
    ) -> Iterator[Change]:
        """The rows that join the answer from now on, or since a position, in order of arrival.

        Those of a join come in an order that agrees with the order of arrival in each of its streams.

        Resuming from the position of an answer or a change neither misses nor repeats a row. The position "0" is before
        all rows. The iterator ends after `timeout` seconds without a row; without a timeout it never ends.

        Rows of groups also change and leave: see `Change.kind`. With `on="turn"` only groups that come and go are
        changes; with `hold="30 seconds"` only once that has lasted so long, in the query's clock.

        With `punctuations=True`, the promises that the query's streams make about its rows come among them: such a
        change has a `punctuation`, and its row is None.
        """
        return self._calls.changes(self.id, Following(since, timeout, on, hold, punctuations))

    def explain(self) -> dict[str, Any]:
        """How this query is answered."""
        return self._calls.explain(self.id)

    def why(self, condition: str, *, now: datetime | None = None, limit: int = DEFAULT_LIMIT) -> Explanation:
        """Why tuples are in the answer at `now`, or what kept them out.

        `condition` is over the columns of one input of the query, as in "t.sym = 'IBM' AND t.qty = 3"; the tuples that
        satisfy it are explained, whether they are in the window or not; if there are more than `limit`, the latest.
        """
        return self._calls.why(self.id, condition, now, limit)

    def unregister(self) -> None:
        """Unregister the query."""
        self._calls.unregister(self.id)

    @property
    def registered(self) -> RegisteredQuery:
        """The current state of the query: state, error, time of registration."""
        return self._calls.registered(self.id)

    @property
    def state(self) -> str:
        """Either "standing", or "failed" after it raised an error on a tuple."""
        return self.registered.state

    def __repr__(self) -> str:
        """The class, the name or handle, and the SQL."""
        return f"<tureen.StandingQuery {self.name or self.id!r}: {self.sql}>"


def standing_query(calls: HandleCalls, query: RegisteredQuery) -> StandingQuery:
    """The handle of a query that was looked up."""
    return StandingQuery(calls, query.id, query.name, query.sql, label=query.label)


class QueryTemplate(Sequence[StandingQuery]):
    """The queries of one `register_many`: a sequence of handles, one for each row of parameters."""

    def __init__(self, calls: HandleCalls, handle: str, name: str | None, sql: str) -> None:
        """Refer to the template of that handle."""
        self._calls = calls
        self.id, self.name, self.sql = handle, name, sql

    def __len__(self) -> int:
        """The number of its queries."""
        return len(self._calls.template_numbers(self.id))

    @overload
    def __getitem__(self, index: int) -> StandingQuery: ...
    @overload
    def __getitem__(self, index: slice) -> list[StandingQuery]: ...
    def __getitem__(self, index: int | slice) -> StandingQuery | list[StandingQuery]:
        """The query at an index, or the queries of a slice."""
        if isinstance(index, slice):
            numbers = self._calls.template_numbers(self.id)[index]
            handles = [member_handle(self.id, number) for number in numbers]
            return [standing_query(self._calls, self._calls.registered(handle)) for handle in handles]
        return standing_query(self._calls, self._calls.template_query(self.id, index))

    @property
    def numbers(self) -> Sequence[int]:
        """The numbers of the queries, ascending: the part of their handles after the dot."""
        return self._calls.template_numbers(self.id)

    def add(self, rows: Any) -> Sequence[int]:
        """Register a query for each row of parameters; return their numbers.

        `rows` has the forms and all columns of the `params` of `register_many`. A number is never reused. The answers
        of the new queries include existing tuples; their changes start with tuples that arrive after them.
        """
        return self._calls.add_to_template(self.id, rows)

    def remove(self, numbers: int | Iterable[int] | None = None, *, where: Mapping[str, Any] | None = None) -> int:
        """Unregister queries by their numbers or by their parameters; return how many were removed.

        `where` maps columns of the parameters to a value or a list of values: a query is removed if each of these
        columns has one of its values. If a number does not exist, nothing is removed.
        """
        return self._calls.remove_from_template(self.id, numbers, where)

    def changes(
        self,
        *,
        since: str | None = None,
        timeout: float | None = None,
        on: str | None = None,
        hold: str | None = None,
        punctuations: bool = False,
    ) -> Iterator[Change]:
        """The rows that join the answer of any of the queries, from now on or since a position.

        In order of arrival, and for one row in the order of the queries; see `StandingQuery.changes`.
        """
        if punctuations:
            raise Unsupported("the changes of a template have no punctuations", hint="follow one of its queries")
        return self._calls.template_changes(self.id, Following(since, timeout, on, hold))

    def explain(self) -> dict[str, Any]:
        """How the queries are matched with new rows."""
        return self._calls.explain_template(self.id)

    def unregister(self) -> None:
        """Unregister the template and all its queries."""
        self._calls.unregister_template(self.id)

    def __repr__(self) -> str:
        """The class, the name or handle, and the SQL."""
        return f"<tureen.QueryTemplate {self.name or self.id!r}: {self.sql}>"
