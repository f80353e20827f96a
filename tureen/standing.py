"""The handle of a standing query."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Protocol

from tureen.pot.queries import Registered
from tureen.results.answer import Answer
from tureen.results.changes import Change


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

        The position is an answer's, or a change's: going on from there misses nothing and repeats nothing. It ends when
        nothing came for `timeout` seconds, and never without one.
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
