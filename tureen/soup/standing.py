"""The handles that users hold: of a standing query, and of the many queries of a template.

They know no engine, so that one over HTTP is the same class as one of this process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, overload

from tureen.results.answer import Answer, Change


class Registered(Protocol):
    """A standing query as the catalog has it."""

    @property
    def id(self) -> str:
        """Its handle."""

    @property
    def name(self) -> str | None:
        """Its name, where it was given one."""

    @property
    def sql(self) -> str:
        """The SELECT as it was written."""

    @property
    def registered_at(self) -> int:
        """When it was registered, in microseconds."""

    @property
    def error(self) -> str | None:
        """What it raised, where it was stopped."""

    @property
    def state(self) -> str:
        """Either "standing", or "failed" once it raised on some tuple."""


class Kitchen(Protocol):
    """What a handle needs of the soup that it belongs to."""

    def answer(self, handle: str, now: datetime | None, wait_for: str | None, timeout: float | None) -> Answer:
        """Invoke a query."""

    def changes(self, handle: str, *, since: str | None = None, timeout: float | None = None) -> Iterator[Change]:
        """Follow a query."""

    def explain(self, handle: str) -> dict[str, Any]:
        """Tell how a query is answered."""

    def unregister(self, handle: str) -> None:
        """Let a query stand no longer."""

    def registered(self, handle: str) -> Registered:
        """The query as the catalog has it now."""


class StandingQuery:
    """A handle: invoke it now, or come back."""

    def __init__(
        self,
        soup: Kitchen,
        handle: str,
        name: str | None,
        sql: str,
        place: str | None = None,
        label: str | int | None = None,
    ) -> None:
        """Stand for the query of that handle; `place` is where it stands in a listing, if it comes from one."""
        self._soup = soup
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
        """The answer over the window at `now`, once `wait_for` is in."""
        return self._soup.answer(self.id, now, wait_for, timeout)

    def changes(self, *, since: str | None = None, timeout: float | None = None) -> Iterator[Change]:
        """The rows that join the answer from now on, or since a position, as they come and in order of arrival.

        The position is an answer's, or a change's: going on from there misses nothing and repeats nothing. The position
        "0" is before everything. It ends when nothing came for `timeout` seconds, and never without one.
        """
        return self._soup.changes(self.id, since=since, timeout=timeout)

    def explain(self) -> dict[str, Any]:
        """How this query is answered."""
        return self._soup.explain(self.id)

    def unregister(self) -> None:
        """Let the query stand no longer."""
        self._soup.unregister(self.id)

    @property
    def registered(self) -> Registered:
        """The query as the catalog has it now: state, error, when it was registered."""
        return self._soup.registered(self.id)

    @property
    def state(self) -> str:
        """Either "standing", or "failed" once it raised on some tuple."""
        return self.registered.state

    def __repr__(self) -> str:
        """Say which query it is."""
        return f"<tureen.StandingQuery {self.name or self.id!r}: {self.sql}>"


class Follows(Kitchen, Protocol):
    """What a template needs of the soup that it belongs to."""

    def query(self, handle_or_name: str) -> StandingQuery:
        """The query of a handle."""

    def template_numbers(self, handle: str) -> Sequence[int]:
        """The numbers of a template's queries that stand."""

    def template_query(self, handle: str, index: int) -> StandingQuery:
        """The template's registered query at an index."""

    def add_to_template(self, handle: str, rows: Any) -> Sequence[int]:
        """Let a query stand for each of some more rows of parameters."""

    def remove_from_template(
        self, handle: str, numbers: int | Iterable[int] | None, where: Mapping[str, Any] | None
    ) -> int:
        """Let some queries of a template stand no longer."""

    def template_changes(self, handle: str, *, since: str | None, timeout: float | None) -> Iterator[Change]:
        """Follow all queries of a template."""

    def explain_template(self, handle: str) -> dict[str, Any]:
        """Tell how the queries of a template are matched."""

    def unregister_template(self, handle: str) -> None:
        """Let all queries of a template stand no longer."""


class QueryTemplate(Sequence[StandingQuery]):
    """The queries of one `register_many`: a sequence of handles, one for each row of parameters."""

    def __init__(self, soup: Follows, handle: str, name: str | None, sql: str) -> None:
        """Stand for the template of that handle."""
        self._soup = soup
        self.id, self.name, self.sql = handle, name, sql

    def __len__(self) -> int:
        """How many of its queries stand."""
        return len(self._soup.template_numbers(self.id))

    @overload
    def __getitem__(self, place: int) -> StandingQuery: ...
    @overload
    def __getitem__(self, place: slice) -> list[StandingQuery]: ...
    def __getitem__(self, place: int | slice) -> StandingQuery | list[StandingQuery]:
        """The n-th of the queries that stand, or some of them."""
        if isinstance(place, slice):
            numbers = self._soup.template_numbers(self.id)[place]
            return [self._soup.query(f"{self.id}.{number}") for number in numbers]
        return self._soup.template_query(self.id, place)

    @property
    def numbers(self) -> Sequence[int]:
        """The numbers of the queries that stand, ascending: what is behind the dot of their handles."""
        return self._soup.template_numbers(self.id)

    def add(self, rows: Any) -> Sequence[int]:
        """Let a query stand for each of some more rows of parameters; return their numbers.

        `rows` are as in `register_many`, with all of its columns. A number is its query's for ever. The new queries
        answer over all tuples that there are; their changes begin with the tuples that come after them.
        """
        return self._soup.add_to_template(self.id, rows)

    def remove(self, numbers: int | Iterable[int] | None = None, *, where: Mapping[str, Any] | None = None) -> int:
        """Let some of the queries stand no longer, by their numbers or by their values; return how many they were.

        `where` has a value, or a list of values, for each of some columns of the parameters: those queries go whose
        row has one of them in each. All of the numbers must stand, or nothing is removed.
        """
        return self._soup.remove_from_template(self.id, numbers, where)

    def changes(self, *, since: str | None = None, timeout: float | None = None) -> Iterator[Change]:
        """Every row that joins the answer of one of the queries, from now on or since a position.

        In order of arrival, and for one row in the order of the queries; see `StandingQuery.changes`.
        """
        return self._soup.template_changes(self.id, since=since, timeout=timeout)

    def explain(self) -> dict[str, Any]:
        """How the queries are matched with new rows."""
        return self._soup.explain_template(self.id)

    def unregister(self) -> None:
        """Let all of the queries stand no longer."""
        self._soup.unregister_template(self.id)

    def __repr__(self) -> str:
        """Say which template it is."""
        return f"<tureen.QueryTemplate {self.name or self.id!r}: {self.sql}>"
