"""Servers without HTTP, Spark or threads: a test decides when rows are received."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tureen.errors import UnknownQuery, Unreachable
from tureen.federation.federation import Federation
from tureen.federation.federation_settings import DEFAULT_SETTINGS
from tureen.federation.local_neighbour import LocalNeighbour
from tureen.federation.neighbour import Neighbour
from tureen.pot.peers import Peer, add_peer, share_stream
from tureen.pot.stream_cache import StreamCache
from tureen.pot.streams import find_stream, visible_streams
from tureen.results.answer import Answer
from tureen.soup.registry import Registry
from tureen.testing.manual_engine import ManualEngine


class Site:
    """A server of the network."""

    settings = DEFAULT_SETTINGS

    def __init__(self, name: str, root: Path, network: dict[str, Site], clock: Callable[[], int]) -> None:
        """Open the pot of that name."""
        self.name, self._root, self._network, self._clock = name, root, network, clock
        network[name] = self
        self.is_away = False
        self._open()

    def _open(self) -> None:
        self.engine = ManualEngine(self._root / self.name, self._clock)
        engine = self.engine
        self.federation = Federation(
            engine.catalog,
            engine.invoker,
            engine.inbox,
            self._clock,
            self._connect,
            name=self.name,
            settings=self.settings,
        )
        self._registry = Registry(engine.catalog, StreamCache(engine.catalog))
        self._registry.remote = self.federation

    def _connect(self, peer: Peer) -> Neighbour:
        return _Reachable(self._network.get(peer.name) or self._network[peer.name.upper()], self.name)

    def restart(self) -> None:
        """Close the pot and open it again."""
        self.close()
        self._open()

    def close(self) -> None:
        """Close the pot."""
        self.federation.close()
        self.engine.close()

    def receive_from(self, other: Site, *streams: str) -> None:
        """Add a peer that shares these streams."""
        with self.engine.catalog.write() as tx:
            add_peer(tx, Peer(other.name, "http://nowhere"))
        for stream in streams:
            other.share(self, stream)

    def share(self, other: Site, stream: str) -> None:
        """Share a stream with another site."""
        with self.engine.catalog.write() as tx:
            share_stream(tx, other.name, find_stream(tx, stream))

    def register(self, sql: str, name: str | None = None, language: str = "sql", *, materialize: bool = False) -> str:
        """Register a query, perhaps over a stream of another site."""
        return self._registry.register(sql, name, materialize, None, language=language)

    def standing(self, name: str) -> str | None:
        """The handle of a query; None if there is none of that name."""
        try:
            return self._registry.find(name, None).id
        except UnknownQuery:
            return None

    def has_stream(self, name: str) -> bool:
        """Whether there is a stream of that name."""
        with self.engine.catalog.read() as tx:
            return any(stream.name == name for stream in visible_streams(tx))

    def unregister(self, handle: str) -> None:
        """Unregister a query."""
        self._registry.unregister(handle, None)

    def upkeep(self) -> None:
        """Do what an engine does in the background."""
        self.engine.take_everything()
        self.engine.compile()
        self.engine.pay()
        self.engine.keep_joins()
        self.engine.index_keys()
        self.engine.seal(everything=True)
        self.engine.expire()

    def push(self, stream: str, rows: Any) -> None:
        """Push rows."""
        self.engine.append(stream, rows)

    def invoke(self, handle: str) -> Answer:
        """The answer of a query."""
        return self.engine.invoke(handle)

    def answer(self, sql: str) -> Answer:
        """The answer of an unregistered query."""
        return self.engine.invoker.answer_once(sql)


class _Reachable(LocalNeighbour):
    """A site that may be away."""

    def __init__(self, site: Site, peer: str) -> None:
        super().__init__(site.federation.serving, peer)
        self._site = site

    def __getattribute__(self, name: str) -> Any:
        if name in ("info", "frames", "marks", "request"):
            site = object.__getattribute__(self, "_site")
            if site.is_away:
                raise Unreachable(f"no answer from '{site.name}'")
            # It may have been restarted.
            object.__setattr__(self, "_serving", site.federation.serving)
        return object.__getattribute__(self, name)
