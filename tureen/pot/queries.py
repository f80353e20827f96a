"""Standing queries and their clauses in the catalog.

Queries that differ only in window, select list or name share one clause, counted by references.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, or_, select, update

from tureen.errors import DuplicateName, UnknownQuery, UnknownStream, nearest
from tureen.faults import crash_point
from tureen.pot.catalog import Catalog, micros_now, take_seq
from tureen.pot.tables import clauses, garbage, queries, query_runs, streams
from tureen.predicate import Clause, dump_clause, load_clause


@dataclass(frozen=True, slots=True)
class Registration:
    """A query that is about to stand."""

    sql: str
    stream_id: int
    clause: Clause
    eager: bool
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Registered:
    """A standing query as the catalog has it."""

    id: str
    name: str | None
    sql: str
    stream_id: int
    clause_id: int
    eager: bool
    seq: int
    registered_at: int
    clause_seq: int
    error: str | None

    @property
    def state(self) -> str:
        """Either "standing", or "failed" once it raised on some tuple."""
        return "standing" if self.error is None else "failed"


def register(tx: Connection, seq: int, wanted: Registration) -> str:
    """Add a query and return its handle; what it owes follows from its seq."""
    handle = uuid.uuid4().hex
    if (
        tx.execute(
            select(streams.c.id).where(streams.c.id == wanted.stream_id, streams.c.name_key.is_not(None))
        ).first()
        is None
    ):
        raise UnknownStream("the stream of this query was dropped")
    if wanted.name is not None:
        check_free(tx, wanted.name)
    tx.execute(
        insert(queries).values(
            id=handle,
            name=wanted.name,
            name_key=None if wanted.name is None else wanted.name.lower(),
            sql=wanted.sql,
            stream_id=wanted.stream_id,
            clause_id=_hold_clause(tx, seq, wanted),
            eager=wanted.eager,
            seq=seq,
            registered_at=micros_now(),
        )
    )
    return handle


def register_together(catalog: Catalog, wanted: Sequence[Registration]) -> list[str | Exception]:
    """Commit registrations that came together in one transaction; one that fails does not stop the others."""
    outcomes: list[str | Exception] = []
    crash_point("register.before_commit")
    with catalog.write() as tx:
        seq = take_seq(tx)
        for one in wanted:
            try:
                with tx.begin_nested():
                    outcomes.append(register(tx, seq, one))
            except Exception as error:
                outcomes.append(error)
        crash_point("register.in_commit")
    crash_point("register.after_commit")
    return outcomes


def unregister(tx: Connection, handle: str) -> None:
    """Remove a query and let go of its clause."""
    row = tx.execute(delete(queries).where(queries.c.id == handle).returning(queries)).first()
    if row is None:
        raise UnknownQuery(f"there is no query '{handle}'", hint="it was unregistered before")
    tx.execute(
        update(clauses)
        .where(clauses.c.id == row.clause_id)
        .values(refs=clauses.c.refs - 1, eager_refs=clauses.c.eager_refs - int(row.eager))
    )
    tx.execute(delete(clauses).where(clauses.c.id == row.clause_id, clauses.c.refs == 0))


def find_query(tx: Connection, handle_or_name: str) -> Registered:
    """The query of that handle or name."""
    key = str(handle_or_name)
    row = tx.execute(_joined().where(or_(queries.c.id == key, queries.c.name_key == key.lower()))).first()
    if row is None:
        known = tx.execute(select(queries.c.name).where(queries.c.name.is_not(None)).limit(1000)).scalars()
        raise UnknownQuery(f"there is no query '{key}'", hint=nearest(key, [str(name) for name in known]))
    return _registered(row)


def list_queries(tx: Connection) -> list[Registered]:
    """All queries, in order of registration."""
    return [_registered(row) for row in tx.execute(_joined().order_by(queries.c.seq, queries.c.id))]


def eager_clauses(tx: Connection, stream_id: int, after: int = -1) -> list[tuple[int, int, Clause]]:
    """The (id, seq, clause) of a stream's live eager clauses that became eager after a commit."""
    rows = tx.execute(
        select(clauses.c.id, clauses.c.seq, clauses.c.text)
        .where(
            clauses.c.stream_id == stream_id,
            clauses.c.eager_refs > 0,
            clauses.c.error.is_(None),
            clauses.c.seq > after,
        )
        .order_by(clauses.c.id)
    )
    return [(row.id, row.seq, load_clause(row.text)) for row in rows]


def last_eager_seq(tx: Connection, stream_id: int) -> int:
    """The commit by which the stream's newest eager clause became one; 0 where there is none."""
    found = tx.execute(
        select(func.max(clauses.c.seq)).where(
            clauses.c.stream_id == stream_id, clauses.c.eager_refs > 0, clauses.c.error.is_(None)
        )
    ).scalar()
    return int(found or 0)


def fail_clauses(tx: Connection, failures: dict[int, str]) -> None:
    """Stop the clauses that raised, and keep their errors."""
    for clause_id, error in failures.items():
        tx.execute(update(clauses).where(clauses.c.id == clause_id, clauses.c.error.is_(None)).values(error=error))


@dataclass(frozen=True, slots=True)
class QueryRunRecord:
    """Where the compiled Query SteM of a stream is, and up to which commit it goes."""

    seq: int
    path: str | None
    clauses: int


def compiled_queries(tx: Connection, stream_id: int) -> QueryRunRecord:
    """The stream's newest compiled query run; with no path where it has no eager query."""
    row = tx.execute(select(query_runs).where(query_runs.c.stream_id == stream_id)).first()
    return QueryRunRecord(0, None, 0) if row is None else QueryRunRecord(row.seq, row.path, row.clauses)


def publish_query_run(tx: Connection, stream_id: int, record: QueryRunRecord) -> None:
    """Make a compiled query run the one that new data are matched against."""
    old = compiled_queries(tx, stream_id)
    if old.path is not None:
        tx.execute(insert(garbage).values(path=old.path, since=micros_now()))
    tx.execute(delete(query_runs).where(query_runs.c.stream_id == stream_id))
    tx.execute(insert(query_runs).values(stream_id=stream_id, seq=record.seq, path=record.path, clauses=record.clauses))


def _hold_clause(tx: Connection, seq: int, wanted: Registration) -> int:
    """The id of the query's clause, made now or shared, with one more reference."""
    text = dump_clause(wanted.clause)
    same = (clauses.c.stream_id == wanted.stream_id, clauses.c.text == text)
    row = tx.execute(select(clauses).where(*same)).first()
    if row is None:
        values: dict[str, Any] = {
            "stream_id": wanted.stream_id,
            "text": text,
            "refs": 1,
            "eager_refs": int(wanted.eager),
            "seq": seq,
        }
        return int(tx.execute(insert(clauses).values(values).returning(clauses.c.id)).scalar_one())
    becomes_eager = wanted.eager and row.eager_refs == 0
    tx.execute(
        update(clauses)
        .where(clauses.c.id == row.id)
        .values(
            refs=row.refs + 1,
            eager_refs=row.eager_refs + int(wanted.eager),
            seq=seq if becomes_eager else row.seq,
        )
    )
    return int(row.id)


def check_free(tx: Connection, name: str) -> None:
    """Raise where a query has that name."""
    if tx.execute(select(queries.c.id).where(queries.c.name_key == name.lower())).first():
        raise DuplicateName(
            f"there is a query named '{name}' already", hint="unregister it first, or take another name"
        )


def _joined() -> Any:
    return select(queries, clauses.c.seq.label("clause_seq"), clauses.c.error, clauses.c.eager_refs).join_from(
        queries, clauses, queries.c.clause_id == clauses.c.id
    )


def _registered(row: Row[Any]) -> Registered:
    return Registered(
        id=row.id,
        name=row.name,
        sql=row.sql,
        stream_id=row.stream_id,
        clause_id=row.clause_id,
        # A lazy query whose clause is matched for another's sake uses what is there.
        eager=row.eager_refs > 0,
        seq=row.seq,
        registered_at=row.registered_at,
        clause_seq=row.clause_seq,
        error=row.error,
    )


def count_queries(tx: Connection) -> tuple[int, int]:
    """How many queries stand, and how many distinct clauses they have."""
    handles = tx.execute(select(func.count()).select_from(queries)).scalar_one()
    distinct = tx.execute(select(func.count()).select_from(clauses)).scalar_one()
    return int(handles), int(distinct)
