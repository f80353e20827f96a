"""The catalog's tables about other servers; see `catalog_tables.py`."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, String, Table, Text

from tureen.pot.catalog_tables import metadata

peers = Table(
    "peers",
    metadata,
    # The other servers that this one receives streams from. The token is needed as it is, to be sent.
    Column("name_key", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("url", String, nullable=False),
    Column("token", Text),
    Column("ca", Text),
    Column("added_at", BigInteger, nullable=False),
)

shares = Table(
    "shares",
    metadata,
    # The streams that a peer may see: the principal of the token that it sends.
    Column("peer_key", String, primary_key=True),
    Column("stream_id", Integer, primary_key=True),
    Column("peer", String, nullable=False),
)

links = Table(
    "links",
    metadata,
    # Where a replica receives its tuples from: the peer, and the selection that it sends. `streams.derived_to` tells up
    # to where they are stored, and the keys of pushes to the replica tell more.
    Column("stream_id", Integer, primary_key=True),
    Column("peer", String, nullable=False),
    Column("flow", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

held_flows = Table(
    "held_flows",
    metadata,
    # The flows that are kept for peers and the replicas that have their rows, until peers do not name them any more.
    Column("peer_key", String, primary_key=True),
    Column("origin", String, primary_key=True),
    Column("flow", Text, primary_key=True),
    Column("peer", String, nullable=False),
    Column("stream_id", Integer, nullable=False),
    Column("leased_until", BigInteger, nullable=False),
)
