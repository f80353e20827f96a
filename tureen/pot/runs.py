"""Data runs and cells in the catalog: what a commit adds, replaces and lets go of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from tureen.errors import PotError
from tureen.pot.catalog import micros_now
from tureen.pot.catalog_tables import cells, expiring, garbage, rejected, runs, sinks, streams
from tureen.pot.clauses import fail_clauses
from tureen.pot.damage import note_damage

KEEP_REJECTED = 10_000
"""How many rejected rows a stream keeps; the oldest go first."""


@dataclass(frozen=True, slots=True)
class CellFile:
    """Cells that were published for a run later: of so many clauses, which became eager after a commit."""

    id: int
    path: str
    since: int
    clauses: int


@dataclass(frozen=True, slots=True)
class Run:
    """A data run as the catalog has it, with the cell files that were published for it later."""

    id: int
    stream_id: int
    seq: int
    path: str
    rows: int
    first_id: int
    min_time: int
    max_time: int
    indexed: bool
    matched_seq: int
    bytes: int
    written_at: int
    cells: tuple[CellFile, ...] = ()
    """The newest first."""


@dataclass(frozen=True, slots=True)
class NewRun:
    """A finished run file that is about to be committed."""

    path: str
    rows: int
    min_time: int
    max_time: int
    indexed: bool
    matched_seq: int
    bytes: int
    checksum: int
    failures: dict[int, str] = field(default_factory=dict)
    damaged: tuple[tuple[str, str], ...] = ()
    """Query runs that it should have been matched with but that are damaged, each with the detail."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A row that could not be taken, and why."""

    row: dict[str, Any]
    reason: str


def live_runs(tx: Connection, stream_id: int) -> list[Run]:
    """The stream's runs, in order of tuple id."""
    extra: dict[int, list[CellFile]] = {}
    found = tx.execute(
        select(cells)
        .join_from(cells, runs, cells.c.run_id == runs.c.id)
        .where(runs.c.stream_id == stream_id)
        .order_by(cells.c.id.desc())
    )
    for row in found:
        extra.setdefault(row.run_id, []).append(CellFile(row.id, row.path, row.since, row.clauses))
    rows = tx.execute(select(runs).where(runs.c.stream_id == stream_id).order_by(runs.c.first_id))
    return [Run(**row._mapping, cells=tuple(extra.get(row.id, ()))) for row in rows]


# One step of SQLite's however many they are (see `many`), and two looks into an index for each.
_GONE = (
    "SELECT json_group_array(value) FROM json_each(?) WHERE NOT EXISTS (SELECT 1 FROM runs WHERE path = value)"
    " AND NOT EXISTS (SELECT 1 FROM cells WHERE path = value)"
)


def replaced_files(tx: Connection, paths: Sequence[str]) -> set[str]:
    """Those of some files of runs and cells that are live no longer: they were replaced or dropped."""
    return set(json.loads(tx.exec_driver_sql(_GONE, (json.dumps(paths),)).scalar_one()))


def append_runs(tx: Connection, seq: int, stream_id: int, new: Sequence[NewRun]) -> None:
    """Add runs at the end of a stream; their tuples take the next ids."""
    next_id, last = tx.execute(select(streams.c.next_id, streams.c.last_time).where(streams.c.id == stream_id)).one()
    for run in new:
        _insert(tx, seq, stream_id, next_id, run)
        next_id += run.rows
        last = run.max_time if last is None else max(last, run.max_time)
    tx.execute(update(streams).where(streams.c.id == stream_id).values(next_id=next_id, last_time=last))


def replace_runs(tx: Connection, seq: int, old: Sequence[Run], new: NewRun) -> None:
    """Put one run in the place of neighbours; raises where one of them is gone already."""
    drop_runs(tx, old)
    _insert(tx, seq, old[0].stream_id, old[0].first_id, new)


def drop_runs(tx: Connection, old: Sequence[Run]) -> None:
    """Let go of runs; raises, and so rolls back, where one of them is gone already."""
    ids = [run.id for run in old]
    extra = list(tx.execute(select(cells.c.path).where(cells.c.run_id.in_(ids))).scalars())
    tx.execute(delete(cells).where(cells.c.run_id.in_(ids)))
    gone = tx.execute(delete(runs).where(runs.c.id.in_(ids)))
    if gone.rowcount != len(ids):
        raise PotError("a run was replaced or dropped meanwhile")
    _discard(tx, [run.path for run in old] + extra)


def expiring_since(tx: Connection, stream_id: int) -> dict[int, int]:
    """Since when runs of a stream lie before its horizon, by their ids."""
    found = tx.execute(select(expiring.c.run_id, expiring.c.since).where(expiring.c.stream_id == stream_id))
    return {row.run_id: row.since for row in found}


def note_expiring(tx: Connection, stream_id: int, before: dict[int, int], after: dict[int, int]) -> None:
    """Change what `expiring_since` says, from what it was to what it is now."""
    changed = [
        {"run_id": run_id, "stream_id": stream_id, "since": since}
        for run_id, since in after.items()
        if before.get(run_id) != since
    ]
    stale = [run_id for run_id, since in before.items() if after.get(run_id) != since]
    if stale:
        tx.execute(delete(expiring).where(expiring.c.run_id.in_(stale)))
    if changed:
        tx.execute(insert(expiring), changed)


@dataclass(frozen=True, slots=True)
class NewCells:
    """A finished file of cells that is about to be committed.

    It holds `clauses` clauses, all that became eager after the commit `since` and up to `matched_seq`, and so takes the
    place of the files `absorbed`.
    """

    path: str
    bytes: int
    checksum: int
    since: int
    matched_seq: int
    clauses: int
    absorbed: tuple[CellFile, ...]
    failures: dict[int, str]


def publish_cells(tx: Connection, run: Run, new: NewCells) -> bool:
    """Pay a run's debts up to a commit; False where the run is gone or another payment was quicker."""
    same = (runs.c.id == run.id, runs.c.matched_seq == run.matched_seq)
    if tx.execute(update(runs).where(*same).values(matched_seq=new.matched_seq)).rowcount == 0:
        return False
    _discard(tx, [one.path for one in new.absorbed])
    tx.execute(delete(cells).where(cells.c.id.in_([one.id for one in new.absorbed])))
    values = {"run_id": run.id, "path": new.path, "bytes": new.bytes, "since": new.since, "clauses": new.clauses}
    tx.execute(insert(cells).values(values))
    fail_clauses(tx, new.failures)
    return True


def take_batch(tx: Connection, sink_id: str, stream_id: int, batch_id: int) -> bool:
    """Note a sink's batch; False where it was committed before (exactly-once for outside sinks)."""
    mine = (sinks.c.sink_id == sink_id, sinks.c.stream_id == stream_id)
    last = tx.execute(select(sinks.c.batch_id).where(*mine)).scalar()
    if last is not None and batch_id <= last:
        return False
    tx.execute(delete(sinks).where(*mine))
    tx.execute(insert(sinks).values(sink_id=sink_id, stream_id=stream_id, batch_id=batch_id))
    return True


def advance_inbox(tx: Connection, stream_id: int, start: int, end: int) -> None:
    """Note how far a stream's inbox has been taken: a compare-and-swap."""
    moved = tx.execute(update(streams).where(streams.c.id == stream_id, streams.c.taken == start).values(taken=end))
    if moved.rowcount == 0:
        raise PotError(f"the inbox of stream {stream_id} was taken by another batch meanwhile")


def reject(tx: Connection, stream_id: int, rows: Sequence[Rejected]) -> None:
    """Keep rows that could not be taken, for the user to read."""
    now = micros_now()
    for one in rows[:KEEP_REJECTED]:
        tx.execute(
            insert(rejected).values(
                stream_id=stream_id, rejected_at=now, reason=one.reason, row=json.dumps(one.row, default=str)
            )
        )
    newest = (
        select(rejected.c.id)
        .where(rejected.c.stream_id == stream_id)
        .order_by(rejected.c.id.desc())
        .limit(1)
        .offset(KEEP_REJECTED)
    )
    limit = tx.execute(newest).scalar()
    if limit is not None:
        tx.execute(delete(rejected).where(rejected.c.stream_id == stream_id, rejected.c.id <= limit))


def rejected_rows(tx: Connection, stream_id: int) -> list[dict[str, Any]]:
    """The rows of a stream that could not be taken, oldest first."""
    found = tx.execute(select(rejected).where(rejected.c.stream_id == stream_id).order_by(rejected.c.id))
    return [{"row": json.loads(row.row), "reason": row.reason, "rejected_at": row.rejected_at} for row in found]


def count_rejected(tx: Connection, stream_id: int) -> int:
    """How many rejected rows a stream keeps."""
    return int(tx.execute(select(func.count()).where(rejected.c.stream_id == stream_id)).scalar_one())


def _insert(tx: Connection, seq: int, stream_id: int, first_id: int, run: NewRun) -> None:
    tx.execute(
        insert(runs).values(
            stream_id=stream_id,
            seq=seq,
            path=run.path,
            rows=run.rows,
            first_id=first_id,
            min_time=run.min_time,
            max_time=run.max_time,
            indexed=run.indexed,
            matched_seq=run.matched_seq,
            bytes=run.bytes,
            written_at=micros_now(),
        )
    )
    fail_clauses(tx, run.failures)
    for path, detail in run.damaged:
        note_damage(tx, path, detail)


def _discard(tx: Connection, paths: Sequence[str]) -> None:
    now = micros_now()
    for path in paths:
        tx.execute(insert(garbage).values(path=path, since=now))
