"""Flows that this server keeps available for its peers, in the catalog.

A peer *holds* the flows that it receives of streams which this server itself receives from others: the replicas with
their rows are kept. Peers periodically send the list of all flows that they hold, so that no message is needed when one
ends: a flow that is not on the list is released. A flow that was just requested is *leased* until the next list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import delete, select, update
from sqlalchemy.dialects.sqlite import insert as upsert

from tureen.pot.peer_tables import held_flows
from tureen.pot.transaction import Transaction
from tureen.schema import name_key


class HeldFlow(NamedTuple):
    """A flow, the peer that holds it, and the replica that has its rows."""

    peer: str
    origin: str
    flow: str
    replica: int


def hold_flow(tx: Transaction, held: HeldFlow, leased_until: int) -> None:
    """Keep a flow available for a peer, at least until that time."""
    values = {
        "peer_key": name_key(held.peer),
        "peer": held.peer,
        "origin": held.origin,
        "flow": held.flow,
        "stream_id": held.replica,
        "leased_until": leased_until,
    }
    key = ["peer_key", "origin", "flow"]
    tx.execute(upsert(held_flows).values(values).on_conflict_do_update(index_elements=key, set_=values))


def list_held_flows(tx: Transaction) -> list[HeldFlow]:
    """All flows that are held."""
    rows = tx.execute(select(held_flows).order_by(held_flows.c.peer_key, held_flows.c.origin, held_flows.c.flow))
    return [HeldFlow(row.peer, row.origin, row.flow, row.stream_id) for row in rows]


def held_by(tx: Transaction, peer: str) -> set[tuple[str, str]]:
    """The origins and texts of the flows that a peer holds."""
    rows = select(held_flows.c.origin, held_flows.c.flow).where(held_flows.c.peer_key == name_key(peer))
    return {(row.origin, row.flow) for row in tx.execute(rows)}


def held_counts(tx: Transaction) -> Counter[str]:
    """How many flows each peer holds, by the key of its name."""
    return Counter(tx.execute(select(held_flows.c.peer_key)).scalars())


def held_replicas(tx: Transaction) -> set[int]:
    """The replicas that have the rows of held flows."""
    return set(tx.execute(select(held_flows.c.stream_id).distinct()).scalars())


def renew_flows(tx: Transaction, peer: str, named: Iterable[tuple[str, str]], now: int, leased_until: int) -> int:
    """Extend the lease of the flows that a peer names, and release its others whose lease is over; return how many."""
    of_peer = held_flows.c.peer_key == name_key(peer)
    listed = set(named)
    released = 0
    for row in tx.execute(select(held_flows).where(of_peer)).all():
        is_row = (of_peer, held_flows.c.origin == row.origin, held_flows.c.flow == row.flow)
        if (row.origin, row.flow) in listed:
            tx.execute(update(held_flows).where(*is_row).values(leased_until=leased_until))
        elif row.leased_until <= now:
            tx.execute(delete(held_flows).where(*is_row))
            released += 1
    return released


def release_flows(tx: Transaction, before: int) -> int:
    """Release all flows whose lease ended before a time, because their peers are gone; return how many."""
    return tx.execute(delete(held_flows).where(held_flows.c.leased_until < before)).rowcount
