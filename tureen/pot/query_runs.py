"""Compiled query runs in the catalog: the Query SteM of a stream, as intervals of clause numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import bindparam, delete, func, insert, select, update

from tureen.errors import PotError
from tureen.pot.catalog import micros_now
from tureen.pot.catalog_tables import clauses, garbage, meta, query_runs, streams
from tureen.pot.statements import Prepared
from tureen.pot.transaction import Transaction

_VERSION = "query runs"

_LIVE = Prepared(select(query_runs).where(query_runs.c.stream_id == bindparam("stream")).order_by(query_runs.c.first))
_COMPILED = Prepared(select(streams.c.compiled_seq).where(streams.c.id == bindparam("stream")))


@dataclass(frozen=True, slots=True)
class QueryRunRecord:
    """A compiled query run: its file, its interval of numbers, and how many clauses it has and how many are dead."""

    path: str
    first: int
    last: int
    clauses: int
    dead: int = 0
    id: int = 0


def live_query_runs(tx: Transaction, stream_id: int) -> list[QueryRunRecord]:
    """The query runs of a stream, by ascending numbers."""
    rows = tx.execute(_LIVE, {"stream": stream_id})
    return [QueryRunRecord(row.path, row.first, row.last, row.clauses, row.dead, row.id) for row in rows]


def compiled_seq(tx: Transaction, stream_id: int) -> int:
    """The commit up to which the stream's eager clauses are in its query runs."""
    return int(tx.execute(_COMPILED, {"stream": stream_id}).scalar() or 0)


def publish_query_run(
    tx: Transaction, stream_id: int, old: Sequence[QueryRunRecord], new: QueryRunRecord | None, seq: int
) -> None:
    """Add a query run, or replace others by it; with it, the eager clauses up to the commit `seq` are compiled.

    Clauses that were removed while it was compiled are dead in it. Raises, and so rolls back, if an old one was
    replaced or dropped concurrently.
    """
    for run in old:
        if tx.execute(delete(query_runs).where(query_runs.c.id == run.id)).rowcount == 0:
            raise PotError("a query run was replaced or dropped meanwhile")
        tx.execute(insert(garbage).values(path=run.path, since=micros_now()))
    if new is not None:
        eager = (clauses.c.stream_id == stream_id, clauses.c.number.between(new.first, new.last))
        live = int(tx.execute(select(func.count()).where(*eager)).scalar_one())
        values = {"path": new.path, "first": new.first, "last": new.last, "clauses": new.clauses}
        tx.execute(insert(query_runs).values(stream_id=stream_id, dead=new.clauses - live, **values))
    tx.execute(update(streams).where(streams.c.id == stream_id).values(compiled_seq=seq))


def renew_query_runs(tx: Transaction, version: int) -> bool:
    """Remove all query runs if they were written in another version of their format; True if there were any.

    They are compiled again from the clauses.
    """
    stored_version = tx.execute(select(meta.c.value).where(meta.c.key == _VERSION)).scalar()
    if stored_version == str(version):
        return False
    tx.execute(delete(meta).where(meta.c.key == _VERSION))
    tx.execute(insert(meta).values(key=_VERSION, value=str(version)))
    stale = set(tx.execute(select(query_runs.c.stream_id)).scalars())
    for stream_id in stale:
        forget_query_runs(tx, stream_id)
    return bool(stale)


def forget_query_runs(tx: Transaction, stream_id: int) -> None:
    """Remove a stream's query runs, so that its clauses are compiled again."""
    of_stream = query_runs.c.stream_id == stream_id
    for path in list(tx.execute(select(query_runs.c.path).where(of_stream)).scalars()):
        tx.execute(insert(garbage).values(path=path, since=micros_now()))
    tx.execute(delete(query_runs).where(of_stream))
    tx.execute(update(streams).where(streams.c.id == stream_id).values(compiled_seq=0))
