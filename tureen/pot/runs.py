"""Data runs and cells in the catalog: what a commit adds, replaces and removes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import bindparam, delete, func, insert, select, update

from tureen.closed.section import json_text
from tureen.errors import PotError
from tureen.pot.catalog import micros_now
from tureen.pot.catalog_tables import cells, expiring, garbage, rejected, runs, sinks, streams
from tureen.pot.clauses import fail_clauses
from tureen.pot.damage import note_damage
from tureen.pot.join_tables import key_files
from tureen.pot.key_files import KeyFile, key_files_of_runs
from tureen.pot.statements import Prepared
from tureen.pot.transaction import Transaction

KEEP_REJECTED = 10_000
"""The number of rejected rows that a stream keeps; the oldest are removed first."""


@dataclass(frozen=True, slots=True)
class CellFile:
    """A file of cells that was added to a run later: of `clauses` clauses that became eager after commit `since`."""

    id: int
    path: str
    since: int
    clauses: int


@dataclass(frozen=True, slots=True)
class Run:
    """A data run as the catalog has it, with the files that were added to it later."""

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
    key_files: tuple[KeyFile, ...] = ()


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
    """Damaged query runs, with which it could not be matched, each with the detail."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A row that could not be stored, the reason, and when it was rejected; by default now."""

    row: dict[str, Any]
    reason: str
    at: int | None = None


_CELLS = Prepared(
    select(cells)
    .join_from(cells, runs, cells.c.run_id == runs.c.id)
    .where(runs.c.stream_id == bindparam("stream"))
    .order_by(cells.c.id.desc())
)
_RUNS = Prepared(select(runs).where(runs.c.stream_id == bindparam("stream")).order_by(runs.c.first_id))
_ADD = Prepared(insert(runs))
_SEVERAL = Prepared(select(runs.c.stream_id).group_by(runs.c.stream_id).having(func.count() > 1))
_END = Prepared(select(streams.c.next_id, streams.c.last_time).where(streams.c.id == bindparam("stream")))
_SET_END = Prepared(update(streams).where(streams.c.id == bindparam("stream")))
_SET_TAKEN = Prepared(update(streams).where(streams.c.id == bindparam("stream"), streams.c.taken == bindparam("start")))
_SINCE = Prepared(select(expiring.c.run_id, expiring.c.since).where(expiring.c.stream_id == bindparam("stream")))


def live_runs(tx: Transaction, stream_id: int) -> list[Run]:
    """The stream's runs, in order of tuple id."""
    cell_files: dict[int, list[CellFile]] = {}
    for row in tx.execute(_CELLS, {"stream": stream_id}):
        cell_files.setdefault(row.run_id, []).append(CellFile(row.id, row.path, row.since, row.clauses))
    run_rows = tx.execute(_RUNS, {"stream": stream_id})
    keyed = key_files_of_runs(tx, stream_id)
    return [
        Run(**row._asdict(), cells=tuple(cell_files.get(row.id, ())), key_files=keyed.get(row.id, ()))
        for row in run_rows
    ]


def streams_with_several_runs(tx: Transaction) -> set[int]:
    """The ids of the streams that have runs to merge, or may have."""
    return set(tx.execute(_SEVERAL).scalars())


def streams_with_large_runs(tx: Transaction, rows: int) -> set[int]:
    """The ids of the streams that have indexed runs of at least that many rows."""
    large = (runs.c.indexed, runs.c.rows >= rows)
    return set(tx.execute(select(runs.c.stream_id).where(*large).distinct()).scalars())


# One step of SQLite for any number of paths (see `bulk_statements`), and two index lookups for each.
_REPLACED = (
    "SELECT json_group_array(value) FROM json_each(?) WHERE NOT EXISTS (SELECT 1 FROM runs WHERE path = value)"
    " AND NOT EXISTS (SELECT 1 FROM cells WHERE path = value)"
    " AND NOT EXISTS (SELECT 1 FROM join_runs WHERE path = value)"
    " AND NOT EXISTS (SELECT 1 FROM key_files WHERE path = value)"
)


def replaced_files(tx: Transaction, paths: Sequence[str]) -> set[str]:
    """Those of these files of runs, cells, join runs and key indexes that were replaced or dropped."""
    return set(json.loads(tx.execute_text(_REPLACED, (json.dumps(paths),)).scalar_one()))


def insert_runs(tx: Transaction, seq: int, stream_id: int, new: Sequence[NewRun], first_id: int | None = None) -> int:
    """Add runs to a stream, with the ids from `first_id` on or at its end; return the id after their last tuple."""
    end, last = tx.execute(_END, {"stream": stream_id}).one()
    next_id = end if first_id is None else first_id
    for run in new:
        _insert(tx, seq, stream_id, next_id, run)
        next_id += run.rows
        last = run.max_time if last is None else max(last, run.max_time)
    tx.execute(_SET_END, {"stream": stream_id, "next_id": max(end, next_id), "last_time": last})
    return next_id


def replace_runs(tx: Transaction, seq: int, old: Sequence[Run], new: NewRun) -> None:
    """Replace neighbouring runs by one; raises if one of them was replaced or dropped concurrently."""
    drop_runs(tx, old)
    _insert(tx, seq, old[0].stream_id, old[0].first_id, new)


def drop_runs(tx: Transaction, old: Sequence[Run]) -> None:
    """Drop runs; raises, and so rolls back, if one of them was replaced or dropped concurrently."""
    ids = [run.id for run in old]
    paths = [run.path for run in old]
    for table in (cells, key_files):
        paths += tx.execute(select(table.c.path).where(table.c.run_id.in_(ids))).scalars()
        tx.execute(delete(table).where(table.c.run_id.in_(ids)))
    deleted = tx.execute(delete(runs).where(runs.c.id.in_(ids)))
    if deleted.rowcount != len(ids):
        raise PotError("a run was replaced or dropped meanwhile")
    _discard(tx, paths)


def expiring_since(tx: Transaction, stream_id: int) -> dict[int, int]:
    """The times since which runs of a stream are before its horizon, by run id."""
    rows = tx.execute(_SINCE, {"stream": stream_id})
    return {row.run_id: row.since for row in rows}


def note_expiring(tx: Transaction, stream_id: int, before: dict[int, int], after: dict[int, int]) -> None:
    """Change what `expiring_since` returns from `before` to `after`."""
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

    It holds `clauses` clauses, all that became eager after the commit `since` and up to `matched_seq`, and so replaces
    the files `absorbed`.
    """

    path: str
    bytes: int
    checksum: int
    since: int
    matched_seq: int
    clauses: int
    absorbed: tuple[CellFile, ...]
    failures: dict[int, str]


def publish_cells(tx: Transaction, run: Run, new: NewCells) -> bool:
    """Pay a run's debts up to a commit; False if the run was removed, or its debts were paid concurrently."""
    unchanged = (runs.c.id == run.id, runs.c.matched_seq == run.matched_seq)
    if tx.execute(update(runs).where(*unchanged).values(matched_seq=new.matched_seq)).rowcount == 0:
        return False
    _discard(tx, [file.path for file in new.absorbed])
    tx.execute(delete(cells).where(cells.c.id.in_([file.id for file in new.absorbed])))
    values = {"run_id": run.id, "path": new.path, "bytes": new.bytes, "since": new.since, "clauses": new.clauses}
    tx.execute(insert(cells).values(values))
    fail_clauses(tx, new.failures)
    return True


def take_batch(tx: Transaction, sink_id: str, stream_id: int, batch_id: int) -> bool:
    """Note a sink's batch; False if it was committed before (exactly-once for external sources)."""
    of_sink = (sinks.c.sink_id == sink_id, sinks.c.stream_id == stream_id)
    last = tx.execute(select(sinks.c.batch_id).where(*of_sink)).scalar()
    if last is not None and batch_id <= last:
        return False
    tx.execute(delete(sinks).where(*of_sink))
    tx.execute(insert(sinks).values(sink_id=sink_id, stream_id=stream_id, batch_id=batch_id))
    return True


def advance_inbox(tx: Transaction, stream_id: int, start: int, end: int) -> None:
    """Advance the offset up to which a stream's inbox is in runs: a compare-and-swap."""
    updated = tx.execute(_SET_TAKEN, {"stream": stream_id, "start": start, "taken": end})
    if updated.rowcount == 0:
        raise PotError(f"another batch has advanced the inbox of stream {stream_id} meanwhile")


def reject(tx: Transaction, stream_id: int, rows: Sequence[Rejected]) -> None:
    """Store rows that were rejected, with their reasons."""
    if not rows:
        return
    now = micros_now()
    for rejection in rows[:KEEP_REJECTED]:
        tx.execute(
            insert(rejected).values(
                stream_id=stream_id,
                rejected_at=now if rejection.at is None else rejection.at,
                reason=rejection.reason,
                row=json.dumps(rejection.row, default=json_text),
            )
        )
    newest_to_delete = (
        select(rejected.c.id)
        .where(rejected.c.stream_id == stream_id)
        .order_by(rejected.c.id.desc())
        .limit(1)
        .offset(KEEP_REJECTED)
    )
    last_id = tx.execute(newest_to_delete).scalar()
    if last_id is not None:
        tx.execute(delete(rejected).where(rejected.c.stream_id == stream_id, rejected.c.id <= last_id))


def rejected_rows(tx: Transaction, stream_id: int) -> list[dict[str, Any]]:
    """The rejected rows of a stream, oldest first."""
    rows = tx.execute(select(rejected).where(rejected.c.stream_id == stream_id).order_by(rejected.c.id))
    return [{"row": json.loads(row.row), "reason": row.reason, "rejected_at": row.rejected_at} for row in rows]


def count_rejected(tx: Transaction, stream_id: int) -> int:
    """The number of rejected rows that a stream has."""
    return int(tx.execute(select(func.count()).where(rejected.c.stream_id == stream_id)).scalar_one())


def _insert(tx: Transaction, seq: int, stream_id: int, first_id: int, run: NewRun) -> None:
    values = {
        "stream_id": stream_id,
        "seq": seq,
        "path": run.path,
        "rows": run.rows,
        "first_id": first_id,
        "min_time": run.min_time,
        "max_time": run.max_time,
        "indexed": run.indexed,
        "matched_seq": run.matched_seq,
        "bytes": run.bytes,
        "written_at": micros_now(),
    }
    tx.execute(_ADD, values)
    fail_clauses(tx, run.failures)
    for path, detail in run.damaged:
        note_damage(tx, path, detail)


def _discard(tx: Transaction, paths: Sequence[str]) -> None:
    now = micros_now()
    for path in paths:
        tx.execute(insert(garbage).values(path=path, since=now))
