"""The network as people see it: what this server and others receive, and where the rows of a query come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from tureen.errors import TureenError
from tureen.federation.federation import Federation
from tureen.federation.link_run import LinkState
from tureen.federation.listing import describe_link
from tureen.federation.network_placement import NetworkPlacement
from tureen.federation.network_planner import NetworkPlanner
from tureen.federation.peering import PeerState
from tureen.pot.catalog import Catalog
from tureen.pot.held_flows import HeldFlow, list_held_flows
from tureen.pot.links import Link, replica_uses
from tureen.pot.streams import Stream, visible_streams
from tureen.query import Query
from tureen.sharing.partial_rows import reason_for_tuples
from tureen.sharing.peer_network import ReceivedFlow

CHEAPER = "a flow of tuples is there, or was expected to cost less"
"""Why a query that can be computed from partial aggregates receives tuples."""


class NetworkView:
    """Describes the network of one server."""

    def __init__(self, catalog: Catalog, federation: Federation, planner: NetworkPlanner) -> None:
        """Describe the network of that server."""
        self._catalog, self._federation, self._planner = catalog, federation, planner

    def describe(self) -> dict[str, Any]:
        """The links of this server, and the reports of all servers about the streams that cross the network."""
        with self._catalog.read() as tx:
            uses, held, streams = replica_uses(tx), list_held_flows(tx), visible_streams(tx)
        states = self._federation.link_states()
        return {
            "name": self._federation.name,
            "peers": [_peer(state) for state in self._federation.peering.states()],
            "links": [self._link(state, uses, held) for state in states],
            "streams": [self._stream(stream) for stream in streams if stream.home is not None],
            "sent": self._federation.serving.sent.as_dict(),
        }

    def placements(self, replicas: Iterable[int], query: Query) -> list[dict[str, Any]]:
        """For each replica that a query reads: where its rows are selected, and by which route they come."""
        with self._catalog.read() as tx:
            uses, held = replica_uses(tx), list_held_flows(tx)
        states = {state.link.id: state for state in self._federation.link_states()}
        return [self._placement(states[number], query, uses, held) for number in replicas if number in states]

    def _placement(self, state: LinkState, query: Query, uses: Counter[int], held: list[HeldFlow]) -> dict[str, Any]:
        link, placement = state.link, self._planner.placement
        is_aggregated = state.is_aggregated
        source = placement.feeding(link, self._federation.links())
        route, tap = _route(placement, self._federation.name, link.stream, source)
        return {
            **self._link(state, uses, held),
            "home": link.stream.home,
            "route": route,
            "selected_at": tap,
            "evaluated_at": self._federation.name,
            "received_as": None if source is None else source.flow,
            "rows_are": "partial aggregates" if is_aggregated else "tuples",
            "tuples_because": None if is_aggregated else reason_for_tuples(query, link.stream.visible) or CHEAPER,
        }

    def _link(self, state: LinkState, uses: Counter[int], held: list[HeldFlow]) -> dict[str, Any]:
        return {
            **describe_link(state),
            "queries": uses[state.link.id],
            "kept_for": sorted({flow.peer for flow in held if flow.replica == state.link.id}),
            "bytes_per_second": self._planner.bytes_per_second(state.link.id),
        }

    def _stream(self, stream: Stream) -> dict[str, Any]:
        reports = self._planner.placement.states(stream)
        return {
            "stream": stream.name,
            "home": stream.home,
            "servers": [
                {
                    "name": report.name,
                    "is_home": report.is_home,
                    "senders": list(report.senders),
                    "flows": [{"sender": flow.sender, "flow": flow.text} for flow in report.flows],
                    "load": report.load,
                }
                for report in reports
            ],
        }


def _peer(state: PeerState) -> dict[str, Any]:
    return {"name": state.peer.name, "state": state.state, "offers": list(state.offered), "shared": list(state.shared)}


def _route(placement: NetworkPlacement, name: str, stream: Stream, source: Link | None) -> tuple[list[str], str | None]:
    """The servers from the home to this one, as far as they answer, and the one that selects the rows."""
    if source is None:
        return [name], None
    flow = ReceivedFlow(source.peer, source.flow)
    try:
        network = placement.network(stream)
        return network.route_of(name, flow), network.tap_of(name, flow)
    except TureenError:
        return [source.peer, name], None
