"""A network from the reports of its peers about a stream, and a plan as what each peer has to receive.

A peer reports from which neighbours it can receive the stream and which flows it receives, each as the SQL by which it
asked for them. Every flow goes over one link, and is computed from a flow that the sender receives, or from the stream
itself at its home. The plan for a query is a list of *hops*: each peer receives a flow from the one before it. If a hop
widens a flow, the receiver computes the narrower one from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from tureen.errors import TureenError
from tureen.schema import Schema
from tureen.sharing.covering import covers
from tureen.sharing.network import EvaluationPlan, Network, StreamFlow
from tureen.sharing.network_cost import CostModel, StreamRates
from tureen.sharing.planning import plan
from tureen.sharing.properties import Properties
from tureen.sharing.selection_text import parse_selection, selection_text, shortened
from tureen.sharing.topology import Topology, link_of


class ReceivedFlow(NamedTuple):
    """A flow that a peer receives, and its neighbour that sends it."""

    sender: str
    text: str


@dataclass(frozen=True)
class PeerReport:
    """What a peer reports about one stream."""

    name: str
    is_home: bool
    """Whether the stream is pushed here."""
    senders: tuple[str, ...] = ()
    """The neighbours that share the stream with it."""
    flows: tuple[ReceivedFlow, ...] = ()
    load: float = 0.0
    """The share of its capacity that is used."""
    aggregates: bool = False
    """Whether it sends and receives partial aggregates, too."""


@dataclass(frozen=True)
class Hop:
    """What a peer receives by a plan."""

    peer: str
    sender: str
    text: str


class PeerNetwork:
    """The network of one stream."""

    def __init__(
        self,
        stream: str,
        schema: Schema,
        states: Iterable[PeerReport],
        rates: StreamRates,
        costs: CostModel | None = None,
    ) -> None:
        """Assemble it from the reports of peers; invalid texts, and flows without a source, are left out."""
        self._stream, self._schema = stream, schema
        self.states: Mapping[str, PeerReport] = {state.name: state for state in states}
        costs = costs or CostModel()
        self.network = Network(_topology(self.states), rates, costs)
        self._received: dict[int, ReceivedFlow] = {}
        self._into: dict[str, list[StreamFlow]] = {name: [] for name in self.states}
        for state in self.states.values():
            self.network.usage.add_load(state.name, state.load * costs.capacity)
            if state.is_home:
                self._into[state.name].append(self.network.add_stream(stream, schema, state.name))
        self._add_flows()

    def _add_flows(self) -> None:
        """Add the flows, each after the one that it is computed from."""
        waiting: list[tuple[str, ReceivedFlow, Properties]] = []
        for state in self.states.values():
            for flow in state.flows:
                properties = self._read(flow)
                if properties is not None and not state.is_home:
                    waiting.append((state.name, flow, properties))
        while waiting:
            rest = []
            for receiver, flow, properties in waiting:
                parent = self._source(flow.sender, properties)
                if parent is None:
                    rest.append((receiver, flow, properties))
                    continue
                added = self.network.add_flow(properties, (flow.sender, receiver), parent)
                self._received[added.number] = flow
                self._into[receiver].append(added)
            if len(rest) == len(waiting):
                return
            waiting = rest

    def _read(self, flow: ReceivedFlow) -> Properties | None:
        try:
            return parse_selection(flow.text, self._stream, self._schema)
        except TureenError:
            return None

    def _source(self, sender: str, properties: Properties) -> StreamFlow | None:
        """The flow with the least traffic that a sender has and that covers another one."""
        received = self._into.get(sender, ())
        same = next((flow for flow in received if flow.properties == properties), None)
        if same is not None or not received:
            return same  # it is passed on as it is
        candidates = [flow for flow in received if covers(self._schema, flow.properties, properties)]
        return min(candidates, key=lambda flow: self.network.rate(flow.properties).traffic, default=None)

    def hops(self, needed: Properties, peer: str, *, widen: bool = True) -> list[Hop]:
        """What peers have to receive so that a query at a peer has its rows; the first hops first."""
        return self._hops_of(plan(self.network, needed, peer, widen=widen), needed, peer)

    def cheapest_hops(self, needs: Sequence[Properties], peer: str) -> list[Hop]:
        """The hops of the cheapest plan for one of the needs, from any of which a query can be computed.

        Partial aggregates must be known to all peers of their route. Of equal plans, that of the first need is taken.
        """
        plans = sorted(((plan(self.network, need, peer), need) for need in needs), key=lambda planned: planned[0].rank)
        for chosen, needed in plans:
            hops = self._hops_of(chosen, needed, peer)
            if needed.aggregation is None or self._can_pass_aggregates(hops):
                return hops
        raise TureenError("the peers on the way do not send partial aggregates")

    def _can_pass_aggregates(self, hops: Iterable[Hop]) -> bool:
        names = {name for hop in hops for name in (hop.peer, hop.sender)}
        return all(self.states[name].aggregates for name in names if name in self.states)

    def _hops_of(self, chosen: EvaluationPlan, needed: Properties, peer: str) -> list[Hop]:
        hops = [self._widened(number, wide) for number, wide in chosen.widen]
        if hops and hops[-1].sender == chosen.tap:
            hops.pop()  # it is tapped before the last flow that was to be widened
        text = selection_text(self._schema, needed)
        route = self.network.topology.route(chosen.tap, peer)
        hops += [Hop(receiver, sender, text) for sender, receiver in pairwise(route)]
        return hops or self._tapped(chosen)

    def _widened(self, number: int, wide: Properties) -> Hop:
        flow, received = self.network.flows[number], self._received[number]
        return Hop(flow.route[-1], received.sender, selection_text(self._schema, shortened(self._schema, wide)))

    def _tapped(self, chosen: EvaluationPlan) -> list[Hop]:
        """The flow that the peer receives already; none at the home of the stream."""
        flow = self.network.flows[chosen.flow]
        while flow.route[-1] != chosen.tap and flow.parent is not None:
            flow = self.network.flows[flow.parent]  # it starts here
        received = self._received.get(flow.number)
        return [] if received is None else [Hop(chosen.tap, received.sender, received.text)]

    def is_received(self, peer: str, flow: ReceivedFlow) -> bool:
        """Whether a peer receives a flow that comes from the home of the stream."""
        return self._number(peer, flow) is not None

    def tap_of(self, peer: str, flow: ReceivedFlow) -> str | None:
        """The peer that selects the rows of a flow, which others may pass on; None if it is not known."""
        number = self._number(peer, flow)
        if number is None:
            return None
        known = self.network.flows[number]
        while known.parent is not None and self.network.flows[known.parent].properties == known.properties:
            parent = self.network.flows[known.parent]
            if parent.parent is None:
                break
            known = parent
        return known.route[0]

    def route_of(self, peer: str, flow: ReceivedFlow) -> list[str]:
        """The peers from the home of the stream to one that receives a flow, as far as they are known."""
        route, number = [peer], self._number(peer, flow)
        while number is not None:
            known = self.network.flows[number]
            if known.parent is None:
                break
            route.append(known.route[0])
            number = known.parent
        return route[::-1] if len(route) > 1 else [flow.sender, peer]

    def _number(self, peer: str, flow: ReceivedFlow) -> int | None:
        return next((item.number for item in self._into.get(peer, ()) if self._received.get(item.number) == flow), None)


def _topology(states: Mapping[str, PeerReport]) -> Topology:
    open_directions = {
        (sender, state.name)
        for state in states.values()
        for sender in (*state.senders, *(flow.sender for flow in state.flows))
        if sender in states and sender != state.name
    }
    links = frozenset(link_of(*pair) for pair in open_directions)
    closed = frozenset((receiver, sender) for sender, receiver in open_directions) - open_directions
    return Topology(tuple(sorted(states)), links, closed=closed)


def checked_hops(hops: Sequence[Hop], most: int) -> Sequence[Hop]:
    """Hops from another peer; raises if they are not one route."""
    if len(hops) > most:
        raise TureenError(f"a route must not have more than {most} hops, got {len(hops)}")
    for before, after in pairwise(hops):
        if before.peer != after.sender:
            raise TureenError(f"a route cannot continue from peer '{before.peer}' to '{after.sender}'")
    return hops
