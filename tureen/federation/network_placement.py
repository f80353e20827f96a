"""Placing the rows that a query needs: planned over the peers that the stream reaches (Data Stream Sharing, §3.3).

The peers report what they receive, and pass the question on to those from which they can receive the stream. The plan
is carried out from the receiving end: a server asks the peer before it to provide a flow, which asks the one before it,
and only then opens a link. So if a step fails, no flow is left without a source, and those that were opened in vain are
released.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from tureen.errors import PeerFailed, TureenError
from tureen.federation.askers import PLAN_SECONDS, Askers
from tureen.federation.federation import Federation
from tureen.federation.needs import Need
from tureen.federation.neighbour import FLOWS_PATH, NETWORK_PATH, PeerInfo, SharedStream
from tureen.federation.peer_messages import MAX_FLOWS, MAX_PEERS, hops_json, read_states
from tureen.federation.placement import LinkSource
from tureen.federation.stream_sampling import StreamSampling
from tureen.pot.links import Link
from tureen.pot.streams import Stream
from tureen.results.invoke import Invoker
from tureen.sharing.covering import covers
from tureen.sharing.network_cost import CostModel
from tureen.sharing.peer_network import Hop, PeerNetwork, PeerReport, ReceivedFlow, checked_hops
from tureen.sharing.properties import Properties
from tureen.sharing.selection_text import parse_selection, selection_text, shippable

log = logging.getLogger("tureen")

MAX_HOPS = 16
"""The most links that a flow passes."""

INFO_SECONDS = 5.0
"""How long this server remembers what its peers share with it."""


def machine_load() -> float:
    """The share of this machine's processors that is used."""
    return min(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


class NetworkPlacement:
    """Decides from where a server receives the streams of others, together with its peers."""

    def __init__(
        self,
        federation: Federation,
        invoker: Invoker,
        costs: CostModel | None,
        load: Callable[[], float],
        memory: float = INFO_SECONDS,
        patience: float = PLAN_SECONDS,
    ) -> None:
        """Place what that server needs.

        `memory` is how long it remembers what peers share, and `patience` how long a plan waits for them, in seconds.
        """
        self._memory, self._patience = memory, patience
        self._federation, self._costs, self._load = federation, costs or CostModel(), load
        self.sampling = StreamSampling(federation.name, invoker.answer_once, self.senders, self._ask)
        self.asked_at: dict[str, float] = {}
        """When each peer was last asked to keep a flow: it is told what is received from it, until nothing is."""
        self._infos: tuple[float, dict[str, PeerInfo]] = -memory, {}

    # What a query of this server needs

    def place(self, need: Need, links: Sequence[Link], *, ask: bool = True) -> Link | LinkSource:
        """A link whose replica has what is needed, or the peer that sends it; without an answer, a source to wait for.

        Without `ask`, no peer is asked now.
        """
        stream, needed = need.stream, shippable(need.stream.visible, need.properties)
        partials = need.partials
        for rows in [needed] if partials is None else [needed, partials]:
            link = self.covering(stream, rows, links)
            if link is not None:
                return link
        # A link to this server itself, which has nothing to send, waits.
        waiting = LinkSource(self._federation.name, selection_text(stream.visible, needed))
        if not ask:
            return waiting
        try:
            with self._federation.peering.asking():
                return self.obtain(stream, needed, Askers.waiting(self._patience), partials=partials)
        except TureenError as error:
            log.warning("stream '%s' is received as soon as its peers can be asked: %s", stream.name, error)
            return waiting

    def released(self, link: Link) -> None:
        """Nothing to do: `NetworkUpkeep` tells the peer what is still received."""

    def covering(self, stream: Stream, needed: Properties, links: Iterable[Link] | None = None) -> Link | None:
        """A link whose replica has the rows that are needed; not one that waits for a source."""
        known = list(self._federation.links() if links is None else links)
        candidates = [
            link
            for link in known
            if link.stream.id == stream.id
            and covers(stream.visible, read_link(link), needed)
            and self.feeding(link, known) is not None
        ]
        # One that is received from a peer has no other replica before it.
        return min(candidates, key=lambda link: (link.peer == self._federation.name, link.id), default=None)

    def feeding(self, link: Link, links: Sequence[Link]) -> Link | None:
        """The link by which the rows of a link come from a peer: itself, or the one that it is computed from."""
        if link.peer != self._federation.name:
            return link
        return self._federation.serving.local_source(link, links)

    def find_source(self, link: Link, without: Sequence[str] = ()) -> None:
        """Look for a peer that sends what a link receives, not asking some; the link continues from there.

        Partial aggregates continue from a peer that has the tuples: others have rows that begin at other ids.
        """
        needed = tuples_of(link.stream, read_link(link))
        source = self.obtain(link.stream, needed, Askers.waiting(self._patience, *without), link)
        self._federation.change_source(link, source.peer)

    def is_grounded(self, stream: Stream, link: Link, asked: Askers) -> bool:
        """Whether the rows of a link come from the home of the stream, without passing a server that waits for them."""
        source = self.feeding(link, self._federation.links())
        if source is None or source.peer in asked:
            return False
        flow = ReceivedFlow(source.peer, source.flow)
        return self.network(stream, asked).is_received(self._federation.name, flow)

    # Carrying out plans

    def obtain(
        self,
        stream: Stream,
        needed: Properties,
        asked: Askers,
        known: Link | None = None,
        partials: Properties | None = None,
    ) -> Link | LinkSource:
        """Plan from where rows come, and let the peers before this one have them; those in `asked` wait for it.

        If they are for a known link, others may receive it from this server, and must not send it back. If partial
        aggregates will do, and cost less, they are received instead.
        """
        errors: list[TureenError] = []
        name = self._federation.name
        try:
            network = self.network(stream, asked, known)
            hops = network.cheapest_hops([needed] if partials is None else [needed, partials], name)
            return self.carry_out(stream, hops, asked, known)
        except TureenError as error:
            errors.append(error)
        # The network changed, or a peer is away: any other that shares the stream may receive it by its own plan.
        text = selection_text(stream.visible, needed)
        for sender in self.senders(stream):
            if sender not in asked:
                try:
                    return self.carry_out(stream, [Hop(name, sender, text)], asked, known)
                except TureenError as error:
                    errors.append(error)
        raise errors[-1]

    def carry_out(
        self, stream: Stream, hops: Sequence[Hop], asked: Askers, known: Link | None = None
    ) -> Link | LinkSource:
        """Let the peers before this one have what they send."""
        name = self._federation.name
        if not hops or hops[-1].peer != name:
            raise PeerFailed("a plan does not end at the server that carries it out")
        last = checked_hops(hops, MAX_HOPS)[-1]
        if last.sender == name or last.sender in asked:
            raise PeerFailed(f"a flow of stream '{stream.name}' would be sent in a circle")
        others = [link for link in self._federation.links() if known is None or link.id != known.id]
        link = self.covering(stream, parse_selection(last.text, stream.name, stream.visible), others)
        if link is not None:
            return link
        text = last.text if known is None or read_link(known).aggregation is None else known.flow
        self.ask(stream, last.sender, text, hops[:-1], asked, is_known=known is not None)
        return LinkSource(last.sender, text)

    def ask(
        self, stream: Stream, sender: str, text: str, hops: Sequence[Hop], asked: Askers, *, is_known: bool
    ) -> None:
        """Ask a peer to have a flow of a stream; the home has them all."""
        if sender == stream.home:
            return
        waiting = [*asked, self._federation.name]
        if len(waiting) > MAX_HOPS:
            raise PeerFailed(f"a flow of stream '{stream.name}' would pass more than {MAX_HOPS} links")
        body = {"origin": stream.origin, "flow": text, "hops": hops_json(hops), "asked": waiting, "is_known": is_known}
        self.asked_at[sender] = time.monotonic()
        self._ask(sender, FLOWS_PATH, body, asked)

    def ask_to_keep(self, link: Link, text: str) -> None:
        """Ask the peer of a link to keep another flow, which the link is going to receive."""
        self.ask(link.stream, link.peer, text, [], Askers.waiting(self._patience), is_known=True)

    def is_worthwhile(self, link: Link, needed: Properties, share: float) -> bool:
        """Whether a narrower flow has at most that share of the traffic of a link."""
        rates = self.sampling.rates(link.stream, Askers.waiting(self._patience))
        return rates.rate(needed).traffic <= share * rates.rate(read_link(link)).traffic

    # What the peers tell

    def _ask(self, peer: str, path: str, body: Any, asked: Askers) -> Any:
        return self._federation.peering.ask(peer, "POST", path, body, asked.seconds())

    def network(self, stream: Stream, asked: Askers | None = None, without: Link | None = None) -> PeerNetwork:
        """The network of a stream, as far as this server can ask; without one of its links."""
        asked = asked or Askers.waiting(self._patience)
        states, rates = self.states(stream, asked, without), self.sampling.rates(stream, asked)
        return PeerNetwork(stream.name, stream.visible, states, rates, self._costs)

    def states(self, stream: Stream, asked: Askers | None = None, without: Link | None = None) -> list[PeerReport]:
        """What this server and the peers from which the stream may come tell about it; without those in `asked`."""
        asked = asked or Askers.waiting(self._patience)
        own = self._own_state(stream, without)
        states = {own.name: own}
        for sender in own.senders:
            if sender in states or sender in asked or len(asked) >= MAX_HOPS:
                continue
            body = {"origin": stream.origin, "asked": [*asked, *states]}
            try:
                told = read_states(self._ask(sender, NETWORK_PATH, body, asked))
            except TureenError as error:
                log.info("peer '%s' does not tell about stream '%s': %s", sender, stream.name, error)
                continue
            for state in told:
                if state.name not in asked:
                    states.setdefault(state.name, state)
        return list(states.values())[:MAX_PEERS]

    def _own_state(self, stream: Stream, without: Link | None) -> PeerReport:
        name = self._federation.name
        if stream.home is None:
            return PeerReport(name, is_home=True, load=self._load(), aggregates=True)
        received = (link for link in self._federation.links() if link.stream.id == stream.id and link.peer != name)
        links = [link for link in received if without is None or link.id != without.id]
        flows = tuple(dict.fromkeys(ReceivedFlow(link.peer, link.flow) for link in links))
        return PeerReport(name, False, tuple(self.senders(stream)), flows[:MAX_FLOWS], self._load(), aggregates=True)

    def senders(self, stream: Stream) -> list[str]:
        """The peers that share a stream with this server."""
        (at, infos), peers = self._infos, self._federation.peering.names()
        senders = _sharing(infos, stream, peers)
        if time.monotonic() - at >= self._memory or not senders:
            told = self._federation.infos()
            infos = {name: info for name, info in told.items() if isinstance(info, PeerInfo)}
            self._infos = time.monotonic(), infos
            senders = _sharing(infos, stream, peers)
        return senders


def _sharing(infos: Mapping[str, PeerInfo], stream: Stream, peers: Collection[str]) -> list[str]:
    """The peers that share a stream; without copies of its home, which is another peer."""

    def is_shared(name: str, shared: SharedStream) -> bool:
        is_copy = shared.home == name != stream.home and stream.home in peers
        return shared.origin == stream.origin and not is_copy

    return [name for name, info in infos.items() if any(is_shared(name, shared) for shared in info.streams)]


def read_link(link: Link) -> Properties:
    """What the replica of a link has."""
    return parse_selection(link.flow, link.stream.name, link.stream.visible)


def tuples_of(stream: Stream, rows: Properties) -> Properties:
    """The tuples that rows are computed from; themselves, unless they are partial aggregates."""
    return rows if rows.aggregation is None else shippable(stream.visible, rows.source)
