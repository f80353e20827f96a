"""Networks of servers in one process that plan together; see `servers_in_process.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import inf
from pathlib import Path

from tests.federation.servers_in_process import Site
from tureen.federation.federation_settings import FederationSettings
from tureen.federation.network_planner import NetworkPlanner
from tureen.pot.links import Link
from tureen.pot.peers import unshare_stream
from tureen.pot.streams import find_stream

NARROWING = FederationSettings(narrow_seconds=0.0)


class Node(Site):
    """A server with a planner, which narrows flows at once, or as its settings say."""

    def __init__(
        self, name: str, root: Path, network: dict[str, Site], clock: Callable[[], int], settings: FederationSettings
    ) -> None:
        self.settings = settings
        super().__init__(name, root, network, clock)

    def _open(self) -> None:
        super()._open()
        catalog, invoker = self.engine.catalog, self.engine.invoker
        # Leases end at once, and nothing is remembered, so that a test need not wait.
        self.planner = NetworkPlanner(
            self.federation, catalog, invoker, self._clock, load=lambda: 0.0, lease=0.0, memory=0.0, patience=inf
        )

    def share(self, other: Site, stream: str) -> None:
        """Share a stream with another server, also one that lives at a third."""
        if not self.has_stream(stream):
            assert self.federation.find_remote(stream) is not None
        super().share(other, stream)

    def unshare(self, other: Site, stream: str) -> None:
        """Withdraw a stream from another server."""
        with self.engine.catalog.write() as tx:
            unshare_stream(tx, other.name, find_stream(tx, stream))

    def links(self, *, local: bool = False) -> list[Link]:
        """The links from other servers; with `local`, those from replicas of this one."""
        return [link for link in self.federation.links() if (link.peer == self.name) is local]

    def start(self) -> None:
        """Open the pot again."""
        self._open()
        self.is_away = False

    def stop(self) -> None:
        """Close the pot."""
        self.is_away = True
        self.close()


class Nodes:
    """All servers of a network."""

    def __init__(
        self,
        root: Path,
        clock: Callable[[], int],
        links: Sequence[tuple[str, str]],
        settings: FederationSettings = NARROWING,
    ) -> None:
        """Start servers that are connected by links, in both directions."""
        sites: dict[str, Site] = {}
        names = dict.fromkeys(name for link in links for name in link)
        self.all = {name: Node(name, root, sites, clock, settings) for name in names}
        for left, right in links:
            self[left].receive_from(self[right])
            self[right].receive_from(self[left])

    def __getitem__(self, name: str) -> Node:
        return self.all[name]

    @property
    def running(self) -> list[str]:
        """The names of the servers that run."""
        return [name for name, node in self.all.items() if not node.is_away]

    def share(self, stream: str, *route: str) -> None:
        """Share a stream along a route: each server with the next."""
        for sender, receiver in pairwise(route):
            self[sender].share(self[receiver], stream)

    def receive(self) -> None:
        """Let all servers receive what is there, and what follows from it."""
        before = None
        while before != (before := self._progress()):
            for name in self.running:
                self[name].federation.step()

    def tend(self) -> None:
        """Let all servers drop what is not needed, until nothing changes."""
        before = None
        while before != (before := [link[2:] for name in self.running for link in self._links(name)]):
            self.receive()
            for name in self.running:
                self[name].planner.tend()

    def _links(self, name: str) -> list[Link]:
        return self[name].federation.links()

    def _progress(self) -> list[tuple[int, str | None]]:
        """How far each link is, and what it lacks: that a server is not away any more is learned link by link."""
        return [
            (federation.serving.progress(link).next_id, federation.trouble_of(link.id))
            for federation in (self[name].federation for name in self.running)
            for link in federation.links()
        ]

    def traffic(self) -> dict[str, int]:
        """The bytes that were received over each link since its servers were started, by `sender-receiver`."""
        bytes_of: dict[str, int] = {}
        for name in self.running:
            for state in self[name].federation.link_states():
                if state.link.peer != name:
                    key = f"{state.link.peer}-{name}"
                    bytes_of[key] = bytes_of.get(key, 0) + state.bytes
        return bytes_of

    def close(self) -> None:
        """Stop all servers."""
        for name in self.running:
            self[name].stop()
