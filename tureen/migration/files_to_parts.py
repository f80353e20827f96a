"""Format 2 to 3: every file becomes a list of checksummed parts.

Tuples, tables and values are copied. Cells and compiled queries are dropped: the engine computes them again.
"""

from __future__ import annotations

import sqlite3
import struct
import time
from pathlib import Path

import pyarrow as pa

from tureen.pot.files import durable_file, new_attempt
from tureen.pot.tablefile import write_table
from tureen.schema import Schema
from tureen.stems.run import write_run
from tureen.stems.stored import NTH

_FOOTER = struct.Struct("<qqq8s")
_MAGIC = b"TURRUN01"


def convert_files(root: Path, database: sqlite3.Connection) -> None:
    """Write all files again under new names; the old ones become garbage."""
    attempt = new_attempt()
    _convert_runs(root, database, attempt)
    _convert_tables(root, database, attempt)
    _convert_templates(root, database, attempt)
    for table in ("cells", "query_runs"):
        _discard(database, [path for (path,) in database.execute(f"SELECT path FROM {table}")])
        database.execute(f"DELETE FROM {table}")
    database.execute("UPDATE runs SET matched_seq = 0")
    database.execute("UPDATE streams SET compiled_seq = 0")


def _convert_runs(root: Path, database: sqlite3.Connection, attempt: str) -> None:
    runs = database.execute(
        """
        SELECT runs.id, stream_id, path, indexed, columns, time FROM runs JOIN streams ON streams.id = stream_id
        ORDER BY runs.id
        """
    ).fetchall()
    for run_id, stream_id, path, indexed, columns, time_column in runs:
        schema, new = Schema.parse(columns, time_column), f"streams/{stream_id}/{attempt}-{run_id}.run"
        with durable_file(root / new) as file:
            write_run(file, Path(new).name, schema, _read_run(root / path, schema), None, indexed=bool(indexed))
        size = (root / new).stat().st_size
        database.execute("UPDATE runs SET path = ?, bytes = ? WHERE id = ?", (new, size, run_id))
        _discard(database, [path])


def _read_run(path: Path, schema: Schema) -> pa.Table:
    """The tuples of a run: an Arrow file, followed by one of cells and a footer with their lengths."""
    buffer = pa.memory_map(str(path)).read_buffer()
    end, _, _, magic = _FOOTER.unpack(buffer.slice(buffer.size - _FOOTER.size).to_pybytes())
    if magic != _MAGIC:
        raise ValueError(f"'{path}' is not a run of format 2")
    table = pa.ipc.open_file(pa.BufferReader(buffer.slice(0, end))).read_all()
    return table.select([name for name in (*schema.stored.names, NTH) if name in table.column_names])


def _convert_tables(root: Path, database: sqlite3.Connection, attempt: str) -> None:
    for table_id, path in database.execute("SELECT id, path FROM dimensions").fetchall():
        new = f"tables/{table_id}/{attempt}-0.arrow"
        _copy_table(root / path, root / new)
        size = (root / new).stat().st_size
        database.execute("UPDATE dimensions SET path = ?, bytes = ? WHERE id = ?", (new, size, table_id))
        _discard(database, [path])


def _convert_templates(root: Path, database: sqlite3.Connection, attempt: str) -> None:
    for template_id, path in database.execute("SELECT id, path FROM templates").fetchall():
        new = f"templates/{attempt}-{template_id}.arrow"
        _copy_table(root / path, root / new)
        database.execute("UPDATE templates SET path = ? WHERE id = ?", (new, template_id))
        _discard(database, [path])


def _copy_table(old: Path, new: Path) -> None:
    with pa.memory_map(str(old)) as mapped:
        table = pa.ipc.open_file(mapped).read_all().combine_chunks()
    batches = table.to_batches()
    write_table(new, batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema))


def _discard(database: sqlite3.Connection, paths: list[str]) -> None:
    now = time.time_ns() // 1000
    database.executemany("INSERT OR IGNORE INTO garbage (path, since) VALUES (?, ?)", [(path, now) for path in paths])
