"""Peers in the catalog: the servers that this one receives streams from, and the streams that others may see."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field

from sqlalchemy import delete, insert, select
from sqlalchemy.dialects.sqlite import insert as upsert

from tureen.arguments import check_name
from tureen.errors import DuplicateName, TureenError, UnknownPeer, Unsupported, nearest
from tureen.pot.catalog import micros_now, take_seq
from tureen.pot.catalog_tables import meta, streams
from tureen.pot.peer_tables import held_flows, peers, shares
from tureen.pot.streams import Stream
from tureen.pot.transaction import Transaction
from tureen.schema import name_key

_SERVER_NAME = "server_name"


@dataclass(frozen=True, slots=True)
class Peer:
    """A server that this one receives streams from."""

    name: str
    url: str
    token: str | None = field(default=None, repr=False)
    ca: str | None = None
    """A PEM file of certificates to trust instead of the system's."""
    added_at: int = 0


def server_name(tx: Transaction) -> str | None:
    """The name of this pot's server in the network; None before its first start."""
    name: str | None = tx.execute(select(meta.c.value).where(meta.c.key == _SERVER_NAME)).scalar()
    return name


def name_server(tx: Transaction, name: str | None) -> str:
    """Give this pot's server a name, by default the one that it has, or that of the machine; return it."""
    chosen = check_name(name or server_name(tx) or socket.gethostname() or "tureen", "server")
    if chosen != server_name(tx):
        if find_peer(tx, chosen) is not None:
            raise DuplicateName(
                f"a peer is named '{chosen}'", hint="names of servers must differ: choose another --name"
            )
        values = {"key": _SERVER_NAME, "value": chosen}
        tx.execute(upsert(meta).values(values).on_conflict_do_update(index_elements=["key"], set_=values))
    return chosen


def pot_id(tx: Transaction) -> str:
    """The identity of this pot."""
    return str(tx.execute(select(meta.c.value).where(meta.c.key == "pot")).scalar_one())


def add_peer(tx: Transaction, peer: Peer) -> Peer:
    """Add a server to receive streams from."""
    name = check_name(peer.name, "peer")
    if find_peer(tx, name) is not None:
        raise DuplicateName(f"there is a peer named '{name}' already", hint="remove it first, or use another name")
    if name_key(server_name(tx) or "") == name_key(name):
        raise TureenError(f"'{name}' is the name of this server", hint="give each server a name with --name")
    take_seq(tx)
    added = Peer(name, peer.url, peer.token, peer.ca, peer.added_at or micros_now())
    tx.execute(
        insert(peers).values(
            name_key=name_key(name),
            name=added.name,
            url=added.url,
            token=added.token,
            ca=added.ca,
            added_at=added.added_at,
        )
    )
    return added


def remove_peer(tx: Transaction, name: str) -> Peer:
    """Remove a peer and what is shared with it; links to it receive nothing any more."""
    peer = find_peer(tx, name)
    shared = tx.execute(select(shares.c.peer_key).where(shares.c.peer_key == name_key(name))).first()
    if peer is None and shared is None:
        names = [known.name for known in list_peers(tx)]
        raise UnknownPeer(f"there is no peer named '{name}'", hint=nearest(name, names))
    take_seq(tx)
    tx.execute(delete(peers).where(peers.c.name_key == name_key(name)))
    for table in (shares, held_flows):
        tx.execute(delete(table).where(table.c.peer_key == name_key(name)))
    return peer or Peer(name, "")


def list_peers(tx: Transaction) -> list[Peer]:
    """All peers, in order of their names."""
    rows = tx.execute(select(peers).order_by(peers.c.name_key))
    return [Peer(row.name, row.url, row.token, row.ca, row.added_at) for row in rows]


def find_peer(tx: Transaction, name: str) -> Peer | None:
    """The peer of a name, or None."""
    row = tx.execute(select(peers).where(peers.c.name_key == name_key(name))).first()
    return None if row is None else Peer(row.name, row.url, row.token, row.ca, row.added_at)


def share_stream(tx: Transaction, peer: str, stream: Stream) -> None:
    """Let a peer see a stream; it need not be one that this server receives from."""
    if stream.keeps_needed:
        raise Unsupported(
            f"stream '{stream.name}' keeps what is needed here, and cannot be shared",
            hint="derive a stream from it, and share that one",
        )
    take_seq(tx)
    values = {"peer_key": name_key(check_name(peer, "peer")), "stream_id": stream.id, "peer": peer}
    tx.execute(upsert(shares).values(values).on_conflict_do_nothing())


def unshare_stream(tx: Transaction, peer: str, stream: Stream) -> None:
    """Withdraw a stream from a peer."""
    take_seq(tx)
    shared = (shares.c.peer_key == name_key(peer), shares.c.stream_id == stream.id)
    if not tx.execute(delete(shares).where(*shared)).rowcount:
        raise TureenError(f"stream '{stream.name}' is not shared with '{peer}'", hint="`peer list` shows what is")


def shared_with(tx: Transaction, peer: str) -> set[int]:
    """The ids of the streams that a peer may see."""
    return set(tx.execute(select(shares.c.stream_id).where(shares.c.peer_key == name_key(peer))).scalars())


def all_shares(tx: Transaction) -> dict[str, list[str]]:
    """The names of the streams that each peer may see, by its name."""
    joined = select(shares.c.peer, streams.c.name).join_from(shares, streams, streams.c.id == shares.c.stream_id)
    by_peer: dict[str, list[str]] = {}
    for row in tx.execute(joined.order_by(shares.c.peer_key, streams.c.name_key)):
        by_peer.setdefault(row.peer, []).append(row.name)
    return by_peer
