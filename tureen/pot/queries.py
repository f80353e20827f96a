"""Standing queries in the catalog: their texts, owners and inputs.

Queries that differ only in window, select list or name share one clause. Each query has an owner, who alone sees it
unless it is shared; a name is unique among the queries and templates of its owner.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from sqlalchemy import and_, bindparam, func, or_, select, tuple_, update

from tureen.errors import DuplicateName, TureenError, UnknownQuery, nearest
from tureen.handle import is_handle, new_handle
from tureen.plan_hint import PlanHint
from tureen.pot.bulk_statements import BulkStatement
from tureen.pot.catalog import micros_now
from tureen.pot.catalog_tables import clauses, queries, query_inputs, standing
from tureen.pot.clauses import ClauseReference, hold_clauses
from tureen.pot.join_tables import query_joins
from tureen.pot.kept_joins import hold_joins
from tureen.pot.registered import DERIVED, LOCAL, Registered, RegisteredInput, Registration, Unregistration
from tureen.pot.statements import Prepared
from tureen.pot.transaction import Transaction
from tureen.predicate import dump_clause
from tureen.query import RelationKind
from tureen.schema import name_key

_SEQ = re.compile(r"[0-9]{1,18}")


def add_queries(tx: Transaction, seq: int, registrations: Sequence[Registration]) -> list[str]:
    """Add queries and return their handles; what they owe follows from their seq."""
    now = micros_now()
    handles = [new_handle() for _ in registrations]
    texts = [[dump_clause(entry.clause) for entry in registration.inputs] for registration in registrations]
    references = [
        ClauseReference(entry.stream_id, text, registration.eager)
        for registration, input_texts in zip(registrations, texts, strict=True)
        for entry, text in zip(registration.inputs, input_texts, strict=True)
        if entry.stream_id is not None
    ]
    hold_clauses(tx, seq, references)
    _ADD.run(
        tx,
        [
            (
                *(handle, new.owner, False, new.name, new.name_key, new.sql, new.shape, new.language, new.eager),
                *(*new.plan_hint, seq, now),
            )
            for handle, new in zip(handles, registrations, strict=True)
        ],
    )
    _ADD_INPUTS.run(
        tx,
        [
            (handle, number, entry.kind.value, entry.stream_id, entry.table_id, text, entry.needs)
            for handle, registration, input_texts in zip(handles, registrations, texts, strict=True)
            for number, (entry, text) in enumerate(zip(registration.inputs, input_texts, strict=True))
        ],
    )
    joins = [(handle, new.join, new.eager) for handle, new in zip(handles, registrations, strict=True)]
    hold_joins(tx, [(handle, join, eager) for handle, join, eager in joins if join is not None and eager is not False])
    return handles


_ADD = BulkStatement(
    """
    INSERT INTO queries (id, owner, shared, name, name_key, sql, shape, language, eager, plan, jit, seq, registered_at)
    VALUES {rows}
    """,
    width=13,
)
_ADD_INPUTS = BulkStatement(
    """
    WITH new (query_id, number, kind, stream_id, table_id, clause, needs) AS (VALUES {rows})
    INSERT INTO query_inputs (query_id, number, kind, stream_id, table_id, clause_id, needs)
    SELECT query_id, number, kind, stream_id, table_id,
        (SELECT id FROM clauses WHERE clauses.stream_id = new.stream_id AND clauses.text = new.clause),
        needs
    FROM new
    """,
    width=7,
)
_FIND = BulkStatement(
    """
    WITH leaving (change, handle, owner) AS (VALUES {rows})
    SELECT json_group_array(json_array(change, id, clause_id, eager))
    FROM leaving JOIN queries ON id = handle JOIN query_inputs ON query_id = id
    WHERE (leaving.owner IS NULL OR leaving.owner = queries.owner) AND queries.owner <> '$derived'
    """,
    width=3,
)
_REMOVE = BulkStatement("DELETE FROM queries WHERE id IN (VALUES {rows})", width=1)
_REMOVE_INPUTS = BulkStatement("DELETE FROM query_inputs WHERE query_id IN (VALUES {rows})", width=1)
_REMOVE_JOINS = BulkStatement("DELETE FROM query_joins WHERE query_id IN (VALUES {rows})", width=1)
_VERSION = Prepared(select(standing.c.version))

ClauseHold = tuple[int, bool | None]
"""A clause's id, and whether a query that refers to it has it eager."""


def remove_queries(tx: Transaction, leaving: Mapping[int, Unregistration]) -> dict[int, list[ClauseHold]]:
    """Remove queries; returns the clauses to release for each that existed, by the number of the change.

    Of several changes that remove the same query, the first does.
    """
    rows = _FIND.read(tx, [(change, query.handle, query.owner) for change, query in leaving.items()])
    first: dict[str, int] = {}
    for change, handle, _, _ in sorted(rows, key=lambda row: row[0]):
        first.setdefault(handle, change)
    _REMOVE.run(tx, [(handle,) for handle in first])
    _REMOVE_INPUTS.run(tx, [(handle,) for handle in first])
    _REMOVE_JOINS.run(tx, [(handle,) for handle in first])
    removed: dict[int, list[ClauseHold]] = {change: [] for change in first.values()}
    for change, handle, clause_id, eager in rows:
        if first[handle] == change and clause_id is not None:
            removed[change].append((clause_id, None if eager is None else bool(eager)))
    return removed


def unknown(handle: str) -> UnknownQuery:
    """The error for a handle that no query has."""
    return UnknownQuery(f"there is no query '{handle}'", hint="it was unregistered before")


def share(tx: Transaction, handle: str, shared: bool, owner: str | None = None) -> None:
    """Make a query visible to others, or private again."""
    of_owner = queries.c.owner != DERIVED if owner is None else queries.c.owner == owner
    condition = and_(queries.c.id == handle, of_owner)
    if tx.execute(update(queries).where(condition).values(shared=shared)).rowcount == 0:
        raise UnknownQuery(f"there is no query '{handle}'")


def find_query(tx: Transaction, handle_or_name: str, owner: str | None = None) -> Registered:
    """The query of a handle, or of a name of its owner; others' only by handle, and if they are shared."""
    key = str(handle_or_name)
    query = next(_grouped(tx.execute(_BY_HANDLE, {"handle": key})), None)
    if query is not None and (owner is None or query.owner == owner or query.shared):
        return query
    name_owner = LOCAL if owner is None else owner
    by_handle = queries.c.id == key
    if owner is not None:
        by_handle &= or_(queries.c.owner == owner, queries.c.shared)
    by_name = and_(queries.c.owner == name_owner, queries.c.name_key == name_key(key))
    query = next(_grouped(tx.execute(_with_inputs(select(queries).where(or_(by_handle, by_name))))), None)
    if query is not None:
        return query
    if is_handle(key):
        raise UnknownQuery(f"there is no query '{key}'", hint="it may have been unregistered")
    of_owner = (queries.c.name.is_not(None), queries.c.owner == name_owner)
    names = tx.execute(select(queries.c.name).where(*of_owner).limit(1000)).scalars()
    raise UnknownQuery(f"there is no query '{key}'", hint=nearest(key, [str(name) for name in names]))


def standing_version(tx: Transaction) -> int:
    """A number that increases whenever a standing query is changed or unregistered."""
    return int(tx.execute(_VERSION).scalar_one())


def last_registration(tx: Transaction) -> int:
    """The commit by which the newest of the standing queries was registered; 0 without any."""
    return int(tx.execute(select(func.max(queries.c.seq))).scalar_one() or 0)


def texts_of_joins(tx: Transaction) -> dict[str, tuple[str, str]]:
    """For each shape of queries over several streams and tables, the text of one of them and its language."""
    several = select(query_inputs.c.query_id).where(query_inputs.c.number == 1)
    columns = queries.c.shape, func.min(queries.c.sql), func.min(queries.c.language)
    texts = select(*columns).where(queries.c.id.in_(several))
    return {row[0]: (row[1], row[2]) for row in tx.execute(texts.group_by(queries.c.shape))}


def list_queries(
    tx: Transaction,
    owner: str | None = None,
    after: str | None = None,
    limit: int | None = None,
    *,
    with_shared: bool = False,
    search: str | None = None,
    failed: bool = False,
) -> list[Registered]:
    """Queries in order of registration, after a cursor, at most `limit`.

    All, or an owner's; `with_shared` adds what others share with that owner. With `search`, those whose name, SQL or
    handle contains a text, ignoring case; with `failed`, those that were stopped by an error.
    """
    page = select(queries).where(queries.c.owner != DERIVED).order_by(queries.c.seq, queries.c.id)
    if owner is not None:
        visible = queries.c.owner == owner
        page = page.where(or_(visible, queries.c.shared) if with_shared else visible)
    if search is not None:
        texts = (queries.c.name, queries.c.sql, queries.c.id)
        page = page.where(or_(*(text.icontains(search, autoescape=True) for text in texts)))
    if failed:
        inputs = select(query_inputs.c.query_id).join(clauses, clauses.c.id == query_inputs.c.clause_id)
        page = page.where(queries.c.id.in_(inputs.where(clauses.c.error.is_not(None))))
    if after is not None:
        seq, _, handle = after.partition(".")
        if not _SEQ.fullmatch(seq) or not handle:
            raise TureenError(
                f"'{after}' is not a cursor of a list of queries", hint="use the one that a list returned"
            )
        page = page.where(tuple_(queries.c.seq, queries.c.id) > tuple_(int(seq), handle))
    return list(_grouped(tx.execute(_with_inputs(page if limit is None else page.limit(limit)))))


def count_shape(tx: Transaction, shape: str) -> int:
    """The number of queries of a shape that were registered one by one."""
    return int(tx.execute(select(func.count()).where(queries.c.shape == shape)).scalar_one())


def check_free(tx: Transaction, owner: str, name: str) -> None:
    """Raise if a query or a template of that owner has that name."""
    for holder in names_taken(tx, [(owner, name)]).values():
        raise name_taken(holder, name)


def names_taken(tx: Transaction, names: Sequence[tuple[str, str]]) -> dict[int, str]:
    """Which of some owners' names are taken, by their index, and whether by a "query" or a "template"."""
    return dict(_TAKEN.read(tx, [(index, owner, name_key(name)) for index, (owner, name) in enumerate(names)]))


def name_taken(holder: str, name: str) -> DuplicateName:
    """The error for a name that a query or a template has."""
    return DuplicateName(f"there is a {holder} named '{name}' already", hint="unregister it first, or use another name")


_TAKEN = BulkStatement(
    """
    WITH candidates (number, owner, name_key) AS (VALUES {rows}), taken (number, holder) AS (
        SELECT number, 'template' FROM candidates JOIN templates USING (owner, name_key)
        UNION ALL SELECT number, 'query' FROM candidates JOIN queries USING (owner, name_key)
    )
    SELECT json_group_array(json_array(number, holder)) FROM taken
    """,
    width=3,
)


def _with_inputs(selected: Any) -> Any:
    """Queries with one row for each of their inputs, in order."""
    query = selected.subquery()
    state = (clauses.c.seq.label("clause_seq"), clauses.c.error, clauses.c.number)
    entry = query_inputs.c
    join = query_joins.c.join_id
    return (
        select(query, entry.kind, entry.stream_id, entry.table_id, entry.clause_id, join, *state)
        .select_from(query)
        .outerjoin(query_joins, query_joins.c.query_id == query.c.id)
        .join(query_inputs, entry.query_id == query.c.id)
        .outerjoin(clauses, clauses.c.id == entry.clause_id)
        .order_by(query.c.seq, query.c.id, entry.number)
    )


_BY_HANDLE = Prepared(_with_inputs(select(queries).where(queries.c.id == bindparam("handle"))))


def _grouped(rows: Iterable[Any]) -> Iterator[Registered]:
    """Queries from their inputs' rows."""
    for _, group in groupby(rows, key=lambda row: row.id):
        yield _registered(list(group))


def _registered(rows: Sequence[Any]) -> Registered:
    row = rows[0]
    return Registered(
        id=row.id,
        name=row.name,
        sql=row.sql,
        shape=row.shape,
        inputs=tuple(_registered_input(input_row) for input_row in rows),
        seq=row.seq,
        registered_at=row.registered_at,
        owner=row.owner,
        shared=row.shared,
        eager=row.eager,
        # A query that did not ask for results at arrival is answered from the index, whether its clause failed or not.
        error=next((input_row.error for input_row in rows if input_row.error is not None), None) if row.eager else None,
        language=row.language,
        join_id=row.join_id,
        plan_hint=PlanHint(row.plan, row.jit),
    )


def _registered_input(row: Any) -> RegisteredInput:
    # A lazy query whose clause is eager for another query uses its cells.
    return RegisteredInput(
        RelationKind(row.kind), row.stream_id, row.table_id, row.clause_id, row.number, row.clause_seq or 0
    )


_STANDING = Prepared(select(func.count()).where(queries.c.owner != DERIVED))
_DISTINCT = Prepared(select(func.count()).select_from(clauses))


def count_queries(tx: Transaction) -> tuple[int, int]:
    """The number of standing queries, and of distinct clauses that they have."""
    return int(tx.execute(_STANDING).scalar_one()), int(tx.execute(_DISTINCT).scalar_one())
