"""Derived streams in the catalog: streams whose tuples are the changes of a query."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import select

from tureen.pot.catalog import take_seq
from tureen.pot.catalog_tables import queries, query_inputs, streams
from tureen.pot.queries import add_queries
from tureen.pot.registered import DERIVED, Registration
from tureen.pot.statements import Prepared
from tureen.pot.streams import Stream, create_stream, list_streams
from tureen.pot.transaction import Transaction
from tureen.retention import Retain
from tureen.schema import Schema


class DerivedStream(NamedTuple):
    """A derived stream, its query, and up to where the query's changes are known to be in its inbox."""

    stream: Stream
    query_id: str
    derived_to: str | None


def create_derived_stream(
    tx: Transaction,
    name: str,
    schema: Schema,
    registration: Registration,
    *,
    clock: str,
    retain: Retain,
    item: str | None = None,
) -> Stream:
    """Add a stream, and the query whose changes are its tuples."""
    assert registration.owner == DERIVED
    (query_id,) = add_queries(tx, take_seq(tx), [registration])
    return create_stream(tx, name, schema, clock=clock, retain=retain, source=None, query_id=query_id, item=item)


_ENDS = Prepared(select(streams.c.id, streams.c.derived_to).where(streams.c.query_id.is_not(None)))


def derived_streams(tx: Transaction) -> list[DerivedStream]:
    """All derived streams, each after those that it is derived from."""
    ends: dict[int, str | None] = {row.id: row.derived_to for row in tx.execute(_ENDS)}
    if not ends:
        return []
    return [
        DerivedStream(stream, stream.query_id, ends[stream.id])
        for stream in list_streams(tx)
        if stream.query_id is not None
    ]


def texts_of_queries(tx: Transaction) -> dict[str, str]:
    """The SQL of the queries of derived streams, by their handles."""
    rows = tx.execute(select(queries.c.id, queries.c.sql).where(queries.c.owner == DERIVED))
    return {row.id: row.sql for row in rows}


def streams_derived_from(tx: Transaction, stream_id: int) -> list[DerivedStream]:
    """The derived streams whose queries read a stream."""
    reads = (streams.c.query_id == query_inputs.c.query_id) & (query_inputs.c.stream_id == stream_id)
    reading = set(tx.execute(select(streams.c.query_id).join_from(streams, query_inputs, reads)).scalars())
    return [entry for entry in derived_streams(tx) if entry.query_id in reading]
