"""An open pot as a server uses it."""

from __future__ import annotations

from tureen.federation.federation import Federation
from tureen.federation.federation_settings import FederationSettings
from tureen.federation.neighbour import Connect
from tureen.functions.function_source import defined_function
from tureen.pot.pot_progress import PotProgress
from tureen.pot.registered import LOCAL
from tureen.soup.embedded import Soup
from tureen.soup.embedded_calls import EmbeddedCalls
from tureen.soup.open_pot import NO_ENGINE


class ServedSoup(Soup):
    """A pot with what requests need beyond the methods of users: calls by handle, and the state of its engine."""

    @classmethod
    def of(cls, soup: Soup) -> ServedSoup:
        """The same open pot, for all owners."""
        return cls(soup._pot)

    def define_function(
        self,
        name: str,
        *,
        source: str | None,
        path: str | None,
        returns: str,
        arguments: str,
        vectorized: bool,
        replace: bool,
    ) -> None:
        """Create a function from its source or its import path."""
        new = defined_function(name, source, path, returns, arguments, vectorized=vectorized)
        self._pot.writable().functions.create(new, self._owner or LOCAL, replace=replace)

    @property
    def calls(self) -> EmbeddedCalls:
        """The calls that a handle's methods make, for requests that name the handle."""
        return self._calls

    @property
    def progress(self) -> PotProgress:
        """The pot's commits and pushes, and how far its streams are derived."""
        return self._pot.components.progress

    def federate(self, connect: Connect, name: str | None, settings: FederationSettings) -> Federation | None:
        """Receive streams of other servers, and let them receive; None in a pot that is open for reading only."""
        return self._pot.federate(connect, name, settings)

    def trouble(self) -> str | None:
        """Why pushed rows do not get into runs; None if Spark takes them, or will once it has started."""
        return self._pot.engine_error() or (NO_ENGINE if self._pot.state() == "none" else None)

    def pipeline(self) -> str:
        """The state of Spark: "starting", "running" or "none"."""
        return self._pot.state()

    def batches(self) -> list[dict[str, float]]:
        """The last micro-batch of each of Spark's streaming queries: its seconds and its rows."""
        engine = self._pot.running
        return [] if engine is None else engine.batches()

    def punctuations(self) -> int:
        """The number of punctuations that this process has stored."""
        engine = self._pot.running
        return 0 if engine is None else engine.inbox.punctuations
