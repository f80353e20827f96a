"""Key files in the catalog: the key indexes of runs that were written before a join needed them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import bindparam, delete, insert, select

from tureen.keys import KeyColumns
from tureen.pot.catalog import micros_now
from tureen.pot.catalog_tables import garbage, runs
from tureen.pot.join_tables import key_files
from tureen.pot.needed_keys import StreamKeys, columns_of_text, text_of_columns
from tureen.pot.statements import Prepared
from tureen.pot.transaction import Transaction


@dataclass(frozen=True, slots=True)
class KeyFile:
    """A file with the index of a run by columns."""

    columns: KeyColumns
    path: str
    bytes: int


_OF_STREAM = Prepared(
    select(key_files).join_from(key_files, runs).where(runs.c.stream_id == bindparam("stream")).order_by(key_files.c.id)
)


def key_files_of_runs(tx: Transaction, stream_id: int) -> dict[int, tuple[KeyFile, ...]]:
    """The key files of a stream's runs, by run id."""
    files: dict[int, tuple[KeyFile, ...]] = {}
    for row in tx.execute(_OF_STREAM, {"stream": stream_id}):
        file = KeyFile(columns_of_text(row.columns), row.path, row.bytes)
        files[row.run_id] = (*files.get(row.run_id, ()), file)
    return files


def publish_key_files(tx: Transaction, new: Sequence[tuple[int, KeyFile]]) -> None:
    """Add finished files to runs, given by their ids; the files of runs that were dropped meanwhile are discarded.

    They replace files with the same columns, which are damaged or missing.
    """
    live = set(tx.execute(select(runs.c.id).where(runs.c.id.in_([run_id for run_id, _ in new]))).scalars())
    for run_id, file in new:
        if run_id in live:
            text = text_of_columns(file.columns)
            same = (key_files.c.run_id == run_id, key_files.c.columns == text)
            drop_key_files(tx, tx.execute(select(key_files.c.path).where(*same)).scalars())
            tx.execute(insert(key_files).values(run_id=run_id, columns=text, path=file.path, bytes=file.bytes))
        else:
            tx.execute(insert(garbage).values(path=file.path, since=micros_now()))


def drop_unneeded_key_files(tx: Transaction, needed: Collection[StreamKeys]) -> None:
    """Drop the files with indexes that no join needs."""
    named = select(key_files.c.path, key_files.c.columns, runs.c.stream_id).join_from(key_files, runs)
    unneeded = [row.path for row in tx.execute(named) if (row.stream_id, columns_of_text(row.columns)) not in needed]
    drop_key_files(tx, unneeded)


def drop_key_files(tx: Transaction, paths: Collection[str]) -> None:
    """Drop files, given by their paths; those that were dropped meanwhile are left out."""
    for path in paths:
        if tx.execute(delete(key_files).where(key_files.c.path == path)).rowcount:
            tx.execute(insert(garbage).values(path=path, since=micros_now()))
