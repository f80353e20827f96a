"""Standing queries and their clauses in the catalog.

Queries that differ only in window, select list or name share one clause. Each query has an owner, who alone sees it
unless it is shared; names are each owner's own.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import Connection, Row, and_, bindparam, delete, func, insert, or_, select, tuple_, update

from tureen.errors import DuplicateName, TureenError, UnknownQuery, UnknownStream, nearest
from tureen.pot.catalog import micros_now
from tureen.pot.clauses import hold_clause, let_go_of_clause
from tureen.pot.prepared import Prepared
from tureen.pot.tables import clauses, queries, standing, streams, templates
from tureen.predicate import Clause

_SEQ = re.compile(r"[0-9]{1,18}")
_HANDLE = re.compile(r"[0-9a-f]{32}")

LOCAL = "local"
"""Who owns what is registered without a service."""


@dataclass(frozen=True, slots=True)
class Registration:
    """A query that is about to stand."""

    sql: str
    shape: str
    stream_id: int
    clause: Clause
    eager: bool | None = None
    """Whether its results are to be kept ready; None leaves it to the engine."""
    name: str | None = None
    owner: str = LOCAL


@dataclass(frozen=True, slots=True)
class Registered:
    """A standing query as the catalog has it."""

    id: str
    name: str | None
    sql: str
    shape: str
    stream_id: int
    seq: int
    registered_at: int
    owner: str
    shared: bool = False
    wanted: bool | None = False
    """What was asked for at its registration: results kept ready, or not, or as the engine sees fit."""
    clause_id: int = 0
    number: int | None = None
    """Its clause's number in cells, while the clause is eager."""
    clause_seq: int = 0
    """The commit by which its clause became eager."""
    error: str | None = None

    @property
    def place(self) -> str:
        """Where it stands in the order of registration: what a listing goes on from."""
        return f"{self.seq:015d}.{self.id}"

    @property
    def state(self) -> str:
        """Either "standing", or "failed" once it raised on some tuple."""
        return "standing" if self.error is None else "failed"


def register(tx: Connection, seq: int, wanted: Registration, alive: set[int] | None = None) -> str:
    """Add a query and return its handle; what it owes follows from its seq.

    `alive` has the streams that are known to live, in this transaction, and gets one more.
    """
    handle = uuid.uuid4().hex
    alive = set() if alive is None else alive
    if wanted.stream_id not in alive and _STREAM.run(tx, stream=wanted.stream_id).fetchone() is None:
        raise UnknownStream("the stream of this query was dropped")
    alive.add(wanted.stream_id)
    if wanted.name is not None:
        check_free(tx, wanted.owner, wanted.name)
    _ADD.run(
        tx,
        id=handle,
        owner=wanted.owner,
        shared=False,
        name=wanted.name,
        name_key=None if wanted.name is None else wanted.name.lower(),
        sql=wanted.sql,
        shape=wanted.shape,
        stream_id=wanted.stream_id,
        clause_id=hold_clause(tx, seq, wanted.stream_id, wanted.clause, wanted.eager),
        eager=wanted.eager,
        seq=seq,
        registered_at=micros_now(),
    )
    return handle


_STREAM = Prepared(select(streams.c.id).where(streams.c.id == bindparam("stream"), streams.c.name_key.is_not(None)))
_ADD = Prepared(insert(queries))
_VERSION = select(standing.c.version)
_REMOVE = Prepared(
    delete(queries)
    .where(queries.c.id == bindparam("handle"), or_(bindparam("anyone"), queries.c.owner == bindparam("whose")))
    .returning(queries.c.clause_id, queries.c.eager)
)


def unregister(tx: Connection, handle: str, owner: str | None = None) -> None:
    """Remove a query, of that owner if one is given, and let go of its clause."""
    row = _REMOVE.run(tx, handle=handle, anyone=owner is None, whose=owner or "").fetchone()
    if row is None:
        raise UnknownQuery(f"there is no query '{handle}'", hint="it was unregistered before")
    clause_id, eager = row
    let_go_of_clause(tx, clause_id, None if eager is None else bool(eager))


def share(tx: Connection, handle: str, shared: bool, owner: str | None = None) -> None:
    """Let others see a query, or no longer."""
    mine = queries.c.id == handle if owner is None else and_(queries.c.id == handle, queries.c.owner == owner)
    if tx.execute(update(queries).where(mine).values(shared=shared)).rowcount == 0:
        raise UnknownQuery(f"there is no query '{handle}'")


def find_query(tx: Connection, handle_or_name: str, owner: str | None = None) -> Registered:
    """The query of that handle, or of that name of its owner; others' only by handle, and where they are shared."""
    key = str(handle_or_name)
    # The statement of every invocation after a commit, made once: making it takes longer than running it.
    row = tx.execute(_by_handle(), {"handle": key}).first()
    if row is not None and (owner is None or row.owner == owner or row.shared):
        return _registered(row)
    whose = LOCAL if owner is None else owner
    by_handle = queries.c.id == key
    if owner is not None:
        by_handle &= or_(queries.c.owner == owner, queries.c.shared)
    by_name = and_(queries.c.owner == whose, queries.c.name_key == key.lower())
    row = tx.execute(_joined().where(or_(by_handle, by_name))).first()
    if row is None and _HANDLE.fullmatch(key):
        raise UnknownQuery(f"there is no query '{key}'", hint="it may have been unregistered")
    if row is None:
        mine = (queries.c.name.is_not(None), queries.c.owner == whose)
        known = tx.execute(select(queries.c.name).where(*mine).limit(1000)).scalars()
        raise UnknownQuery(f"there is no query '{key}'", hint=nearest(key, [str(name) for name in known]))
    return _registered(row)


def standing_version(tx: Connection) -> int:
    """A number that goes up whenever a query that stands is changed or goes."""
    return int(tx.execute(_VERSION).scalar_one())


def list_queries(
    tx: Connection, owner: str | None = None, after: str | None = None, limit: int | None = None
) -> list[Registered]:
    """Queries in order of registration: all or an owner's, from a `place` on, so many at most."""
    found = _joined().order_by(queries.c.seq, queries.c.id)
    if owner is not None:
        found = found.where(queries.c.owner == owner)
    if after is not None:
        seq, _, handle = after.partition(".")
        if not _SEQ.fullmatch(seq) or not handle:
            raise TureenError(f"'{after}' is no place in a list of queries", hint="take the one that a list gave")
        found = found.where(tuple_(queries.c.seq, queries.c.id) > tuple_(int(seq), handle))
    return [_registered(row) for row in tx.execute(found if limit is None else found.limit(limit))]


def count_shape(tx: Connection, shape: str) -> int:
    """How many queries of that shape were registered one by one."""
    return int(tx.execute(select(func.count()).where(queries.c.shape == shape)).scalar_one())


def check_free(tx: Connection, owner: str, name: str) -> None:
    """Raise where a query or a template of that owner has that name."""
    for table, what in ((queries, "query"), (templates, "template")):
        same = (table.c.owner == owner, table.c.name_key == name.lower())
        if tx.execute(select(table.c.id).where(*same)).first():
            raise DuplicateName(
                f"there is a {what} named '{name}' already", hint="unregister it first, or take another name"
            )


def _joined() -> Any:
    return select(queries, clauses.c.seq.label("clause_seq"), clauses.c.error, clauses.c.number).join_from(
        queries, clauses, queries.c.clause_id == clauses.c.id
    )


@cache
def _by_handle() -> Any:
    return _joined().where(queries.c.id == bindparam("handle"))


def _registered(row: Row[Any]) -> Registered:
    return Registered(
        id=row.id,
        name=row.name,
        sql=row.sql,
        shape=row.shape,
        stream_id=row.stream_id,
        seq=row.seq,
        registered_at=row.registered_at,
        owner=row.owner,
        shared=row.shared,
        wanted=row.eager,
        clause_id=row.clause_id,
        # A lazy query whose clause is matched for another's sake uses what is there.
        number=row.number,
        clause_seq=row.clause_seq,
        # Who did not ask for results at arrival is answered from the index, whatever became of those.
        error=row.error if row.eager else None,
    )


def count_queries(tx: Connection) -> tuple[int, int]:
    """How many queries stand, and how many distinct clauses they have."""
    handles = tx.execute(select(func.count()).select_from(queries)).scalar_one()
    distinct = tx.execute(select(func.count()).select_from(clauses)).scalar_one()
    return int(handles), int(distinct)
