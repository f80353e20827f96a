"""Hierarchical networks: subnets that are optimized separately, and a backbone between them.

It is the future work of Data Stream Sharing (§5) for many peers. Each subnet has a *gateway*. A query is planned in its
own subnet first. Only if no stream there covers it, the backbone of gateways is asked to bring what it needs to the
gateway, from which the subnet shares it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from tureen.errors import TureenError
from tureen.schema import Schema
from tureen.sharing.network import Network
from tureen.sharing.network_cost import CostModel, StreamRates, Usage
from tureen.sharing.planning import plan
from tureen.sharing.properties import Properties
from tureen.sharing.topology import Topology, link_of, links_of


@dataclass(frozen=True)
class Partition:
    """The gateway of each peer's subnet; a gateway is a peer of its own subnet."""

    gateways: Mapping[str, str]

    def members(self) -> dict[str, list[str]]:
        """The peers of each subnet, by gateway."""
        members: dict[str, list[str]] = {}
        for peer, gateway in self.gateways.items():
            members.setdefault(gateway, []).append(peer)
        return members


def partition(topology: Topology, count: int) -> Partition:
    """Divide peers into connected subnets: each peer joins the nearest of `count` gateways that are far apart."""
    if not 1 <= count <= len(topology.peers):
        raise TureenError(f"the number of subnets must be from 1 to {len(topology.peers)}, got {count}")
    first = topology.peers[0]
    nearest = topology.distances(first)
    gateways = [first]
    while len(gateways) < count:
        farthest = max(topology.peers, key=lambda peer: (nearest[peer], peer))
        gateways.append(farthest)
        distances = topology.distances(farthest)
        nearest = {peer: min(nearest[peer], distances[peer]) for peer in topology.peers}
    owner = {gateway: gateway for gateway in gateways}
    queue = deque(gateways)
    while queue:
        peer = queue.popleft()
        for neighbour in topology.neighbours[peer]:
            if neighbour not in owner:
                owner[neighbour] = owner[peer]
                queue.append(neighbour)
    return Partition(owner)


class SubnetNetwork:
    """A network of subnets, in which queries are registered one after another."""

    def __init__(self, topology: Topology, rates: StreamRates, costs: CostModel, division: Partition) -> None:
        self._topology = topology
        self._gateways = division.gateways
        self._locals = {
            gateway: Network(_within(topology, set(members)), rates, costs)
            for gateway, members in division.members().items()
        }
        self._backbone = Network(_backbone(topology, division), rates, costs)
        self._homes: dict[str, tuple[str, Schema]] = {}
        self._imports = 0

    def add_stream(self, name: str, schema: Schema, home: str) -> None:
        """Add a stream at its home."""
        gateway = self._gateways[home]
        self._homes[name] = (gateway, schema)
        self._locals[gateway].add_stream(name, schema, home)
        self._backbone.add_stream(name, schema, gateway)

    def register(self, name: str, properties: Properties, peer: str, *, widen: bool) -> None:
        """Plan a query and carry the plan out."""
        gateway = self._gateways[peer]
        local = self._locals[gateway]
        home, schema = self._homes[properties.stream]
        if gateway != home and (properties.stream not in local.schemas or not local.covering(properties)):
            self._import(properties, gateway, home, schema)
        local.register(name, properties, peer, plan(local, properties, peer, widen=widen))

    def _import(self, properties: Properties, gateway: str, home: str, schema: Schema) -> None:
        """Bring what a query needs to the gateway of its subnet."""
        self._imports += 1
        name = f"import {self._imports}"
        chosen = plan(self._backbone, properties, gateway, widen=False)
        if self._backbone.flows[chosen.flow].parent is None:
            # The home's subnet delivers it to its own gateway.
            origin = self._locals[home]
            origin.register(name, properties, home, plan(origin, properties, home))
        self._backbone.register(name, properties, gateway, chosen)
        self._locals[gateway].add_stream(properties.stream, schema, gateway, properties)

    @property
    def flows(self) -> int:
        """The number of streams that travel between peers or are computed at one."""
        networks = (self._backbone, *self._locals.values())
        return sum(flow.parent is not None for network in networks for flow in network.flows.values())

    def usage(self) -> Usage:
        """The traffic of all links, with that of the backbone, and the load of all peers."""
        usage = Usage()
        for network in self._locals.values():
            for link, traffic in network.usage.traffic.items():
                usage.add_traffic(link, traffic)
        for (left, right), traffic in self._backbone.usage.traffic.items():
            for link in links_of(self._topology.route(left, right)):
                usage.add_traffic(link, traffic)
        for network in (self._backbone, *self._locals.values()):
            for peer, load in network.usage.load.items():
                usage.add_load(peer, load)
        return usage


def _within(topology: Topology, members: set[str]) -> Topology:
    """The part of a topology between some of its peers."""
    peers = tuple(peer for peer in topology.peers if peer in members)
    return Topology(peers, frozenset(link for link in topology.links if members.issuperset(link)))


def _backbone(topology: Topology, division: Partition) -> Topology:
    """The gateways; those of adjacent subnets are connected."""
    pairs = ((division.gateways[left], division.gateways[right]) for left, right in topology.links)
    links = frozenset(link_of(left, right) for left, right in pairs if left != right)
    return Topology(tuple(division.members()), links)
