"""Reserved tuple ids: those of pushed rows that were pending when another writer committed rows to their stream.

A pushed row takes the next id when its push returns: pending rows have the ids from the stream's `next_id` on. A sink
that commits rows to the same stream puts them after all pending rows. It reserves the ids of these, so that a row keeps
its id when Spark takes it, and followers miss and repeat nothing. Without such a sink nothing is reserved.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import bindparam, delete, insert, select, update

from tureen.closed.pattern import Pattern
from tureen.pot.catalog_tables import reserved_ids, streams
from tureen.pot.heads import log_directory
from tureen.pot.log import scan
from tureen.pot.punctuation_places import note_places
from tureen.pot.runs import NewRun, insert_runs
from tureen.pot.statements import Prepared
from tureen.pot.streams import Stream
from tureen.pot.transaction import Transaction


class Reservation(NamedTuple):
    """The ids of a stream's pushed rows up to an offset of its log: the next such row has the id `first_id`."""

    end: int
    first_id: int


_OF_STREAM = Prepared(
    select(reserved_ids.c.end, reserved_ids.c.first_id)
    .where(reserved_ids.c.stream_id == bindparam("stream"))
    .order_by(reserved_ids.c.end)
)


def reservations(tx: Transaction, stream_id: int) -> tuple[Reservation, ...]:
    """A stream's reservations, in the order of its log."""
    return tuple(Reservation(row.end, row.first_id) for row in tx.execute(_OF_STREAM, {"stream": stream_id}))


def reserve_pending(tx: Transaction, root: Path, stream: Stream, end: int) -> None:
    """Reserve the next ids for a stream's pending rows up to the end of its log."""
    start = max([stream.taken, *(reservation.end for reservation in reservations(tx, stream.id))])
    records = scan(log_directory(root, stream.id), start, end, check=True) if start < end else ()
    rows = sum(record.rows for record in records if record.entry is not None)
    if rows:
        tx.execute(insert(reserved_ids).values(stream_id=stream.id, end=end, first_id=stream.next_id))
        tx.execute(update(streams).where(streams.c.id == stream.id).values(next_id=stream.next_id + rows))


class TakenRuns(NamedTuple):
    """Runs of pushed rows, and the offset of the log up to which they were read."""

    end: int
    runs: Sequence[NewRun]
    patterns: Sequence[tuple[int, Pattern]] = ()
    """The punctuations of their records, each with the number of tuples of the group before it."""


def append_taken(tx: Transaction, seq: int, stream_id: int, groups: Sequence[TakenRuns], taken: int) -> None:
    """Add runs of pushed rows up to the offset `taken`, with reserved ids or at the end of their stream.

    No group contains the end of a reservation, unless it ends there: sinks reserve ids up to the end of the log, and a
    batch is cut at the ends that it knows when it begins.
    """
    remaining = list(reservations(tx, stream_id))
    places: list[tuple[int, Pattern]] = []
    for group in groups:
        while remaining and remaining[0].end < group.end:
            _release(tx, stream_id, remaining.pop(0))
        if remaining:
            next_id = insert_runs(tx, seq, stream_id, group.runs, remaining[0].first_id)
            remaining[0] = remaining[0]._replace(first_id=next_id)
        else:
            next_id = insert_runs(tx, seq, stream_id, group.runs)
        first_id = next_id - sum(run.rows for run in group.runs)
        places += [(first_id + before, pattern) for before, pattern in group.patterns]
    note_places(tx, stream_id, places)
    while remaining and remaining[0].end <= taken:
        _release(tx, stream_id, remaining.pop(0))
    if remaining:
        end, first_id = remaining[0]
        of_stream = (reserved_ids.c.stream_id == stream_id, reserved_ids.c.end == end)
        tx.execute(update(reserved_ids).where(*of_stream).values(first_id=first_id))


def clip_reservations(tx: Transaction, stream_id: int, end: int) -> None:
    """Let no reservation extend beyond the end of a log, which is a copy without its last records, or damaged.

    Rows that are pushed next take the next ids. The reserved ids of the missing rows are not used.
    """
    covered = -1
    for reservation in reservations(tx, stream_id):
        if reservation.end > end:
            _release(tx, stream_id, reservation)
            if covered < end:
                values = {"stream_id": stream_id, "end": end, "first_id": reservation.first_id}
                tx.execute(insert(reserved_ids).values(values))
        covered = min(reservation.end, end)


def _release(tx: Transaction, stream_id: int, reservation: Reservation) -> None:
    tx.execute(delete(reserved_ids).where(reserved_ids.c.stream_id == stream_id, reserved_ids.c.end == reservation.end))
