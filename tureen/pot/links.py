"""Links in the catalog: from where the replicas of other servers' streams receive their tuples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import exists, insert, or_, select, update

from tureen.pot.catalog import micros_now
from tureen.pot.catalog_tables import query_inputs, streams
from tureen.pot.peer_tables import held_flows, links, peers
from tureen.pot.streams import Stream, create_replica, drop_stream, list_streams, stream_by_id
from tureen.pot.transaction import Transaction
from tureen.schema import Column


class Link(NamedTuple):
    """A replica, the stream that it is a part of, and what it receives from which peer."""

    replica: Stream
    stream: Stream
    peer: str
    flow: str
    """The selection and projection, as a query over the stream."""

    @property
    def id(self) -> int:
        """The id of the replica."""
        return self.replica.id


_IS_FEDERATED = select(or_(*(exists().select_from(table) for table in (peers, links, held_flows))))


def create_link(tx: Transaction, stream: Stream, peer: str, flow: str, hidden: Sequence[Column] = ()) -> Link:
    """Add a replica of a stream, perhaps with columns that users do not see, and the link that feeds it."""
    replica = create_replica(tx, stream, hidden)
    tx.execute(insert(links).values(stream_id=replica.id, peer=peer, flow=flow, created_at=micros_now()))
    return Link(replica, stream, peer, flow)


def list_links(tx: Transaction) -> list[Link]:
    """All links, in order of creation."""
    rows = tx.execute(select(links).order_by(links.c.stream_id)).all()
    by_id = {stream.id: stream for stream in list_streams(tx)} if rows else {}
    entries = []
    for row in rows:
        replica = by_id.get(row.stream_id)
        stream = None if replica is None else by_id.get(replica.replica_of or 0)
        if replica is not None and stream is not None:
            entries.append(Link(replica, stream, row.peer, row.flow))
    return entries


def is_federated(tx: Transaction) -> bool:
    """Whether the pot has peers, links, or flows that are kept for peers."""
    return bool(tx.execute(_IS_FEDERATED).scalar())


def link_progress(tx: Transaction, replica: int) -> str | None:
    """The stored progress of a replica; the keys of later pushes have later ones."""
    progress: str | None = tx.execute(select(streams.c.derived_to).where(streams.c.id == replica)).scalar()
    return progress


def replica_flow(tx: Transaction, replica: int) -> str | None:
    """The flow that a replica receives; None if it was dropped."""
    flow: str | None = tx.execute(select(links.c.flow).where(links.c.stream_id == replica)).scalar()
    return flow


def change_link(tx: Transaction, replica: int, peer: str, flow: str) -> None:
    """Let a replica receive its tuples from another peer, or by another query."""
    tx.execute(update(links).where(links.c.stream_id == replica).values(peer=peer, flow=flow))


def drop_link(tx: Transaction, replica: int) -> None:
    """Drop a replica with its link."""
    stream = stream_by_id(tx, replica)
    if stream is not None:
        drop_stream(tx, stream)


def replica_uses(tx: Transaction) -> Counter[int]:
    """How many inputs of queries read each replica."""
    replicas = select(streams.c.id).where(streams.c.replica_of.is_not(None))
    return Counter(tx.execute(select(query_inputs.c.stream_id).where(query_inputs.c.stream_id.in_(replicas))).scalars())


def replica_readers(tx: Transaction) -> dict[int, list[tuple[str, int]]]:
    """The inputs of queries and templates that read each replica: handles, and the numbers of the inputs."""
    replicas = select(streams.c.id).where(streams.c.replica_of.is_not(None))
    inputs = select(query_inputs).where(query_inputs.c.stream_id.in_(replicas))
    readers: dict[int, list[tuple[str, int]]] = {}
    for row in tx.execute(inputs):
        readers.setdefault(row.stream_id, []).append((row.query_id, row.number))
    return readers


def used_replicas(tx: Transaction) -> set[int]:
    """The ids of the replicas that queries, templates or derived streams read."""
    replicas = select(streams.c.id).where(streams.c.replica_of.is_not(None), streams.c.name_key.is_not(None))
    used = select(query_inputs.c.stream_id).where(query_inputs.c.stream_id.in_(replicas)).distinct()
    return set(tx.execute(used).scalars())
