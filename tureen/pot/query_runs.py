"""Compiled query runs in the catalog: the Query SteM of a stream, as stretches of clause numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, insert, select, update

from tureen.errors import PotError
from tureen.pot.catalog import micros_now
from tureen.pot.catalog_tables import clauses, garbage, meta, query_runs, streams

_VERSION = "query runs"


@dataclass(frozen=True, slots=True)
class QueryRunRecord:
    """A compiled query run: where it is, which numbers it has, how many clauses, and how many of them are gone."""

    path: str
    first: int
    last: int
    clauses: int
    dead: int = 0
    id: int = 0


def live_query_runs(tx: Connection, stream_id: int) -> list[QueryRunRecord]:
    """The query runs of a stream, by ascending numbers."""
    found = tx.execute(select(query_runs).where(query_runs.c.stream_id == stream_id).order_by(query_runs.c.first))
    return [QueryRunRecord(row.path, row.first, row.last, row.clauses, row.dead, row.id) for row in found]


def compiled_seq(tx: Connection, stream_id: int) -> int:
    """Up to which commit the stream's eager clauses are in its query runs."""
    return int(tx.execute(select(streams.c.compiled_seq).where(streams.c.id == stream_id)).scalar() or 0)


def publish_query_run(
    tx: Connection, stream_id: int, old: Sequence[QueryRunRecord], new: QueryRunRecord | None, seq: int
) -> None:
    """Put a query run in the place of others, if any, for new data to be matched against; `seq` is how far it goes.

    Clauses that went while it was compiled are dead in it. Raises, and so rolls back, where an old one is gone already.
    """
    for one in old:
        if tx.execute(delete(query_runs).where(query_runs.c.id == one.id)).rowcount == 0:
            raise PotError("a query run was replaced or dropped meanwhile")
        tx.execute(insert(garbage).values(path=one.path, since=micros_now()))
    if new is not None:
        eager = (clauses.c.stream_id == stream_id, clauses.c.number.between(new.first, new.last))
        live = int(tx.execute(select(func.count()).where(*eager)).scalar_one())
        values = {"path": new.path, "first": new.first, "last": new.last, "clauses": new.clauses}
        tx.execute(insert(query_runs).values(stream_id=stream_id, dead=new.clauses - live, **values))
    tx.execute(update(streams).where(streams.c.id == stream_id).values(compiled_seq=seq))


def renew_query_runs(tx: Connection, version: int) -> bool:
    """Let go of all query runs that were written in another version of their format; True if there were some.

    They follow from the clauses, so they are compiled again.
    """
    known = tx.execute(select(meta.c.value).where(meta.c.key == _VERSION)).scalar()
    if known == str(version):
        return False
    tx.execute(delete(meta).where(meta.c.key == _VERSION))
    tx.execute(insert(meta).values(key=_VERSION, value=str(version)))
    stale = set(tx.execute(select(query_runs.c.stream_id)).scalars())
    for stream_id in stale:
        forget_query_runs(tx, stream_id)
    return bool(stale)


def forget_query_runs(tx: Connection, stream_id: int) -> None:
    """Let go of a stream's query runs, for its clauses to be compiled again."""
    these = query_runs.c.stream_id == stream_id
    for path in list(tx.execute(select(query_runs.c.path).where(these)).scalars()):
        tx.execute(insert(garbage).values(path=path, since=micros_now()))
    tx.execute(delete(query_runs).where(these))
    tx.execute(update(streams).where(streams.c.id == stream_id).values(compiled_seq=0))
