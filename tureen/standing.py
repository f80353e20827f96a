"""The handles that users hold: of a standing query, and of the many queries of a template.

They know no engine, so that one over HTTP is the same class as one of this process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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

    def __init__(self, soup: Kitchen, handle: str, name: str | None, sql: str, place: str | None = None) -> None:
        """Stand for the query of that handle; `place` is where it stands in a listing, if it comes from one."""
        self._soup = soup
        self.id = handle
        self.name = name
        self.sql = sql
        self.place = place

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
        numbers = self._soup.template_numbers(self.id)
        if isinstance(place, slice):
            return [self._soup.query(f"{self.id}.{number}") for number in numbers[place]]
        return self._soup.query(f"{self.id}.{numbers[place]}")

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
