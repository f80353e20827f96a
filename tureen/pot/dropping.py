"""Removing what depends on a stream or a table that is dropped."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, delete, insert, select, true

from tureen.errors import DependentStreams
from tureen.pot.catalog import micros_now
from tureen.pot.catalog_tables import garbage, queries, query_inputs, streams
from tureen.pot.clauses import release_clauses
from tureen.pot.join_tables import query_joins
from tureen.pot.template_tables import gone_members, template_heads, template_part_ids, template_parts, templates
from tureen.pot.transaction import Transaction


def drop_queries(tx: Transaction, over: ColumnElement[bool], releasing: ColumnElement[bool] | None = None) -> None:
    """Remove the queries and templates that have an input `over` a relation.

    Their clauses are released, on all their inputs or on those that satisfy `releasing`.
    """
    query_ids = select(query_inputs.c.query_id).where(over)
    joined = query_inputs.join(queries, queries.c.id == query_inputs.c.query_id)
    held = (query_inputs.c.query_id.in_(query_ids), true() if releasing is None else releasing)
    holds = tx.execute(select(query_inputs.c.clause_id, queries.c.eager).select_from(joined).where(*held)).all()
    tx.execute(delete(queries).where(queries.c.id.in_(query_ids)))
    _drop_templates(tx, query_ids)
    # The inputs are deleted after the queries, which are selected from them, and before the clauses that they refer to.
    ids = tx.execute(query_ids).scalars()
    tx.execute(delete(query_inputs).where(query_inputs.c.query_id.in_(ids)))
    tx.execute(delete(query_joins).where(query_joins.c.query_id.in_(ids)))
    release_clauses(tx, [(clause_id, eager) for clause_id, eager in holds if clause_id is not None])


def check_underived(tx: Transaction, relation: str, over: ColumnElement[bool]) -> None:
    """Raise if streams are derived from queries that have an input `over` a relation."""
    query_ids = select(query_inputs.c.query_id).where(over)
    derived = select(streams.c.name).where(streams.c.name_key.is_not(None), streams.c.query_id.in_(query_ids))
    names = tx.execute(derived.order_by(streams.c.id)).scalars()
    if names:
        listed = ", ".join(f"'{name}'" for name in names)
        raise DependentStreams(
            f"{relation} cannot be dropped: {listed} {'is' if len(names) == 1 else 'are'} derived from it",
            hint=f"drop {listed} first",
        )


def _drop_templates(tx: Transaction, template_ids: Any) -> None:
    discard(tx, select(templates.c.path).where(templates.c.id.in_(template_ids)))
    discard(tx, select(template_parts.c.path).where(template_parts.c.template_id.in_(template_ids)))
    for table in (gone_members, template_parts, template_part_ids, template_heads):
        tx.execute(delete(table).where(table.c.template_id.in_(template_ids)))
    tx.execute(delete(templates).where(templates.c.id.in_(template_ids)))


def discard(tx: Transaction, paths: Any) -> None:
    """Add files to the garbage."""
    now = micros_now()
    for path in tx.execute(paths).scalars():
        tx.execute(insert(garbage).values(path=path, since=now))
