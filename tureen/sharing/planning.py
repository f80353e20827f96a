"""Planning a registration: the cheapest way to serve a new query (Data Stream Sharing, §3.3).

The paper searches breadth-first from the home of the input stream, along the streams that match the query. A stream
that matches is computed from streams that match, so the search reaches exactly the streams that the index returns: the
flows that cover the query, each of which can be tapped at every peer of its route.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from heapq import nsmallest

from tureen.errors import TureenError
from tureen.sharing.covering import covers
from tureen.sharing.network import EvaluationPlan, Network, StreamFlow
from tureen.sharing.properties import Properties
from tureen.sharing.topology import Link, links_of
from tureen.sharing.widening import widened

MAX_WIDENED = 6
"""How many flows are considered for widening: those that pass nearest to the query."""


class Strategy(StrEnum):
    """How queries are distributed."""

    DATA_SHIPPING = "data-shipping"
    """Each query receives the whole stream, and is evaluated where it is registered."""
    QUERY_SHIPPING = "query-shipping"
    """Each query is evaluated at the home of its stream, and receives its result."""
    SHARING = "sharing"
    """Queries share the streams that flow."""


def plan(network: Network, properties: Properties, peer: str, *, widen: bool = True) -> EvaluationPlan:
    """The cheapest plan for a query at a peer; without `widen`, flows stay as they are."""
    if peer not in network.topology.neighbours:
        raise TureenError(f"there is no peer '{peer}'")
    flows = network.covering(properties)
    if not flows:
        raise TureenError(f"there is no stream '{properties.stream}'")
    best = min(_taps(network, flows, properties, peer), key=lambda candidate: candidate.rank, default=None)
    if best is None:
        raise TureenError(f"there is no route from stream '{properties.stream}' to peer '{peer}'")
    if widen and best.cost > 0:
        covering = {flow.number for flow in flows}
        for flow in _nearest(network, properties, peer, covering):
            candidate = _widening_plan(network, flow, properties, peer)
            if candidate is not None and candidate.rank < best.rank:
                best = candidate
    return best


def _taps(network: Network, flows: Iterable[StreamFlow], properties: Properties, peer: str) -> Iterable[EvaluationPlan]:
    traffic = network.rate(properties).traffic
    for flow in flows:
        load = network.load(flow.properties, properties)
        for tap in _open_taps(network, flow, peer):
            added = dict.fromkeys(links_of(network.topology.route(tap, peer)), traffic)
            yield EvaluationPlan(flow.number, tap, network.costs.cost(added, {tap: load}, network.usage), len(added))


def _open_taps(network: Network, flow: StreamFlow, peer: str) -> list[str]:
    """The peers that a flow passes and that have a route to a peer."""
    return [tap for tap in flow.route if network.topology.reaches(tap, peer)]


def _nearest(network: Network, properties: Properties, peer: str, covering: set[int]) -> list[StreamFlow]:
    """The flows that have rows in common with a query, do not cover it, and pass nearest to its peer."""
    distances, far = network.topology.distances(peer), len(network.topology.peers)
    candidates = [
        (min(distances.get(passed, far) for passed in flow.route), -len(flow.route), flow.number)
        for flow in network.overlapping(properties)
        if flow.parent is not None and flow.number not in covering and _open_taps(network, flow, peer)
    ]
    return [network.flows[number] for _, _, number in nsmallest(MAX_WIDENED, candidates)]


def _widening_plan(network: Network, flow: StreamFlow, properties: Properties, peer: str) -> EvaluationPlan | None:
    """The plan that widens a flow, and the flows that it is computed from as far as they do not cover it then."""
    schema = network.schemas[properties.stream]
    changes: list[tuple[int, Properties]] = []
    traffic: dict[Link, float] = {}
    load: dict[str, float] = {}
    current, needed = flow, properties.source
    while True:
        wide = widened(schema, current.properties, needed)
        if wide is None or current.parent is None:
            return None
        changes.append((current.number, wide))
        more = network.rate(wide).traffic - network.rate(current.properties).traffic
        for link in links_of(current.route):
            traffic[link] = traffic.get(link, 0.0) + more
        # What is computed from it has more rows to select from.
        extra = network.rate(wide).frequency - network.rate(current.properties).frequency
        for user in network.users(current.number):
            at = network.flows[user].route[0] if isinstance(user, int) else current.route[-1]
            load[at] = load.get(at, 0.0) + network.costs.selection_load * extra
        parent = network.flows[current.parent]
        if covers(schema, parent.properties, wide):
            break
        current, needed = parent, wide
    return _cheapest_tap(network, flow, changes, traffic, load, properties, peer)


def _cheapest_tap(
    network: Network,
    flow: StreamFlow,
    changes: list[tuple[int, Properties]],
    traffic: dict[Link, float],
    load: dict[str, float],
    properties: Properties,
    peer: str,
) -> EvaluationPlan:
    result = network.rate(properties).traffic
    plans: list[EvaluationPlan] = []
    for tap in _open_taps(network, flow, peer):
        links, peers = dict(traffic), dict(load)
        route = links_of(network.topology.route(tap, peer))
        for link in route:
            links[link] = links.get(link, 0.0) + result
        peers[tap] = peers.get(tap, 0.0) + network.load(changes[0][1], properties)
        cost = network.costs.cost(links, peers, network.usage)
        plans.append(EvaluationPlan(flow.number, tap, cost, len(route), tuple(reversed(changes))))
    return min(plans, key=lambda candidate: candidate.rank)
