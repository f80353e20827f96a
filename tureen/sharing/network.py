"""The streams that flow in a network, and the queries that they serve.

A *flow* is a stream with properties that is computed at one peer from another flow that passes there, and travels along
a route. Every peer of the route can use it. The original stream is a flow that stays at its home. A plan for a query
names a flow, the peer where it is tapped, and perhaps a wider selection for it; the network carries plans out, and
removes the flows that no query uses any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tureen.errors import TureenError
from tureen.schema import Schema
from tureen.sharing.covering import covers
from tureen.sharing.network_cost import CostModel, Rate, StreamRates, Usage
from tureen.sharing.properties import Properties
from tureen.sharing.stream_index import StreamIndex
from tureen.sharing.topology import Route, Topology, links_of


@dataclass(frozen=True)
class StreamFlow:
    """A stream in the network."""

    number: int
    properties: Properties
    route: Route
    parent: int | None = None
    """The flow that it is computed from, at the first peer of its route; None for an original stream."""


@dataclass(frozen=True)
class Subscription:
    """A query that is registered at a peer, and the flow that serves it there."""

    name: str
    properties: Properties
    peer: str
    flow: int


@dataclass(frozen=True)
class EvaluationPlan:
    """How a new query is served: a flow is tapped at a peer, after it and its sources were widened."""

    flow: int
    tap: str
    cost: float
    hops: int
    """The number of links from the tap to the query."""
    widen: tuple[tuple[int, Properties], ...] = ()
    """Flows and their new properties, the sources first."""

    @property
    def rank(self) -> tuple[float, int]:
        """What is least in the best plan."""
        return self.cost, self.hops


@dataclass
class Network:
    """Peers, the flows between them, and the queries that they serve."""

    topology: Topology
    rates: StreamRates
    costs: CostModel = field(default_factory=CostModel)
    usage: Usage = field(default_factory=Usage)
    flows: dict[int, StreamFlow] = field(default_factory=dict)
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    schemas: dict[str, Schema] = field(default_factory=dict)
    _index: StreamIndex[int] = field(default_factory=StreamIndex)
    _users: dict[int, set[int | str]] = field(default_factory=dict)
    """For each flow the flows that are computed from it, by number, and the queries that it serves, by name."""
    _numbers: Iterator[int] = field(default_factory=lambda: iter(range(1 << 60)))

    def add_stream(self, name: str, schema: Schema, home: str, properties: Properties | None = None) -> StreamFlow:
        """Add a stream at its home; with `properties`, the part of it that is available there."""
        if home not in self.topology.neighbours:
            raise TureenError(f"there is no peer '{home}'")
        self.schemas[name] = schema
        whole = properties or Properties(name, (), frozenset(schema.names))
        return self._add(StreamFlow(next(self._numbers), whole, (home,)))

    def add_flow(self, properties: Properties, route: Route, parent: StreamFlow) -> StreamFlow:
        """Add a flow that exists already."""
        return self._add(StreamFlow(next(self._numbers), properties, route, parent.number))

    def covering(self, properties: Properties) -> list[StreamFlow]:
        """The flows from which a query can be computed."""
        return [self.flows[number] for number in sorted(self._index.covering(properties))]

    def overlapping(self, properties: Properties) -> list[StreamFlow]:
        """The flows that may have rows in common with a query, and are not aggregated."""
        return [self.flows[number] for number in sorted(self._index.overlapping(properties))]

    def rate(self, properties: Properties) -> Rate:
        """How much a stream transports."""
        return self.rates.rate(properties)

    def register(self, name: str, properties: Properties, peer: str, plan: EvaluationPlan) -> Subscription:
        """Carry out a plan for a query at a peer."""
        assert name not in self.subscriptions
        for number, wide in plan.widen:
            self._widen(number, wide)
        for number, _ in plan.widen:
            self._absorb(self.flows[number])
        flow = self.flows[plan.flow]
        if flow.properties != properties or plan.tap != peer:
            flow = self._add(
                StreamFlow(next(self._numbers), properties, self.topology.route(plan.tap, peer), flow.number)
            )
            self._absorb(flow)
        subscription = Subscription(name, properties, peer, flow.number)
        self.subscriptions[name] = subscription
        self._users[flow.number].add(name)
        return subscription

    def unregister(self, name: str) -> None:
        """Remove a query, and the flows that nobody uses any more."""
        subscription = self.subscriptions.pop(name, None)
        if subscription is None:
            raise TureenError(f"there is no query '{name}'")
        self._release(subscription.flow, name)

    def users(self, number: int) -> set[int | str]:
        """The flows that are computed from a flow, and the queries that it serves."""
        return set(self._users[number])

    def _absorb(self, flow: StreamFlow) -> None:
        """Compute other flows from this one, where both travel along the same links and this one covers them."""
        if len(flow.route) < 2:
            return
        schema = self.schemas[flow.properties.stream]
        for other in self.overlapping(flow.properties):
            shared = self._shared_part(flow, other)
            if shared and not self._is_ancestor(other, flow) and covers(schema, flow.properties, other.properties):
                self._move(other, replace(other, parent=flow.number, route=other.route[shared:]))

    def _shared_part(self, flow: StreamFlow, other: StreamFlow) -> int:
        """How many links of another flow are not needed if it is computed from a flow, as late as possible."""
        if other.number == flow.number or other.parent is None:
            return 0
        passed = set(flow.route)
        last = max((at for at, peer in enumerate(other.route) if peer in passed), default=0)
        # Flows that are computed from it before that peer would lose it.
        taps = {self.flows[user].route[0] for user in self._users[other.number] if isinstance(user, int)}
        return last if taps <= set(other.route[last:]) else 0

    def _is_ancestor(self, flow: StreamFlow, descendant: StreamFlow) -> bool:
        parent = descendant.parent
        while parent is not None:
            if parent == flow.number:
                return True
            parent = self.flows[parent].parent
        return False

    def _move(self, before: StreamFlow, after: StreamFlow) -> None:
        """Change the route and the source of a flow."""
        assert before.parent is not None
        assert after.parent is not None
        self._count(before, -1.0)
        self.flows[after.number] = after
        self._users[after.parent].add(after.number)
        self._count(after, 1.0)
        self._release(before.parent, before.number)

    def _release(self, number: int, user: int | str) -> None:
        self._users[number].remove(user)
        flow = self.flows[number]
        if not self._users[number] and flow.parent is not None:
            self._count(flow, -1.0)
            self._index.remove(number)
            del self.flows[number], self._users[number]
            self._release(flow.parent, number)

    def _add(self, flow: StreamFlow) -> StreamFlow:
        self.flows[flow.number] = flow
        self._users[flow.number] = set()
        self._index.add(flow.number, flow.properties, self.schemas[flow.properties.stream])
        if flow.parent is not None:
            self._users[flow.parent].add(flow.number)
        self._count(flow, 1.0)
        return flow

    def _widen(self, number: int, wide: Properties) -> None:
        """Replace the properties of a flow; those that are computed from it select their part of it."""
        flow = self.flows[number]
        children = [self.flows[user] for user in self._users[number] if isinstance(user, int)]
        queries = [user for user in self._users[number] if isinstance(user, str)]
        for changed in (flow, *children):
            self._count(changed, -1.0)
        self._index.remove(number)
        self.flows[number] = replace(flow, properties=wide)
        self._index.add(number, wide, self.schemas[wide.stream])
        for changed in (self.flows[number], *children):
            self._count(changed, 1.0)
        for name in queries:
            # A query had this very stream: it now has its own, computed where it is registered.
            subscription = self.subscriptions[name]
            self._users[number].remove(name)
            own = self._add(StreamFlow(next(self._numbers), subscription.properties, (subscription.peer,), number))
            self._users[own.number].add(name)
            self.subscriptions[name] = replace(subscription, flow=own.number)

    def _count(self, flow: StreamFlow, sign: float) -> None:
        """Add the traffic and the load of a flow to the usage, or remove them."""
        traffic = self.rate(flow.properties).traffic
        for link in links_of(flow.route):
            self.usage.add_traffic(link, sign * traffic)
        if flow.parent is not None:
            self.usage.add_load(flow.route[0], sign * self.load(self.flows[flow.parent].properties, flow.properties))

    def load(self, source: Properties, result: Properties) -> float:
        """The load of computing a stream from another."""
        return self.costs.operator_load(source, result) * self.rate(source).frequency
