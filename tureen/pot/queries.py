"""Standing queries and their clauses in the catalog.

Queries that differ only in window, select list or name share one clause. Each query has an owner, who alone sees it
unless it is shared; names are each owner's own.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import Connection, Row, and_, bindparam, func, or_, select, tuple_, update

from tureen.errors import DuplicateName, TureenError, UnknownQuery, nearest
from tureen.language.templates.member import MemberValues
from tureen.pot.bulk_statements import Many
from tureen.pot.catalog import micros_now
from tureen.pot.catalog_tables import clauses, queries, standing
from tureen.pot.clauses import Reference, hold_clauses
from tureen.predicate import Clause, dump_clause
from tureen.schema import name_key

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

    @property
    def name_key(self) -> str | None:
        """What must be one query's alone, for an owner."""
        return None if self.name is None else name_key(self.name)


@dataclass(frozen=True, slots=True)
class Gone:
    """A query that is to stand no longer: its handle, and whose it must be if that matters."""

    handle: str
    owner: str | None = None


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
    label: str | int | None = None
    """What comes with its changes, where it is a query of a template that has labels."""
    values: MemberValues | None = None
    """The values that make it, where it is a query of a template."""

    @property
    def place(self) -> str:
        """Where it stands in the order of registration: what a listing goes on from."""
        return f"{self.seq:015d}.{self.id}"

    @property
    def state(self) -> str:
        """Either "standing", or "failed" once it raised on some tuple."""
        return "standing" if self.error is None else "failed"


def add_queries(tx: Connection, seq: int, wanted: Sequence[Registration]) -> list[str]:
    """Add queries and return their handles; what they owe follows from their seq."""
    now = micros_now()
    handles = [uuid.uuid4().hex for _ in wanted]
    texts = [dump_clause(one.clause) for one in wanted]
    hold_clauses(tx, seq, [Reference(one.stream_id, text, one.eager) for one, text in zip(wanted, texts, strict=True)])
    rows = [
        (handle, one.owner, one.name, one.name_key, one.sql, one.shape, one.stream_id, text, one.eager, seq, now)
        for handle, one, text in zip(handles, wanted, texts, strict=True)
    ]
    _ADD.run(tx, rows)
    return handles


_ADD = Many(
    """
    WITH wanted (id, owner, name, name_key, sql, shape, stream_id, clause, eager, seq, registered_at) AS (VALUES {rows})
    INSERT INTO queries
        (id, owner, shared, name, name_key, sql, shape, stream_id, clause_id, eager, seq, registered_at)
    SELECT id, owner, FALSE, name, name_key, sql, shape, stream_id,
        (SELECT id FROM clauses WHERE clauses.stream_id = wanted.stream_id AND clauses.text = wanted.clause),
        eager, seq, registered_at
    FROM wanted
    """,
    width=11,
)
_FIND = Many(
    """
    WITH wanted (place, handle, owner) AS (VALUES {rows})
    SELECT json_group_array(json_array(place, id, clause_id, eager)) FROM wanted JOIN queries ON id = handle
    WHERE wanted.owner IS NULL OR wanted.owner = queries.owner
    """,
    width=3,
)
_REMOVE = Many("DELETE FROM queries WHERE id IN (VALUES {rows})", width=1)
_VERSION = select(standing.c.version)


def remove_queries(tx: Connection, going: Mapping[int, Gone]) -> dict[int, tuple[int, bool | None]]:
    """Remove queries; for each that was there, by its place, its clause and whether it had it eager, to be let go of.

    Of those who ask for the same query, the first removes it.
    """
    found = sorted(_FIND.read(tx, [(place, one.handle, one.owner) for place, one in going.items()]), reverse=True)
    first = {handle: (place, clause_id, eager) for place, handle, clause_id, eager in found}
    _REMOVE.run(tx, [(handle,) for handle in first])
    return {place: (clause_id, None if eager is None else bool(eager)) for place, clause_id, eager in first.values()}


def unknown(handle: str) -> UnknownQuery:
    """The error for a handle of which no query stands."""
    return UnknownQuery(f"there is no query '{handle}'", hint="it was unregistered before")


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
    by_name = and_(queries.c.owner == whose, queries.c.name_key == name_key(key))
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
    tx: Connection,
    owner: str | None = None,
    after: str | None = None,
    limit: int | None = None,
    *,
    with_shared: bool = False,
) -> list[Registered]:
    """Queries in order of registration, from a `place` on, so many at most.

    All, or an owner's; `with_shared` has also what others share with that owner.
    """
    found = _joined().order_by(queries.c.seq, queries.c.id)
    if owner is not None:
        visible = queries.c.owner == owner
        found = found.where(or_(visible, queries.c.shared) if with_shared else visible)
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
    for what in names_taken(tx, [(owner, name)]).values():
        raise name_taken(what, name)


def names_taken(tx: Connection, wanted: Sequence[tuple[str, str]]) -> dict[int, str]:
    """Which of some owners' names are taken, by their places, and whether by a "query" or a "template"."""
    return dict(_TAKEN.read(tx, [(place, owner, name_key(name)) for place, (owner, name) in enumerate(wanted)]))


def name_taken(what: str, name: str) -> DuplicateName:
    """The error for a name that a query or a template has."""
    return DuplicateName(f"there is a {what} named '{name}' already", hint="unregister it first, or take another name")


_TAKEN = Many(
    """
    WITH wanted (place, owner, name_key) AS (VALUES {rows}), taken (place, what) AS (
        SELECT place, 'template' FROM wanted JOIN templates USING (owner, name_key)
        UNION ALL SELECT place, 'query' FROM wanted JOIN queries USING (owner, name_key)
    )
    SELECT json_group_array(json_array(place, what)) FROM taken
    """,
    width=3,
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
