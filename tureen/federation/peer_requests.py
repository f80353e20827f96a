"""The planning requests of peers: what this server receives, samples of streams, and flows to provide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tureen.errors import PeerFailed, TureenError, UnknownStream
from tureen.federation import neighbour
from tureen.federation.askers import PLAN_SECONDS, Askers
from tureen.federation.federation import Federation
from tureen.federation.network_placement import NetworkPlacement, tuples_of
from tureen.federation.peer_messages import read_flows, read_hops, read_names, read_text, states_json
from tureen.federation.placement import LinkSource
from tureen.pot.catalog import Catalog
from tureen.pot.held_flows import HeldFlow, held_by, hold_flow, renew_flows
from tureen.pot.links import Link
from tureen.pot.streams import Stream
from tureen.pot.transaction import Transaction
from tureen.sharing.selection_text import parse_selection

T = TypeVar("T")

LEASE_SECONDS = 120.0
"""How long a flow is kept for a peer that does not name it."""


class PeerRequests:
    """Answers the requests of peers. Streams that are not shared with a peer do not exist for it."""

    def __init__(
        self,
        catalog: Catalog,
        federation: Federation,
        placement: NetworkPlacement,
        clock: Callable[[], int],
        lease: float = LEASE_SECONDS,
    ) -> None:
        """Answer for the server of that catalog."""
        self._catalog, self._federation, self._placement = catalog, federation, placement
        self._clock, self._lease = clock, round(lease * 1_000_000)

    def handle(self, peer: str, method: str, path: str, body: Any, seconds: float | None = None) -> dict[str, Any]:
        """Answer a request of a peer, which waits for some seconds."""
        if not isinstance(body, dict):
            raise TureenError("a request of a peer must be a JSON object")
        match method, path:
            case "POST", neighbour.NETWORK_PATH:
                stream = self._stream(peer, body)
                with self._federation.peering.asking():
                    return states_json(self._placement.states(stream, _asked(peer, body, seconds)))
            case "POST", neighbour.SAMPLE_PATH:
                stream = self._stream(peer, body)
                with self._federation.peering.asking():
                    return self._placement.sampling.sample(stream, _asked(peer, body, seconds))
            case "POST", neighbour.FLOWS_PATH:
                return self._have(peer, body, seconds)
            case "PUT", neighbour.FLOWS_PATH:
                return self._renew(peer, body)
        raise UnknownStream(f"there is no route {method} {path}")

    def _have(self, peer: str, body: dict[str, Any], seconds: float | None) -> dict[str, Any]:
        """Provide a flow that the peer is going to receive, and keep it."""
        stream = self._stream(peer, body)
        flow = _read(read_text, body.get("flow"))
        needed = parse_selection(flow, stream.name, stream.visible)
        if body.get("is_known"):
            # Rows that are received already can be continued from tuples, at any id.
            needed = tuples_of(stream, needed)
        if stream.home is None:
            return {}  # every flow can be read from the stream itself
        with self._catalog.read() as tx:
            assert stream.origin is not None
            self._check_quota(tx, peer, stream.origin, flow)
        asked, hops = _asked(peer, body, seconds), _read(read_hops, body.get("hops", []))

        def place() -> Link | LinkSource:
            link = self._placement.covering(stream, needed)
            # What others receive from the server that asks must not be sent back to it.
            if link is not None and body.get("is_known") and not self._placement.is_grounded(stream, link, asked):
                raise PeerFailed(f"stream '{stream.name}' is not received from its home here")
            if link is not None:
                return link
            if hops:
                return self._placement.carry_out(stream, hops, asked)
            return self._placement.obtain(stream, needed, asked)

        with self._federation.peering.asking():
            link = self._federation.claim_link(stream, place)
        try:
            with self._catalog.write() as tx:
                self._check_quota(tx, peer, stream.origin, flow)
                hold_flow(tx, HeldFlow(peer, stream.origin, flow, link.id), self._clock() + self._lease)
        finally:
            self._federation.release(link.id)
        return {}

    def _check_quota(self, tx: Transaction, peer: str, origin: str, flow: str) -> None:
        held = held_by(tx, peer)
        if (origin, flow) not in held:
            self._federation.serving.sent.check(peer, len(held))

    def _renew(self, peer: str, body: dict[str, Any]) -> dict[str, Any]:
        """Release the flows that the peer no longer receives; return those that it receives and that are not here."""
        named, now = _read(read_flows, body.get("flows")), self._clock()
        missing = []
        # More than it may have are not looked at: there is nothing for them.
        considered = named[: self._federation.settings.quota.flows]
        streams = {origin: self._federation.serving.shared_stream(peer, origin) for origin, _ in considered}
        for origin, flow in considered:
            stream = streams[origin]
            if stream is not None and stream.home is not None:
                needed = parse_selection(flow, stream.name, stream.visible)
                if self._placement.covering(stream, needed) is None:
                    missing.append([origin, flow])
        with self._catalog.write() as tx:
            renew_flows(tx, peer, named, now, now + self._lease)
        return {"missing": missing}

    def _stream(self, peer: str, body: dict[str, Any]) -> Stream:
        stream = self._federation.serving.shared_stream(peer, _read(read_text, body.get("origin")))
        if stream is None:
            raise UnknownStream("there is no such stream", hint="it may not be shared any more")
        return stream


def _asked(peer: str, body: dict[str, Any], seconds: float | None) -> Askers:
    """The peers that wait for the answer, at least the one that asks; None is to wait without a limit."""
    names = dict.fromkeys([*_read(read_names, body.get("asked", [])), peer])
    return Askers(tuple(names)) if seconds is None else Askers.waiting(min(seconds, PLAN_SECONDS), *names)


def _read(reader: Callable[[Any], T], value: Any) -> T:
    """Read a part of a request. What is wrong in it is an error of the caller, not of a peer that was asked."""
    try:
        return reader(value)
    except PeerFailed as error:
        raise TureenError(error.message, detail=error.detail, hint=error.hint) from error
