"""Closed-set files: what the punctuations of trimmed segments of the inbox have closed.

A segment is removed only after a file has what its records close. Files are merged as they grow, so that a stream has
few of them and each key is rewritten a few times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
from sqlalchemy import delete, insert, select

from tureen.closed.gate import Gate
from tureen.closed.rules import Rules
from tureen.closed.stored_gate import add_parts, gate_parts, size_of
from tureen.faults import crash_point
from tureen.pot.catalog import Catalog, check_attempt, micros_now, take_seq
from tureen.pot.catalog_tables import closed_files, damage, garbage
from tureen.pot.damage import forget_damage
from tureen.pot.files import durable_file, new_attempt
from tureen.pot.parts import Parts, PartsWriter, missing_file
from tureen.pot.runs import Rejected, reject
from tureen.pot.transaction import Transaction
from tureen.schema import Schema


class ClosedFile(NamedTuple):
    """A file with what the records of a stream's log close, up to the offset `end`."""

    path: str
    end: int
    entries: int


def closed_files_of(tx: Transaction, stream_id: int) -> list[ClosedFile]:
    """The files of a stream, in the order of its log."""
    columns = (closed_files.c.path, closed_files.c.end, closed_files.c.entries)
    rows = tx.execute(select(*columns).where(closed_files.c.stream_id == stream_id).order_by(closed_files.c.end))
    return [ClosedFile(row.path, row.end, row.entries) for row in rows]


def load_closed_file(catalog: Catalog, gate: Gate, file: ClosedFile) -> None:
    """Close in a gate what a file has; raises DamagedFile."""
    try:
        parts = Parts(catalog.root / file.path)
    except FileNotFoundError as error:
        raise missing_file(error) from None
    add_parts(gate, parts.about, parts.read)


def store_closed(
    catalog: Catalog,
    stream_id: int,
    schema: Schema,
    rules: Rules,
    recent: Gate,
    earlier: Sequence[ClosedFile],
    end: int,
) -> None:
    """Write a file with what the records up to an offset close; it replaces earlier files that are not much larger."""
    replaced: list[ClosedFile] = []
    entries = size_of(recent)
    for file in reversed(earlier):
        if file.entries > 2 * entries:
            break
        replaced.insert(0, file)
        entries += file.entries
    gate = recent
    if replaced:
        gate = Gate(schema, rules)
        for file in replaced:
            load_closed_file(catalog, gate, file)
        about, arrays = gate_parts(recent)
        add_parts(gate, about, lambda number: arrays[number])
    attempt = new_attempt()
    path = f"closed/{stream_id}/{attempt}-{end}.closed"
    about, arrays = gate_parts(gate)
    crash_point("closed.before_write")
    with durable_file(catalog.root / path) as stream:
        writer = PartsWriter(stream, (catalog.root / path).name)
        for array in arrays:
            writer.add(pa.py_buffer(array))
        writer.finish(about)
        size = stream.tell()
    crash_point("closed.before_commit")
    with catalog.write() as tx:
        check_attempt(tx, attempt)
        take_seq(tx)
        _discard(tx, [file.path for file in replaced])
        values = {"stream_id": stream_id, "path": path, "end": end, "entries": size_of(gate), "bytes": size}
        tx.execute(insert(closed_files).values(values))
        crash_point("closed.in_commit")
    crash_point("closed.after_commit")


def give_up_closed(catalog: Catalog) -> None:
    """Remove closed-set files that are lost, so that rows can be pushed again; `rejected` reports each."""
    with catalog.read() as tx:
        lost = select(damage.c.path).where(damage.c.lost)
        chosen = select(closed_files.c.path, closed_files.c.stream_id).where(closed_files.c.path.in_(lost))
        files = tx.execute(chosen).all()
    if files:
        with catalog.write() as tx:
            take_seq(tx)
            _discard(tx, [file.path for file in files])
            forget_damage(tx, [file.path for file in files])
            for file in files:
                reason = f"punctuations or unique keys were lost: file '{file.path}' was damaged"
                reject(tx, file.stream_id, [Rejected({"file": file.path}, reason)])


def _discard(tx: Transaction, paths: Sequence[str]) -> None:
    now = micros_now()
    for path in paths:
        tx.execute(insert(garbage).values(path=path, since=now))
    tx.execute(delete(closed_files).where(closed_files.c.path.in_(list(paths))))
