"""The peers of a server: connections to them, whether they answer, and what is shared with them."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import Any, NamedTuple

from tureen.errors import PeerFailed, TooMany, TureenError, Unauthorized, UnknownPeer, Unreachable
from tureen.federation.neighbour import Connect, Neighbour, PeerInfo
from tureen.pot.catalog import Catalog
from tureen.pot.held_flows import held_counts
from tureen.pot.peers import (
    Peer,
    add_peer,
    all_shares,
    find_peer,
    list_peers,
    remove_peer,
    share_stream,
    unshare_stream,
)
from tureen.pot.streams import find_stream
from tureen.schema import name_key

log = logging.getLogger("tureen")

ASK_EVERY = 5.0
"""The seconds between two questions to a peer whether it is there."""


ANSWER_SECONDS = 5.0
"""How long a peer may take to describe itself."""

MOST_ASKING = 32
"""How many calls may ask peers at a time: others go on without an answer."""

MOST_QUESTIONS = 4
"""How many questions to one peer about itself may be without an answer; who asks then waits for the newest."""

MOST_THREADS = 256
"""How many questions to all peers about themselves may be without an answer."""


class PeerState(NamedTuple):
    """What people see of a peer."""

    peer: Peer
    state: str
    """One of "unknown", "connected", "away" and "refused"; "shared with" if this server does not call it."""
    since: int | None
    error: str | None
    offered: tuple[str, ...]
    """The streams that it shares with this server."""
    shared: tuple[str, ...]
    """The streams that this server shares with it."""
    kept: int = 0
    """The flows of other servers' streams that this server receives for it."""


class _Answered(NamedTuple):
    state: str
    since: int
    failure: TureenError | None
    info: PeerInfo | None


class Peering:
    """The peers of one server."""

    def __init__(
        self,
        catalog: Catalog,
        connect: Connect,
        clock: Callable[[], int],
        learn: Callable[[PeerInfo], None] = lambda _: None,
    ) -> None:
        """Read the peers from that catalog; `connect` opens a connection to one, `learn` gets what peers tell."""
        self._catalog, self._connect, self._clock, self._learn = catalog, connect, clock, learn
        self._neighbours: dict[str, tuple[Peer, Neighbour]] = {}
        self._replaced: list[tuple[float, Neighbour]] = []
        self._answered: dict[str, _Answered] = {}
        self._lock = threading.Lock()
        self._asking = threading.Event()
        self._slots = threading.BoundedSemaphore(MOST_ASKING)
        self._threads = ThreadPoolExecutor(MOST_THREADS, "tureen-peer")
        self._questions: dict[str, list[Future[PeerInfo | TureenError]]] = {}
        self._is_closed = False
        self._is_running = False
        """Whether all peers are asked every few seconds."""

    @property
    def neighbours(self) -> Mapping[str, Neighbour]:
        """The connections to all peers, by name."""
        return MappingProxyType({name: self.neighbour(name) for name in self.names()})

    def names(self) -> list[str]:
        """The names of all peers."""
        with self._catalog.read() as tx:
            return [peer.name for peer in list_peers(tx)]

    def neighbour(self, name: str) -> Neighbour:
        """The connection to a peer, opened at the first call."""
        with self._catalog.read() as tx:
            peer = find_peer(tx, name)
        with self._lock:
            known = self._neighbours.get(name_key(name))
            if known is not None and known[0] != peer:
                # It is closed once those that use it have noticed.
                self._replaced.append((time.monotonic(), self._neighbours.pop(name_key(name))[1]))
                known = None
            if self._is_closed:
                raise TureenError("the server is shutting down")
            if peer is None:
                raise UnknownPeer(f"there is no peer named '{name}' any more")
            if known is None:
                known = self._neighbours[name_key(name)] = (peer, self._connect(peer))
            return known[1]

    def _forget(self, name: str) -> None:
        """Connect again at the next call: the token may have been replaced where it comes from."""
        with self._lock:
            known = self._neighbours.pop(name_key(name), None)
            if known is not None:
                self._replaced.append((time.monotonic(), known[1]))

    def info(self, name: str) -> PeerInfo:
        """The description that a peer gives of itself."""
        try:
            info = self.neighbour(name).info(ANSWER_SECONDS)
            # Peers name those that wait for an answer, so that nobody is asked in a circle: letters count, too.
            if info.name != name:
                raise PeerFailed(f"the server is named '{info.name}'", hint=f"add it as peer '{info.name}'")
        except TureenError as error:
            if isinstance(error, Unauthorized):
                self._forget(name)
            refused = isinstance(error, PeerFailed | Unauthorized)
            self._note(name, "refused" if refused else "away", error, None)
            raise
        self._note(name, "connected", None, info)
        self._learn(info)
        return info

    def infos(self) -> dict[str, PeerInfo | TureenError]:
        """The description that each peer gives of itself, or why it does not answer."""
        names = self.names()
        if not self._is_running:
            return {name: self._told(name) for name in names}
        away = {name: failure for name in names if (failure := self._failure(name)) is not None}
        return away | self._ask_about_themselves([name for name in names if name not in away])

    def _ask_about_themselves(self, names: list[str]) -> dict[str, PeerInfo | TureenError]:
        """Ask peers at the same time: one that does not answer must not delay the others, and nobody for long."""
        questions = {name: self._question(name) for name in names}
        wait([call for call in questions.values() if call is not None], timeout=ANSWER_SECONDS)
        told: dict[str, PeerInfo | TureenError] = {}
        for name, call in questions.items():
            if call is not None and call.done() and not call.cancelled():
                told[name] = call.result()
            else:
                told[name] = error = Unreachable(f"no answer from '{name}' in time")
                self._note(name, "away", error, None)
        return told

    def _question(self, name: str) -> Future[PeerInfo | TureenError] | None:
        """Ask a peer about itself in a thread, or wait with others that ask already; None if the server stops."""
        with self._lock:
            if self._is_closed:
                return None
            calls = [call for call in self._questions.get(name_key(name), ()) if not call.done()]
            self._questions[name_key(name)] = calls
            if len(calls) < MOST_QUESTIONS:
                calls.append(self._threads.submit(self._told, name))
            return calls[-1]

    def _told(self, name: str) -> PeerInfo | TureenError:
        try:
            return self.info(name)
        except TureenError as error:
            return error

    def _failure(self, name: str) -> TureenError | None:
        """Why a peer did not answer recently: it is asked every few seconds, and calls do not wait for it meanwhile."""
        answered = self._answered.get(name_key(name))
        if not self._is_running or answered is None or answered.failure is None:
            return None
        return Unreachable(f"peer '{name}' is {answered.state}: {answered.failure.message}")

    def ask(self, name: str, method: str, path: str, body: Any, seconds: float | None = ANSWER_SECONDS) -> Any:
        """Send a request to a peer, at once raising for one that is known to be away; see `Neighbour.request`."""
        failure = self._failure(name)
        if failure is not None:
            raise failure
        try:
            return self.neighbour(name).request(method, path, body, seconds)
        except Unreachable as error:
            self._note(name, "away", error, None)
            raise

    @contextmanager
    def asking(self) -> Iterator[None]:
        """A block that may ask peers; raises TooMany if there are too many of them, so that not all threads wait."""
        if not self._slots.acquire(blocking=False):
            raise TooMany("too many calls wait for other servers at the moment", hint="try again")
        try:
            yield
        finally:
            self._slots.release()

    def _note(self, name: str, state: str, error: TureenError | None, info: PeerInfo | None) -> None:
        before = self._answered.get(name_key(name))
        message = None if error is None else error.message
        if before is None or before.state != state:
            if error is not None:
                log.warning("peer '%s' is %s: %s", name, state, message)
            elif before is not None:
                log.info("peer '%s' answers again", name)
        since = self._clock() if before is None or before.state != state else before.since
        self._answered[name_key(name)] = _Answered(state, since, error, info)

    def states(self) -> list[PeerState]:
        """All peers, and those that only receive."""
        with self._catalog.read() as tx:
            peers, shares, kept = list_peers(tx), all_shares(tx), held_counts(tx)
        by_key = {name_key(name): tuple(streams) for name, streams in shares.items()}
        states = []
        for peer in peers:
            answered = self._answered.get(name_key(peer.name), _Answered("unknown", peer.added_at, None, None))
            offered = () if answered.info is None else tuple(stream.name for stream in answered.info.streams)
            key = name_key(peer.name)
            shared = by_key.pop(key, ())
            error = None if answered.failure is None else answered.failure.message
            states.append(PeerState(peer, answered.state, answered.since, error, offered, shared, kept[key]))
        receiving = {name: streams for name, streams in shares.items() if name_key(name) in by_key}
        states += [
            PeerState(Peer(name, ""), "shared with", None, None, (), tuple(streams), kept[name_key(name)])
            for name, streams in receiving.items()
        ]
        return states

    def add(self, peer: Peer) -> None:
        """Add a peer; it need not answer yet."""
        # Raises for an address that is not one.
        self._connect(peer).close()
        with self._catalog.write() as tx:
            add_peer(tx, peer)
        self._asking.set()

    def remove(self, name: str) -> None:
        """Remove a peer, and what is shared with it."""
        with self._catalog.write() as tx:
            remove_peer(tx, name)
        self._answered.pop(name_key(name), None)

    def share(self, peer: str, stream: str) -> None:
        """Let a peer see a stream."""
        with self._catalog.write() as tx:
            share_stream(tx, peer, find_stream(tx, stream))

    def unshare(self, peer: str, stream: str) -> None:
        """Withdraw a stream from a peer."""
        with self._catalog.write() as tx:
            unshare_stream(tx, peer, find_stream(tx, stream))

    def run(self, closing: threading.Event) -> None:
        """Ask all peers at intervals whether they are there, until the server stops."""
        self._is_running = True
        while not closing.is_set():
            self._asking.clear()
            try:
                self._ask_all(closing)
            except Exception:
                log.exception("peers could not be asked; retrying")
            self._asking.wait(ASK_EVERY)

    def _close_replaced(self, before: float) -> None:
        """Close the connections that were replaced before a moment."""
        with self._lock:
            due = [neighbour for moment, neighbour in self._replaced if moment <= before]
            self._replaced = [entry for entry in self._replaced if entry[0] > before]
        for neighbour in due:
            with suppress(TureenError):
                neighbour.close()

    def _ask_all(self, closing: threading.Event) -> None:
        self._close_replaced(time.monotonic() - ASK_EVERY)
        if not closing.is_set():
            self._ask_about_themselves(self.names())

    def close(self) -> None:
        """Close all connections."""
        self.wake()
        with self._lock:
            self._is_closed = True
            self._replaced += [(0.0, neighbour) for _, neighbour in self._neighbours.values()]
            self._neighbours = {}
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._close_replaced(math.inf)

    def wake(self) -> None:
        """Let `run` look whether the server stops."""
        self._asking.set()
