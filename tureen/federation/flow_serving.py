"""What a peer may see of this server: the streams that are shared with it, and flows of them.

Nothing else is listed or readable, and an error about a stream that exists is the same as about one that does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tureen.closed.rules import Rules
from tureen.errors import UnknownStream
from tureen.federation.flow import FlowSelection, link_flow, parse_flow
from tureen.federation.flow_reader import FlowReader
from tureen.federation.flow_source import FlowSource
from tureen.federation.increments import Increments
from tureen.federation.neighbour import FlowRequest, PeerInfo, SharedStream
from tureen.federation.peer_quota import PeerQuota
from tureen.federation.sent_flows import SentFlows
from tureen.pot.catalog import Catalog
from tureen.pot.home_progress import HomeProgress
from tureen.pot.inbox import Inbox
from tureen.pot.links import Link, link_progress, list_links
from tureen.pot.peers import pot_id, server_name, shared_with
from tureen.pot.streams import Stream, visible_streams
from tureen.pot.transaction import Transaction
from tureen.predicate import columns_of
from tureen.query import NamedRelation
from tureen.results.invoke import Invoker
from tureen.schema import name_key
from tureen.sharing.covering import covers


def origin_of(stream: Stream, pot: str) -> str:
    """The identity of a stream in the network."""
    return stream.origin or f"{pot}/{stream.id}"


class FlowServing:
    """Flows of a pot's streams, for its peers and for its own links."""

    def __init__(
        self,
        catalog: Catalog,
        invoker: Invoker,
        inbox: Inbox,
        away: Callable[[int], str | None] = lambda _: None,
        quota: PeerQuota | None = None,
    ) -> None:
        """Serve that pot; `away` tells why a replica does not have everything."""
        self._catalog, self._invoker, self._inbox, self._away = catalog, invoker, inbox, away
        self.sent = SentFlows(quota)
        self.requests: Callable[[str, str, str, Any, float | None], Any] = _no_route
        """Answers what a peer asks for when it plans: its name, a method, a path, a body, and how long it waits."""

    def info(self, peer: str | None) -> PeerInfo:
        """What a peer may know; None is this server itself."""
        with self._catalog.read() as tx:
            name, pot = server_name(tx) or "", pot_id(tx)
            streams = self._visible(tx, peer)
        return PeerInfo(name, pot, tuple(_description(stream, pot, name) for stream in streams))

    def reader(self, peer: str | None, request: FlowRequest) -> FlowReader:
        """A flow of a stream that a peer may see, or of any stream for this server itself."""
        with self._catalog.read() as tx:
            pot, links, own_name = pot_id(tx), list_links(tx), server_name(tx)
            by_name = {name_key(stream.name): stream for stream in self._visible(tx, peer)}

        def describe(name: str) -> NamedRelation:
            stream = by_name.get(name_key(name))
            if stream is None:
                raise _unknown(name)
            return NamedRelation(stream.name, stream.visible)

        flow = parse_flow(request.flow, describe)
        stream = by_name[name_key(flow.stream)]
        if origin_of(stream, pot) != request.origin:
            raise _other_stream(flow.stream)
        if stream.home is None and request.after > self._invoker.next_ids([stream.id])[0]:
            raise _other_stream(flow.stream)
        if peer is None:
            # Replicas that are fed from others here do not feed others, so there is no cycle.
            links = [link for link in links if link.peer != own_name]
        source = self._source(stream, flow, links, request.after)
        if source is None:
            raise UnknownStream(
                f"this part of stream '{stream.name}' is not received here",
                hint="ask its home, or a server that receives it",
            )
        return FlowReader(self._invoker, source, request.after, request.punctuations)

    def is_shared(self, peer: str, origin: str) -> bool:
        """Whether a peer may still see a stream."""
        return self.shared_stream(peer, origin) is not None

    def shared_stream(self, peer: str, origin: str) -> Stream | None:
        """The stream of an origin, if a peer may see it."""
        with self._catalog.read() as tx:
            pot = pot_id(tx)
            return next((stream for stream in self._visible(tx, peer) if origin_of(stream, pot) == origin), None)

    def local_source(self, link: Link, links: Iterable[Link]) -> Link | None:
        """The link whose replica feeds that of a link of this server to itself."""
        received = [other for other in links if other.peer != link.peer]
        return _covering_link(link.stream, link_flow(link), received, self.progress(link).next_id)

    def next_ids(self, peer: str | None) -> dict[str, int]:
        """The next tuple id at its home of each stream that a peer may see, by its identity."""
        with self._catalog.read() as tx:
            pot, streams = pot_id(tx), [stream for stream in self._visible(tx, peer) if stream.home is None]
        ids = self._invoker.next_ids([stream.id for stream in streams]) if streams else ()
        return {origin_of(stream, pot): next_id for stream, next_id in zip(streams, ids, strict=True)}

    def progress(self, link: Link) -> HomeProgress:
        """The progress of a replica."""
        known = self._inbox.derived_to(link.id)
        if known is None:
            # Nothing was stored since the segments of its log were removed.
            with self._catalog.read() as tx:
                known = link_progress(tx, link.id)
        return HomeProgress.parse(known)

    def _visible(self, tx: Transaction, peer: str | None) -> list[Stream]:
        streams = visible_streams(tx)
        if peer is None:
            return streams
        shared = shared_with(tx, peer)
        return [stream for stream in streams if stream.id in shared]

    def _source(self, stream: Stream, flow: FlowSelection, links: Iterable[Link], after: int) -> FlowSource | None:
        """The source that has the rows of a flow after an id of the home; None if there is none here."""
        increments = None if flow.aggregation is None else Increments(flow, stream.visible)
        if stream.home is None:
            return FlowSource(stream, flow.tuple_columns, flow.clause, increments=increments)
        link = _covering_link(stream, flow, links, after)
        if link is None:
            return None
        received = link_flow(link)
        # Also what its flow implies is evaluated: a replica whose flow was narrowed has other tuples, too.
        clause = tuple(factor for factor in flow.clause if columns_of(factor) <= received.selectable)
        is_passed_on = received.aggregation is not None
        return FlowSource(
            link.replica,
            flow.columns if is_passed_on else flow.tuple_columns,
            clause,
            lambda: self.progress(link),
            lambda: self._away(link.id),
            flow.partials if is_passed_on else (),
            None if is_passed_on else increments,
        )


def _covering_link(stream: Stream, flow: FlowSelection, links: Iterable[Link], after: int = 0) -> Link | None:
    """The first link whose replica has the rows of a flow; None if there is none.

    Partial aggregates that begin at any id of the home can be computed from tuples alone, so these come first.
    """
    covering = [
        link
        for link in links
        if link.stream.id == stream.id and covers(stream.visible, link_flow(link).properties, flow.properties)
    ]
    tuples = [link for link in covering if link_flow(link).aggregation is None]
    return next(iter(tuples if after and tuples else covering), None)


def _no_route(peer: str, method: str, path: str, body: Any, seconds: float | None) -> Any:  # noqa: ARG001 - as the other function
    raise UnknownStream(f"there is no route {method} {path}")


def _description(stream: Stream, pot: str, server: str) -> SharedStream:
    return SharedStream(
        name=stream.name,
        schema=stream.visible.sql,
        time=stream.visible.time,
        clock=stream.clock,
        retain=stream.retain,
        item=stream.item,
        origin=origin_of(stream, pot),
        home=stream.home or server,
        rules=Rules(stream.rules.unique, stream.rules.lateness),
    )


def _unknown(name: str) -> UnknownStream:
    return UnknownStream(f"there is no stream named '{name}'", hint="it may not be shared any more")


def _other_stream(name: str) -> UnknownStream:
    return UnknownStream(
        f"stream '{name}' is not the one that was received before: it was created again, or restored from a backup",
        hint="unregister the queries over it, drop it, and register them again",
    )
