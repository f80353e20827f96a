"""Migrating a pot: every step from one format to the next, each in a transaction of its own."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from tureen.faults import crash_point
from tureen.migration.derived_stream_columns import add_derived_streams
from tureen.migration.files_to_parts import convert_files
from tureen.migration.format_8 import to_format_8
from tureen.migration.punctuation_columns import add_punctuations
from tureen.migration.query_inputs import add_query_inputs
from tureen.migration.reserved_id_table import add_reserved_ids
from tureen.pot.catalog import CATALOG_FILE, FORMAT_VERSION, exists
from tureen.pot.digest import Digest
from tureen.pot.lease import Lease

log = logging.getLogger("tureen")

Migration = Callable[[Path, sqlite3.Connection], None]

MIGRATIONS: dict[int, Migration] = {
    2: convert_files,
    3: add_query_inputs,
    4: add_reserved_ids,
    5: add_derived_streams,
    6: add_punctuations,
    7: to_format_8,
}
"""The step from each earlier format to the next one."""


def migrate(root: Path) -> None:
    """Convert a pot of an earlier format to the current one; others are left as they are."""
    if not exists(root) or format_of(root) not in MIGRATIONS:
        return
    lease = Lease(root)
    try:
        with closing(sqlite3.connect(root / CATALOG_FILE, isolation_level=None, timeout=30)) as database:
            while (version := _format(database)) in MIGRATIONS:
                log.info("converting the pot in '%s' from format %d to %d", root, version, version + 1)
                _run(root, database, version)
    finally:
        lease.release()


def format_of(root: Path) -> int | None:
    """The format of a pot; None where its catalog does not tell."""
    try:
        with closing(sqlite3.connect(f"file:{root / CATALOG_FILE}?mode=ro", uri=True)) as database:
            return _format(database)
    except sqlite3.DatabaseError:
        return None


def _format(database: sqlite3.Connection) -> int:
    (value,) = database.execute("SELECT value FROM meta WHERE key = 'format'").fetchone() or ("0",)
    return int(value)


def _run(root: Path, database: sqlite3.Connection, version: int) -> None:
    assert version < FORMAT_VERSION
    Digest(root / CATALOG_FILE).remove()
    # Tables are replaced by ones of the same name, to which others refer.
    database.execute("PRAGMA foreign_keys = OFF")
    database.execute("BEGIN IMMEDIATE")
    try:
        MIGRATIONS[version](root, database)
        database.execute("UPDATE meta SET value = ? WHERE key = 'format'", (str(version + 1),))
        crash_point("migration.before_commit")
        database.execute("COMMIT")
        crash_point("migration.after_commit")
    except BaseException:
        database.execute("ROLLBACK")
        raise
