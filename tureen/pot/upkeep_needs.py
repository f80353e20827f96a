"""Which streams the background work of the engine concerns, read at once: a pot may have thousands of streams."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import func, select

from tureen.pot.catalog_tables import clauses, query_runs, runs, streams
from tureen.pot.damage import noted_damage
from tureen.pot.runs import streams_with_several_runs
from tureen.pot.statements import Prepared
from tureen.pot.streams import Stream, stream_by_id, taken_offsets
from tureen.pot.transaction import Transaction


@dataclass(frozen=True, slots=True)
class UpkeepNeeds:
    """A stream, and the work that it may need."""

    stream: Stream
    repair: bool
    merge: bool
    compile: bool
    pay: bool


_EXPIRING = Prepared(select(streams.c.id).where(streams.c.name_key.is_not(None), streams.c.retain.is_not(None)))
_NEWEST_EAGER = (
    select(func.max(clauses.c.seq)).where(clauses.c.stream_id == streams.c.id, clauses.c.number.is_not(None))
).scalar_subquery()
_COMPILED = Prepared(select(streams.c.id, streams.c.compiled_seq, _NEWEST_EAGER).where(streams.c.name_key.is_not(None)))
_WITH_DEAD = Prepared(select(query_runs.c.stream_id).where(query_runs.c.dead > 0).distinct())
_MATCHED = Prepared(
    select(runs.c.stream_id, func.min(runs.c.matched_seq).label("seq")).where(runs.c.indexed).group_by(runs.c.stream_id)
)


def upkeep_needs(tx: Transaction, *, with_clauses: bool) -> list[UpkeepNeeds]:
    """The streams that may need work, in order of creation; without `with_clauses` only merging and expiry count."""
    several = streams_with_several_runs(tx)
    damaged: Collection[int] = ()
    uncompiled, owing = set[int](), set[int]()
    if with_clauses:
        damaged = taken_offsets(tx) if any(not damage.lost for damage in noted_damage(tx)) else ()
        matched = {row.stream_id: row.seq for row in tx.execute(_MATCHED)}
        uncompiled = set(tx.execute(_WITH_DEAD).scalars())
        for stream_id, compiled_seq, newest in tx.execute(_COMPILED):
            if newest is not None and newest > compiled_seq:
                uncompiled.add(stream_id)
            if newest is not None and newest > matched.get(stream_id, newest):
                owing.add(stream_id)
    needs = []
    for stream_id in sorted({*tx.execute(_EXPIRING).scalars(), *damaged, *several, *uncompiled, *owing}):
        stream = stream_by_id(tx, stream_id)
        if stream is not None:
            needs.append(UpkeepNeeds(stream, *(stream_id in ids for ids in (damaged, several, uncompiled, owing))))
    return needs
