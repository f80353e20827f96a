"""The planning of one server: it places what queries need, answers peers, and keeps the flows as they are needed.

What is kept for a peer is released when the peer does not name it any more, and what nobody uses is dropped, so that
unregistering a query removes its flows at all peers before this one. It takes one round of `tend` at each.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence

from tureen.errors import TureenError
from tureen.federation.askers import PLAN_SECONDS
from tureen.federation.federation import Federation
from tureen.federation.narrowing import Narrowing
from tureen.federation.neighbour import FLOWS_PATH
from tureen.federation.network_placement import INFO_SECONDS, NetworkPlacement, machine_load, read_link
from tureen.federation.peer_messages import read_flows
from tureen.federation.peer_requests import LEASE_SECONDS, PeerRequests
from tureen.pot.catalog import Catalog
from tureen.pot.held_flows import held_replicas, release_flows
from tureen.pot.links import Link, list_links
from tureen.pot.peers import list_peers
from tureen.pot.transaction import Transaction
from tureen.results.invoke import Invoker
from tureen.sharing.covering import covers
from tureen.sharing.network_cost import CostModel

log = logging.getLogger("tureen")

GONE_SECONDS = 86_400.0
"""How long after its lease a flow is kept for a peer that is away."""


MEASURE_SECONDS = 5.0
"""The least time over which the rate of a link is an average."""


class NetworkPlanner:
    """Plans and keeps what one server receives from its peers, and what it has for them."""

    def __init__(
        self,
        federation: Federation,
        catalog: Catalog,
        invoker: Invoker,
        clock: Callable[[], int],
        *,
        costs: CostModel | None = None,
        load: Callable[[], float] = machine_load,
        lease: float = LEASE_SECONDS,
        memory: float = INFO_SECONDS,
        patience: float = PLAN_SECONDS,
    ) -> None:
        """Plan for that federation, from now on; times are in seconds, as in `NetworkPlacement`."""
        self._federation, self._catalog, self._clock = federation, catalog, clock
        self.placement = NetworkPlacement(federation, invoker, costs, load, memory, patience)
        self.requests = PeerRequests(catalog, federation, self.placement, clock, lease)
        self._narrowing = Narrowing(catalog, federation, self.placement, invoker.query_of, clock)
        self._lease = lease
        with catalog.read() as tx:
            # What they kept for this server before it was restarted may be too much.
            self.placement.asked_at = {peer.name: time.monotonic() for peer in list_peers(tx)}
        self._measured_at, self._received, self._rates = time.monotonic(), dict[int, int](), dict[int, float]()
        federation.placement = self.placement
        federation.serving.requests = self.requests.handle
        federation.in_use.append(self._used_by_others)
        federation.upkeep = self.tend

    def bytes_per_second(self, link: int) -> float | None:
        """The recent rate of a link; None if it is not known yet."""
        return self._rates.get(link)

    def _measure(self) -> None:
        now = time.monotonic()
        received = {state.link.id: state.bytes for state in self._federation.link_states()}
        if now - self._measured_at >= MEASURE_SECONDS:
            seconds = now - self._measured_at
            self._rates = {
                link: max(0, total - self._received[link]) / seconds
                for link, total in received.items()
                if link in self._received
            }
            self._measured_at, self._received = now, received

    def tend(self) -> None:
        """Drop links that are not in use, compute flows from wider ones, and report to peers what is still received."""
        self._measure()
        self._narrow_locally()
        self._find_sources()
        self._narrowing.narrow()
        with self._catalog.write() as tx:
            release_flows(tx, self._clock() - round(GONE_SECONDS * 1_000_000))
        self._federation.sweep()
        self._tell_peers()

    def _used_by_others(self, tx: Transaction) -> set[int]:
        """The replicas that are kept for peers, and those that other replicas of this server are computed from."""
        used, links = held_replicas(tx), list_links(tx)
        for link in links:
            if link.peer == self._federation.name:
                source = self.placement.feeding(link, links)
                used |= set() if source is None else {source.id}
        return used

    def _narrow_locally(self) -> None:
        """Compute a flow from a wider one that is received, too, and has everything that it has."""
        current = {state.link.id for state in self._federation.link_states() if state.state == "current"}
        received = [link for link in self._federation.links() if link.peer != self._federation.name]
        for narrow in received:
            if any(wide.id in current and _is_part(narrow, wide) for wide in received):
                self._federation.change_source(narrow, self._federation.name)

    def _tell_peers(self) -> None:
        """Send each peer the list of flows that are received from it; request again those that it no longer has."""
        by_peer: dict[str, list[Link]] = {}
        for link in self._federation.links():
            if link.peer != self._federation.name:
                by_peer.setdefault(link.peer, []).append(link)
        for peer, asked_at in (dict.fromkeys(by_peer, math.inf) | self.placement.asked_at).items():
            links, began = by_peer.get(peer, []), time.monotonic()
            flows = sorted([link.stream.origin or "", link.flow] for link in links)
            try:
                answer = self._federation.peering.ask(peer, "PUT", FLOWS_PATH, {"flows": flows})
                missing = read_flows(answer.get("missing", []) if isinstance(answer, dict) else None)
            except TureenError as error:
                log.info("peer '%s' cannot be told what is received from it: %s", peer, error)
                continue
            for link in links:
                if (link.stream.origin, link.flow) in missing:
                    self._find_source(link)
            if not links and asked_at + self._lease <= began and self.placement.asked_at.get(peer) == asked_at:
                # What it was asked for and is not received is not leased any more, so it has released everything.
                self.placement.asked_at.pop(peer, None)

    def _find_sources(self) -> None:
        """Look for peers that send what links wait for."""
        links = self._federation.links()
        waiting = {link.id for link in links if self.placement.feeding(link, links) is None}
        late = self._clock() - round(self._federation.settings.away_seconds * 1_000_000)
        for state in self._federation.link_states():
            if state.link.id in waiting:
                self._find_source(state.link)
            elif state.state == "away" and state.since < late and state.link.peer != self._federation.name:
                self._find_source(state.link, [state.link.peer])
            elif state.state == "refused" and read_link(state.link).aggregation is not None:
                # The peer has partial aggregates that do not continue those that are here.
                self._find_source(state.link)

    def _find_source(self, link: Link, without: Sequence[str] = ()) -> None:
        try:
            self.placement.find_source(link, without)
        except TureenError as error:
            log.info("no peer sends a part of stream '%s' now: %s", link.stream.name, error)


def _is_part(narrow: Link, wide: Link) -> bool:
    """Whether a link receives a part of what another one receives; not if both receive the same."""
    if narrow.stream.id != wide.stream.id or narrow.id == wide.id:
        return False
    schema, part, whole = narrow.stream.visible, read_link(narrow), read_link(wide)
    if whole.aggregation is not None:
        return False  # its rows do not continue those of the other
    return covers(schema, whole, part) and not covers(schema, part, whole)
