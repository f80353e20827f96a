"""Peers and links as users see them: dicts for lists and the status."""

from __future__ import annotations

from typing import Any

from tureen.federation.federation import Federation
from tureen.federation.link_run import LinkState
from tureen.federation.peering import PeerState
from tureen.federation.sent_flows import SentTotal
from tureen.schema import name_key
from tureen.window import from_micros


def describe_peers(federation: Federation) -> list[dict[str, Any]]:
    """The peers of a server, without their tokens."""
    totals = federation.serving.sent.totals()
    sent = {name_key(peer): total for peer, total in totals.items()}
    return [_peer(state, sent.get(name_key(state.peer.name), SentTotal())) for state in federation.peering.states()]


def federation_status(federation: Federation) -> dict[str, Any]:
    """The part of a server's status about other servers."""
    return {
        "name": federation.name,
        "peers": {state.peer.name: _state(state) for state in federation.peering.states()},
        "links": [describe_link(state) for state in federation.link_states()],
        "sent": federation.serving.sent.as_dict(),
    }


def describe_link(state: LinkState) -> dict[str, Any]:
    """A link: what it receives from which peer, its state, and how much it has received since the server started."""
    link = state.link
    return {
        "stream": link.stream.name,
        "peer": link.peer,
        "flow": link.flow,
        "state": state.state,
        "since": from_micros(state.since),
        "error": state.error,
        "rows": state.rows,
        "bytes": state.bytes,
        "next_id": state.next_id,
        "connections": state.connections,
    }


def _peer(state: PeerState, sent: SentTotal) -> dict[str, Any]:
    return {
        "name": state.peer.name,
        "url": state.peer.url or None,
        **_state(state),
        "offers": list(state.offered),
        "shared": list(state.shared),
        "flows": sent.flows,
        "kept": state.kept,
        "refused": sent.refused,
        "bytes": sent.bytes,
    }


def _state(state: PeerState) -> dict[str, Any]:
    since = None if state.since is None else from_micros(state.since)
    return {"state": state.state, "since": since, "error": state.error}
