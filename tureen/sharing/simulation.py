"""A network in simulation: queries registered one after another, and what flows then.

The traffic is that of evaluating each stream on a sample of its input: see `measured_rates.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tureen.errors import UnknownStream, Unsupported
from tureen.language import bind_query
from tureen.query import NamedRelation, Query
from tureen.schema import Schema
from tureen.sharing.measured_rates import COMPUTED_BYTES, MeasuredRates, StreamSample
from tureen.sharing.network import Network
from tureen.sharing.network_cost import CostModel, StreamRates, Usage
from tureen.sharing.photon_sample import photon_queries
from tureen.sharing.planning import Strategy, plan
from tureen.sharing.properties import Properties, properties_of
from tureen.sharing.subnets import SubnetNetwork, partition
from tureen.sharing.topology import Topology, links_of


@dataclass(frozen=True)
class SourceStream:
    """A stream, the peer where it is pushed, and a sample of its rows."""

    home: str
    sample: StreamSample


@dataclass(frozen=True)
class NetworkQuery:
    """A query, what it needs, and the peer where it is registered."""

    name: str
    sql: str
    properties: Properties
    peer: str
    values: int
    """The number of values of a row of its answer."""


@dataclass
class SimulationResult:
    """What flows once all queries are registered."""

    strategy: Strategy
    traffic: dict[str, float]
    """Bytes per second on each link, named `a-b`."""
    load: dict[str, float]
    """The share of each peer's capacity that is used."""
    flows: int
    """The number of streams that travel between peers or are computed at one."""
    planning: list[float] = field(default_factory=list)
    """How long the plan of each query took, in seconds; empty without a clock."""

    @property
    def total(self) -> float:
        """Bytes per second on all links."""
        return sum(self.traffic.values())

    def as_json(self) -> dict[str, Any]:
        """The result as a JSON object."""
        return {
            "strategy": self.strategy.value,
            "bytes_per_second": round(self.total, 1),
            "streams": self.flows,
            "links": {link: round(amount, 1) for link, amount in sorted(self.traffic.items())},
            "peers": {peer: round(share, 6) for peer, share in sorted(self.load.items())},
        }


def bind(name: str, sql: str, peer: str, streams: Mapping[str, Schema]) -> NetworkQuery:
    """A query over one stream of the network."""

    def look_up(relation: str) -> NamedRelation:
        if relation not in streams:
            raise UnknownStream(f"there is no stream '{relation}'", hint=f"streams are {', '.join(sorted(streams))}")
        return NamedRelation(relation, streams[relation])

    query: Query = bind_query(sql, look_up)
    properties = properties_of(query)
    if properties is None:
        raise Unsupported(f"query '{name}' must have exactly one stream")
    # The time of a row travels with it.
    time = streams[properties.stream].time
    if time is not None:
        properties = replace(properties, columns=properties.columns | {time})
    return NetworkQuery(name, sql, properties, peer, len(query.outputs))


def simulate(
    topology: Topology,
    streams: Mapping[str, SourceStream],
    queries: Sequence[NetworkQuery],
    strategy: Strategy,
    costs: CostModel | None = None,
    *,
    widen: bool = True,
    subnets: int = 0,
    clock: Callable[[], float] | None = None,
) -> SimulationResult:
    """Register the queries one after another; `clock` measures how long each plan takes.

    With `subnets`, that many are optimized separately.
    """
    rates = MeasuredRates({name: stream.sample for name, stream in streams.items()})
    costs = costs or CostModel()
    if strategy is not Strategy.SHARING:
        return _ship(topology, streams, queries, strategy, costs, rates)
    if subnets:
        return _simulate_subnets(topology, streams, queries, costs, rates, subnets, widen, clock)
    network = Network(topology, rates, costs)
    for name, stream in streams.items():
        network.add_stream(name, stream.sample.schema, stream.home)
    planning = register_all(network, queries, widen=widen, clock=clock)
    flows = sum(flow.parent is not None for flow in network.flows.values())
    return result_of(strategy, topology, network.usage, costs, flows, planning)


def _simulate_subnets(
    topology: Topology,
    streams: Mapping[str, SourceStream],
    queries: Sequence[NetworkQuery],
    costs: CostModel,
    rates: StreamRates,
    subnets: int,
    widen: bool,
    clock: Callable[[], float] | None,
) -> SimulationResult:
    network = SubnetNetwork(topology, rates, costs, partition(topology, subnets))
    for name, stream in streams.items():
        network.add_stream(name, stream.sample.schema, stream.home)
    planning: list[float] = []
    for query in queries:
        begin = clock() if clock else 0.0
        network.register(query.name, query.properties, query.peer, widen=widen)
        if clock:
            planning.append(clock() - begin)
    return result_of(Strategy.SHARING, topology, network.usage(), costs, network.flows, planning)


def register_all(
    network: Network, queries: Sequence[NetworkQuery], *, widen: bool, clock: Callable[[], float] | None
) -> list[float]:
    """Plan and register queries; how long each plan took."""
    planning: list[float] = []
    for query in queries:
        begin = clock() if clock else 0.0
        chosen = plan(network, query.properties, query.peer, widen=widen)
        if clock:
            planning.append(clock() - begin)
        network.register(query.name, query.properties, query.peer, chosen)
    return planning


def _ship(
    topology: Topology,
    streams: Mapping[str, SourceStream],
    queries: Sequence[NetworkQuery],
    strategy: Strategy,
    costs: CostModel,
    rates: StreamRates,
) -> SimulationResult:
    """Each query has a stream of its own: the whole input, or its result."""
    usage = Usage()
    for query in queries:
        home = streams[query.properties.stream].home
        whole = Properties(query.properties.stream, (), frozenset(streams[query.properties.stream].sample.schema.names))
        at_home = strategy is Strategy.QUERY_SHIPPING
        traffic = _result_traffic(query, rates) if at_home else rates.rate(whole).traffic
        for link in links_of(topology.route(home, query.peer)):
            usage.add_traffic(link, traffic)
        load = costs.operator_load(whole, query.properties) * rates.rate(whole).frequency
        usage.add_load(home if at_home else query.peer, load)
    return result_of(strategy, topology, usage, costs, len(queries), [])


def _result_traffic(query: NetworkQuery, rates: StreamRates) -> float:
    """Bytes per second of a query's own answer, whose aggregates are values and not partial ones."""
    rate = rates.rate(query.properties)
    if query.properties.aggregation is None:
        return rate.traffic
    return rate.frequency * (rate.size - COMPUTED_BYTES * (query.properties.aggregation.width - query.values))


def result_of(
    strategy: Strategy, topology: Topology, usage: Usage, costs: CostModel, flows: int, planning: list[float]
) -> SimulationResult:
    """The traffic of all links and the load of all peers."""
    return SimulationResult(
        strategy,
        {"-".join(link): usage.traffic.get(link, 0.0) for link in sorted(topology.links)},
        {peer: usage.load.get(peer, 0.0) / costs.capacity for peer in topology.peers},
        flows,
        planning,
    )


def random_queries(
    count: int, streams: Mapping[str, SourceStream], topology: Topology, seed: int, sources: int = 1
) -> list[NetworkQuery]:
    """Random queries over streams of photons, at random peers."""
    schemas = {name: stream.sample.schema for name, stream in streams.items()}
    drawn = photon_queries(count, list(streams), len(topology.peers), seed, sources)
    return [bind(f"q{number}", query.sql, topology.peers[query.peer], schemas) for number, query in enumerate(drawn)]
