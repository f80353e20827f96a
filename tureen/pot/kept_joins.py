"""Kept joins in the catalog: which joins queries contain, and the join runs with their results.

The results of a join up to a tuple id of each of its streams are in its join runs; the others are *owed*, and computed
when a query is invoked. A query refers to its join, unless it is to be evaluated when it is invoked; a join that no
query refers to is dropped.

Queries with plans also have the sub-joins of their joins kept (`tureen.join_parts`). These are joins like any other.
That they are needed follows from the plans, and is not stored.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, exists, func, insert, or_, select, update
from sqlalchemy.dialects.sqlite import insert as insert_or

from tureen.errors import PotError
from tureen.join_parts import sub_joins_of
from tureen.plan_hint import BUSHY, LEFT_DEEP
from tureen.pot.catalog import micros_now
from tureen.pot.catalog_tables import garbage, queries
from tureen.pot.join_tables import join_runs, joins, query_joins
from tureen.pot.transaction import Transaction
from tureen.query import Query
from tureen.stream_join import StreamJoin, is_within, stream_join_of

Ids = tuple[int, ...]
"""A tuple id for each stream of a join."""


@dataclass(frozen=True, slots=True)
class NewJoin:
    """The join of a query that is being registered; see `tureen.stream_join`."""

    key: str
    streams: int
    reach: int | None


@dataclass(frozen=True, slots=True)
class JoinRun:
    """A join run as the catalog has it."""

    id: int
    path: str
    rows: int
    bytes: int
    last_ids: Ids


@dataclass(frozen=True, slots=True)
class NewJoinRun:
    """A finished file of a join run that is about to be committed."""

    path: str
    rows: int
    bytes: int
    last_ids: Ids


@dataclass(frozen=True, slots=True)
class KeptJoin:
    """A join whose results are kept, or are to be kept."""

    id: int
    key: str
    progress: Ids
    """The tuples with smaller ids are joined; all others are owed."""
    reach: int | None
    refused: str | None
    runs: tuple[JoinRun, ...]
    """The oldest first."""


def new_join(query: Query, stream_ids: Sequence[int | None]) -> NewJoin | None:
    """The join of a query that is being registered; `stream_ids` has an entry for each of its leaves."""
    part = stream_join_of(query, stream_ids) if query.joins else None
    return None if part is None else NewJoin(part.join.key, len(part.inputs), part.reach)


def hold_joins(tx: Transaction, new: Sequence[tuple[str, NewJoin, bool | None]]) -> None:
    """Let queries, given by their handles, refer to their joins; `eager` is that of the query."""
    for handle, join, eager in new:
        progress = json.dumps([0] * join.streams)
        values = {"key": join.key, "progress": progress, "reach": join.reach, "chosen": False}
        tx.execute(insert_or(joins).values(values).on_conflict_do_nothing())
        join_id = tx.execute(select(joins.c.id).where(joins.c.key == join.key)).scalar_one()
        tx.execute(insert(query_joins).values(query_id=handle, join_id=join_id, eager=eager, reach=join.reach))


def find_join(tx: Transaction, join_id: int) -> KeptJoin | None:
    """A join, if it still exists."""
    row = tx.execute(select(joins).where(joins.c.id == join_id)).first()
    return None if row is None else _kept(tx, row)


_ASKED = exists().where(
    query_joins.c.join_id == joins.c.id, or_(query_joins.c.eager, joins.c.chosen & query_joins.c.eager.is_(None))
)
"""Whether results are to be kept: some query asks for it, or the engine has chosen it."""


_TO_KEEP = select(joins).where(_ASKED, joins.c.refused.is_(None)).order_by(joins.c.id)

_PLANNED = (
    select(joins.c.key, queries.c.plan, query_joins.c.reach)
    .where(
        query_joins.c.join_id == joins.c.id,
        queries.c.id == query_joins.c.query_id,
        query_joins.c.eager,
        joins.c.refused.is_(None),
        queries.c.plan.in_((LEFT_DEEP, BUSHY)),
    )
    .order_by(joins.c.id, query_joins.c.query_id)
)
"""The joins of queries that ask for a plan and for kept results."""


@dataclass(frozen=True, slots=True)
class PlannedJoins:
    """The joins that queries have plans for, by key, and the sub-joins that are kept for them."""

    plans: Mapping[str, str]
    """The plan of each, sub-joins included."""
    reaches: Mapping[str, int | None]
    """How far the tuples of each sub-join may be apart."""


def planned_joins(tx: Transaction) -> PlannedJoins:
    """The plans of queries whose results are to be kept."""
    plans: dict[str, str] = {}
    reaches: dict[str, int | None] = {}
    for key, plan, reach in tx.execute(_PLANNED):
        # Of several plans, the first one is used.
        chosen = plans.setdefault(key, plan)
        for part in sub_joins_of(StreamJoin.of_key(key), chosen):
            plans.setdefault(part.key, chosen)
            reaches[part.key] = reach if is_within(reaches.get(part.key, 0), reach) else reaches[part.key]
    return PlannedJoins(plans, reaches)


def add_sub_joins(tx: Transaction, planned: PlannedJoins) -> bool:
    """Add the sub-joins that are not known yet; whether there are any."""
    known = set(tx.execute(select(joins.c.key).where(joins.c.key.in_(planned.reaches))).scalars())
    for key in planned.reaches.keys() - known:
        progress = json.dumps([0] * len(StreamJoin.of_key(key).streams))
        values = {"key": key, "progress": progress, "reach": planned.reaches[key], "chosen": False}
        tx.execute(insert_or(joins).values(values).on_conflict_do_nothing())
    return bool(planned.reaches.keys() - known)


def joins_to_keep(tx: Transaction) -> list[KeptJoin]:
    """The joins whose results are to be kept; sub-joins before the joins that are made from them."""
    planned = planned_joins(tx).reaches
    statement = _TO_KEEP
    if planned:
        asked = or_(_ASKED, joins.c.key.in_(planned))
        statement = select(joins).where(asked, joins.c.refused.is_(None)).order_by(joins.c.id)
    return sorted((_kept(tx, row) for row in tx.execute(statement).all()), key=lambda join: len(join.progress))


def joins_no_longer_kept(tx: Transaction) -> list[KeptJoin]:
    """The joins that have results which are not to be kept."""
    others = joins.c.key.not_in(planned_joins(tx).reaches)
    rows = tx.execute(select(joins).where(~_ASKED, others).order_by(joins.c.id)).all()
    return [join for join in (_kept(tx, row) for row in rows) if any(join.progress)]


def choosable_joins(tx: Transaction) -> dict[int, bool]:
    """The joins of queries that leave it to the engine whether results are kept, and whether it has chosen them."""
    asks = exists().where(query_joins.c.join_id == joins.c.id, query_joins.c.eager.is_(None))
    rows = tx.execute(select(joins.c.id, joins.c.chosen).where(asks, joins.c.refused.is_(None)))
    return {row.id: row.chosen for row in rows}


def choose_joins(tx: Transaction, chosen: Collection[int], dropped: Collection[int]) -> None:
    """Choose joins whose results are to be kept, and others whose results are not."""
    for ids, value in ((chosen, True), (dropped, False)):
        tx.execute(update(joins).where(joins.c.id.in_(ids)).values(chosen=value))


def find_join_by_key(tx: Transaction, key: str) -> KeptJoin | None:
    """A join by its key, if there is one."""
    row = tx.execute(select(joins).where(joins.c.key == key)).first()
    return None if row is None else _kept(tx, row)


def needed_reach(tx: Transaction, join: KeptJoin, planned: PlannedJoins) -> int | None:
    """The greatest reach of the queries and plans that refer to a join; None if one has no limit."""
    reaches = list(tx.execute(select(query_joins.c.reach).where(query_joins.c.join_id == join.id)).scalars())
    reaches += [planned.reaches[join.key]] if join.key in planned.reaches else []
    return None if None in reaches or not reaches else max(reaches)


def publish_join_runs(
    tx: Transaction, join: KeptJoin, progress: Ids, new: Sequence[NewJoinRun], absorbed: Sequence[JoinRun]
) -> None:
    """Advance the progress of a join, with runs of the new results, which also have those of the absorbed runs.

    Raises if the progress or one of these runs has changed in the meantime.
    """
    same = (joins.c.id == join.id, joins.c.progress == json.dumps(join.progress))
    if tx.execute(update(joins).where(*same).values(progress=json.dumps(progress))).rowcount == 0:
        raise PotError("another process has advanced the join meanwhile")
    drop_join_runs(tx, absorbed)
    for run in new:
        values = {"path": run.path, "rows": run.rows, "bytes": run.bytes, "last_ids": json.dumps(run.last_ids)}
        tx.execute(insert(join_runs).values(join_id=join.id, **values))


def drop_join_runs(tx: Transaction, runs: Sequence[JoinRun]) -> None:
    """Drop join runs; raises if one of them was dropped in the meantime."""
    deleted = tx.execute(delete(join_runs).where(join_runs.c.id.in_([run.id for run in runs])))
    if deleted.rowcount != len(runs):
        raise PotError("a join run was replaced or dropped meanwhile")
    now = micros_now()
    for run in runs:
        tx.execute(insert(garbage).values(path=run.path, since=now))


def restart_join(tx: Transaction, join: KeptJoin, reach: int | None, refused: str | None = None) -> None:
    """Drop all results of a join, to compute them again with another reach, or not to keep them for a reason."""
    drop_join_runs(tx, _runs(tx, join.id))
    progress = json.dumps([0] * len(join.progress))
    tx.execute(update(joins).where(joins.c.id == join.id).values(progress=progress, reach=reach, refused=refused))


def damaged_joins(tx: Transaction, paths: Collection[str]) -> list[KeptJoin]:
    """The joins with a run among damaged files."""
    ids = select(join_runs.c.join_id).where(join_runs.c.path.in_(paths))
    return [_kept(tx, row) for row in tx.execute(select(joins).where(joins.c.id.in_(ids))).all()]


def unused_joins(tx: Transaction) -> list[int]:
    """The joins that no query refers to, and no plan."""
    used = exists().where(query_joins.c.join_id == joins.c.id)
    others = joins.c.key.not_in(planned_joins(tx).reaches)
    return list(tx.execute(select(joins.c.id).where(~used, others)).scalars())


def drop_unused_joins(tx: Transaction) -> None:
    """Drop the joins that no query refers to, with their results."""
    unused = unused_joins(tx)
    for join_id in unused:
        drop_join_runs(tx, _runs(tx, join_id))
    tx.execute(delete(joins).where(joins.c.id.in_(unused)))


_SIZES = select(func.sum(join_runs.c.rows), func.sum(join_runs.c.bytes))


def join_status(tx: Transaction) -> dict[str, int]:
    """The joins whose results are kept: their number, and the rows and bytes of their runs."""
    rows, size = tx.execute(_SIZES).one()
    return {"joins": len(joins_to_keep(tx)), "rows": int(rows or 0), "bytes": int(size or 0)}


def _kept(tx: Transaction, row: Any) -> KeptJoin:
    return KeptJoin(row.id, row.key, tuple(json.loads(row.progress)), row.reach, row.refused, _runs(tx, row.id))


def _runs(tx: Transaction, join_id: int) -> tuple[JoinRun, ...]:
    rows = tx.execute(select(join_runs).where(join_runs.c.join_id == join_id).order_by(join_runs.c.id))
    return tuple(JoinRun(row.id, row.path, row.rows, row.bytes, tuple(json.loads(row.last_ids))) for row in rows)
