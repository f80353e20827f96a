"""The federation of one server: its peers, the streams that it receives, and the links that feed their replicas."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping

from tureen.closed.rules import NO_RULES
from tureen.errors import TureenError, Unsupported, WaitTimeout
from tureen.faults import crash_point
from tureen.federation.borrowing import Borrowing
from tureen.federation.federation_settings import DEFAULT_SETTINGS, FederationSettings
from tureen.federation.flow import known_flow, link_flow
from tureen.federation.flow_serving import FlowServing
from tureen.federation.link_intake import LinkIntake
from tureen.federation.link_run import TROUBLED, LinkRun, LinkState
from tureen.federation.local_neighbour import LocalNeighbour
from tureen.federation.needs import Need, need_of
from tureen.federation.neighbour import HEARTBEAT, Connect, Neighbour, PeerInfo
from tureen.federation.peering import Peering
from tureen.federation.placement import DirectPlacement, LinkSource, Placement
from tureen.federation.remote_lookup import shared_stream
from tureen.pot.catalog import Catalog
from tureen.pot.inbox import Inbox
from tureen.pot.links import Link, change_link, create_link, drop_link, is_federated, list_links, used_replicas
from tureen.pot.peers import name_server
from tureen.pot.registered import NewInput
from tureen.pot.streams import Stream, create_stream, find_stream, note_declared, visible_streams
from tureen.pot.transaction import Transaction
from tureen.query import Query
from tureen.results.invoke import Invoker
from tureen.schema import name_key
from tureen.sharing.partial_rows import over_partial_rows

log = logging.getLogger("tureen")

LOCAL_SECONDS = 0.01
"""The interval at which a replica that is fed from another one looks for new rows."""

POLL_SECONDS = 0.005
"""The interval at which a waiting call looks how far links are."""

WATCH_SECONDS = 0.5
"""The interval at which the catalog is checked for changed links and unused replicas."""

UPKEEP_SECONDS = 10.0
"""The interval at which peers are told what is received from them."""


class Federation:
    """The peers of one server, and what it receives from them."""

    def __init__(
        self,
        catalog: Catalog,
        invoker: Invoker,
        inbox: Inbox,
        clock: Callable[[], int],
        connect: Connect,
        *,
        name: str | None = None,
        placement: Placement | None = None,
        settings: FederationSettings = DEFAULT_SETTINGS,
    ) -> None:
        """Federate a pot; `connect` opens a connection to a peer."""
        self._catalog, self._inbox, self._clock, self.settings = catalog, inbox, clock, settings
        with catalog.write() as tx:
            self.name = name_server(tx, name)
        self.peering = Peering(catalog, connect, clock, self._learn_rules)
        self.serving = FlowServing(catalog, invoker, inbox, self.trouble_of, settings.quota)
        self.placement: Placement = placement or DirectPlacement(self.infos)
        self.in_use: list[Callable[[Transaction], set[int]]] = []
        """Functions that return replicas which are in use, though no query of this server reads them."""
        self.upkeep: Callable[[], object] = self.sweep
        """Called after changes of the catalog, and every `UPKEEP_SECONDS`."""
        self._runs: dict[int, LinkRun] = {}
        self._claims: dict[int, int] = {}
        self._borrowing = Borrowing(self._wait_until_current, self.release)
        self._lock = threading.RLock()
        self._closing = threading.Event()
        self._threads: list[threading.Thread] = []
        self._token = -1
        invoker.view.trouble_of_replica = self.trouble_of
        invoker.prepared.borrow_replica = self.borrow_replica
        invoker.prepared.find_remote = self.find_remote
        self.refresh()

    # Peers

    @property
    def neighbours(self) -> Mapping[str, Neighbour]:
        """The connections to all peers, by name."""
        return self.peering.neighbours

    def neighbour(self, name: str) -> Neighbour:
        """The connection to a peer; with this server's name, to itself."""
        if name_key(name) == name_key(self.name):
            wait = (lambda: not self._closing.wait(LOCAL_SECONDS)) if self._threads else None
            return LocalNeighbour(self.serving, None, wait)
        return self.peering.neighbour(name)

    def infos(self) -> dict[str, PeerInfo | TureenError]:
        """The description that each peer gives of itself, or why it does not answer."""
        return self.peering.infos()

    # Streams

    def find_remote(self, name: str) -> Stream | None:
        """Add the stream that a peer shares under that name to the catalog; None if no peer shares one."""
        with self.peering.asking():
            stream = shared_stream(self.infos(), name)
        if stream is None:
            return None
        with self._catalog.write() as tx:
            for known in visible_streams(tx):
                if name_key(known.name) == name_key(name):
                    return known
            return create_stream(
                tx,
                stream.name,
                stream.parsed,
                clock=stream.clock,
                retain=stream.retain,
                source=None,
                item=stream.item,
                home=stream.home,
                origin=stream.origin,
                rules=stream.rules or NO_RULES,
            )

    def replica_for(self, stream: Stream, query: Query, number: int, *, aggregates: bool = False) -> NewInput:
        """The replica from which the leaf of that number of a query over a remote stream is answered, and its clause.

        With `aggregates`, it may have partial aggregates of the tuples.
        """
        if query.final:
            self._check_punctuated(stream)
        link = self.replica_of(need_of(stream, query, number, aggregates=aggregates))
        clause, aggregation = query.leaves[number].clause, link_flow(link).aggregation
        if aggregation is not None:
            clause = over_partial_rows(query, stream.visible, aggregation).stream.clause
        return NewInput(link.id, clause)

    def _learn_rules(self, info: PeerInfo) -> None:
        """Store what streams declare at their homes, which tells when groups are final."""
        told = {each.origin: each.rules for each in info.streams if each.rules is not None}
        with self._catalog.read() as tx:
            remote = [stream for stream in visible_streams(tx) if stream.home is not None]
        for stream in remote:
            rules = told.get(stream.origin or "", stream.rules)
            # A server that passes the stream on may not have learned yet what it declares.
            if rules != stream.rules and (rules or info.name == stream.home):
                with self._catalog.write() as tx:
                    note_declared(tx, stream, rules)

    def _check_punctuated(self, stream: Stream) -> None:
        """Raise unless a peer sends the rules of a stream, and so its punctuations."""
        infos = self.infos().values()
        offered = [each for info in infos if isinstance(info, PeerInfo) for each in info.streams]
        if not any(each.origin == stream.origin and each.rules is not None for each in offered):
            raise Unsupported(
                f"EMIT FINAL is not supported over stream '{stream.name}', which lives at '{stream.home}'",
                detail="no peer that answers sends the punctuations of the stream",
                hint="`peer list` shows the peers; those of version 0.7 send no punctuations",
            )

    def whole_replica(self, stream: Stream) -> int:
        """The replica that has all tuples of a stream."""
        return self.replica_of(Need(stream)).id

    def borrow_replica(self, stream: Stream, query: Query, number: int) -> int:
        """A replica for an unregistered query; it is kept for a while."""
        need = need_of(stream, query, number, aggregates=True)
        return self._borrowing.borrow(lambda asks: self.replica_of(need, ask=asks).id)

    def _wait_until_current(self, replica: int, deadline: float) -> None:
        while self._threads and self.trouble_of(replica) is not None and time.monotonic() < deadline:
            run = self._runs.get(replica)
            if run is None or self._closing.wait(0.01) or run.state.state in TROUBLED:
                return

    def replica_of(self, need: Need, *, ask: bool = True) -> Link:
        """The link whose replica has what is needed; it is kept until `release`, or while a query uses it."""
        return self.claim_link(need.stream, lambda: self.placement.place(need, self.links(), ask=ask))

    def claim_link(self, stream: Stream, place: Callable[[], Link | LinkSource]) -> Link:
        """The link that `place` returns, or a new one from the source that it returns; it is kept until `release`."""
        while True:
            # Without the lock: it asks peers, which may be asking this server.
            placed = place()
            with self._lock:
                links = self.links()
                if isinstance(placed, LinkSource):
                    link = next((known for known in links if _is_from(known, stream, placed)), None)
                    link = link or self.open_link(stream, placed)
                elif all((known.id, known.flow) != (placed.id, placed.flow) for known in links):
                    continue  # it was dropped or narrowed meanwhile
                else:
                    link = placed
                self._claims[link.id] = self._claims.get(link.id, 0) + 1
                return link

    def release(self, replica: int) -> None:
        """The registration that asked for a replica is committed, or has failed."""
        with self._lock:
            self._claims[replica] = self._claims.get(replica, 1) - 1
            if self._claims[replica] <= 0:
                del self._claims[replica]

    # Links

    def links(self) -> list[Link]:
        """The links of this server."""
        with self._catalog.read() as tx:
            return list_links(tx)

    def open_link(self, stream: Stream, source: LinkSource) -> Link:
        """Create a replica that receives a flow from a peer."""
        partials = known_flow(source.flow, stream.name, stream.visible).partials
        crash_point("link.before_create")
        with self._catalog.write() as tx:
            link = create_link(tx, find_stream(tx, stream.name), source.peer, source.flow, partials)
        crash_point("link.after_create")
        self.refresh()
        return link

    def change_source(self, link: Link, peer: str) -> None:
        """Let a replica receive its flow from another peer; it continues after the tuples that it has."""
        with self._catalog.write() as tx:
            change_link(tx, link.id, peer, link.flow)
        self.refresh()

    def change_flow(self, link: Link, flow: str, is_unchanged: Callable[[Transaction], bool]) -> bool:
        """Let a replica receive a narrower flow after the tuples that it has; False if it is used otherwise now."""
        with self._lock:
            if link.id in self._claims:
                return False
            with self._catalog.write() as tx:
                if not is_unchanged(tx):
                    return False
                change_link(tx, link.id, link.peer, flow)
            self.refresh()
            return True

    def sweep(self) -> list[Link]:
        """Drop the links whose replicas are not in use."""
        with self._lock:
            with self._catalog.read() as tx:
                used = used_replicas(tx) | self._claims.keys()
                for others in self.in_use:
                    used |= others(tx)
                unused = [link for link in list_links(tx) if link.id not in used]
            for link in unused:
                crash_point("link.before_drop")
                with self._catalog.write() as tx:
                    drop_link(tx, link.id)
            if unused:
                self.refresh()
        for link in unused:
            self.placement.released(link)
        return unused

    def refresh(self) -> None:
        """Start, change and stop links as the catalog says."""
        with self._lock:
            links = {link.id: link for link in self.links()}
            for number, run in list(self._runs.items()):
                link = links.get(number)
                if link is None or (link.peer, link.flow) != (run.link.peer, run.link.flow):
                    run.stop()
                    del self._runs[number]
                    if link is not None:
                        self._start(link, run)
            for number, link in links.items():
                if number not in self._runs:
                    self._start(link)

    def _start(self, link: Link, before: LinkRun | None = None) -> None:
        def open_intake() -> LinkIntake:
            return LinkIntake(link, self._inbox, self._clock, self.serving.progress(link))

        run = self._runs[link.id] = LinkRun(link, open_intake, self.neighbour, self._clock)
        if self._threads:
            run.start(before)

    def link_states(self) -> list[LinkState]:
        """The state of each link."""
        return [run.state for run in list(self._runs.values())]

    def wait_for(self, peer: str, position: str, seconds: float) -> None:
        """Block until what is received here has all tuples up to a position of a peer, where they live."""
        deadline = time.monotonic() + seconds
        marks = self.neighbour(peer).marks(position, seconds)
        while behind := [state for state in self.link_states() if _is_before(state, marks)]:
            if self._closing.wait(POLL_SECONDS) or time.monotonic() > deadline:
                raise WaitTimeout(
                    f"the position was not received from '{peer}' in time",
                    detail=self.trouble_of(behind[0].link.id),
                    hint="`status` shows the links",
                )

    def trouble_of(self, replica: int) -> str | None:
        """Why answers from a replica may lack tuples; None if it is current."""
        run = self._runs.get(replica)
        return "the stream is not received" if run is None else run.trouble()

    # Running

    def step(self) -> None:
        """Receive what is there now, without threads; tests call it."""
        self.refresh()
        for run in list(self._runs.values()):
            run.try_receive()

    def start(self) -> None:
        """Receive in threads until `close`."""
        watching = threading.Thread(target=self._watch, name="tureen-federation", daemon=True)
        asking = threading.Thread(target=self.peering.run, args=(self._closing,), name="tureen-peers", daemon=True)
        with self._lock:
            self._threads = [watching, asking]
            for run in self._runs.values():
                run.start()
        watching.start()
        asking.start()

    def _watch(self) -> None:
        due = 0.0
        while not self._closing.wait(WATCH_SECONDS):
            token, returned = self._catalog.token(), self._borrowing.return_due()
            if token == self._token and not returned and time.monotonic() < due:
                continue
            self._token, due = token, time.monotonic() + UPKEEP_SECONDS
            try:
                if not self._is_federated():
                    continue
                self.refresh()
                self.upkeep()
            except Exception:
                log.exception("links could not be checked; retrying")
                self._token = -1

    def _is_federated(self) -> bool:
        with self._catalog.read() as tx:
            return bool(self._runs or self._claims) or is_federated(tx)

    def close(self) -> None:
        """Stop receiving; rows that are stored stay."""
        self._closing.set()
        with self._lock:
            runs = list(self._runs.values())
        for run in runs:
            run.stop()
        self.peering.wake()
        deadline = time.monotonic() + 3 * HEARTBEAT
        for run in runs:
            run.join(max(0.0, deadline - time.monotonic()))
        for thread in self._threads:
            thread.join(max(0.1, deadline - time.monotonic()))
        self.peering.close()


def _is_before(state: LinkState, marks: Mapping[str, int]) -> bool:
    """Whether a link has not received the tuples up to an id of its stream's home, or does not know yet that it has."""
    next_id = marks.get(state.link.stream.origin or "")
    return next_id is not None and (state.next_id < next_id or state.state in ("connecting", "receiving"))


def _is_from(link: Link, stream: Stream, source: LinkSource) -> bool:
    return link.stream.id == stream.id and (link.peer, link.flow) == source
