"""The tables of new catalogs, and those that are added to older ones."""

from __future__ import annotations

import errno
import sqlite3
import stat
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine

from tureen.pot.catalog import CATALOG_FILE, Catalog, take_seq
from tureen.pot.catalog_creation import create_database, create_missing, missing_names
from tureen.pot.catalog_schema import all_tables
from tureen.pot.transaction import Transaction

DEFINITIONS = "SELECT type, name, coalesce(sql, '') FROM sqlite_master WHERE type IN ('table', 'index')"


def definitions(rows: Iterable[Any]) -> set[tuple[str, str, str]]:
    """The tables and indexes of a database, as SQLite has stored their definitions."""
    return {(kind, name, " ".join(text.split())) for kind, name, text in rows}


def triggers(tx: Transaction) -> set[str]:
    """The triggers of a database."""
    return set(tx.execute_text("SELECT name FROM sqlite_master WHERE type = 'trigger'").scalars())


def test_new_catalogs_have_the_tables_that_are_defined(tmp_path: Path) -> None:
    engine = create_engine("sqlite://")
    with engine.connect() as expected, Catalog(tmp_path, create=True) as catalog, catalog.read() as tx:
        all_tables.create_all(expected)
        assert definitions(tx.execute_text(DEFINITIONS)) == definitions(expected.exec_driver_sql(DEFINITIONS))
    engine.dispose()


def test_missing_tables_indexes_and_triggers_are_created(tmp_path: Path) -> None:
    with Catalog(tmp_path, create=True) as catalog, catalog.write() as tx:
        expected = definitions(tx.execute_text(DEFINITIONS)), triggers(tx)
        for text in ("DROP INDEX queries_in_order", "DROP TRIGGER query_gone", "DROP TABLE dead_attempts"):
            tx.execute_text(text)
        assert missing_names(tx) == ["dead_attempts", "queries_in_order", "query_gone"]
        create_missing(tx)
        assert (definitions(tx.execute_text(DEFINITIONS)), triggers(tx)) == expected


def test_opening_a_complete_catalog_does_not_write(tmp_path: Path) -> None:
    with Catalog(tmp_path, create=True) as catalog:
        catalog.write_digest()
    with Catalog(tmp_path, create=True):
        assert (tmp_path / "catalog.digest").exists()


def test_new_databases_are_private_and_in_wal_mode(tmp_path: Path) -> None:
    path = tmp_path / CATALOG_FILE
    create_database(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == [CATALOG_FILE]
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_an_existing_database_is_not_replaced(tmp_path: Path) -> None:
    with Catalog(tmp_path, create=True) as catalog, catalog.write() as tx:
        take_seq(tx)
    create_database(tmp_path / CATALOG_FILE)
    with Catalog(tmp_path) as catalog:
        assert catalog.seq() == 1
    assert not list(tmp_path.glob(f"{CATALOG_FILE}-[0-9a-f]*"))


def test_a_pot_that_is_created_by_several_threads_is_created_once(tmp_path: Path) -> None:
    def commit(_: int) -> int:
        with Catalog(tmp_path, create=True) as catalog, catalog.write() as tx:
            return take_seq(tx)

    with ThreadPoolExecutor(8) as threads:
        assert sorted(threads.map(commit, range(16))) == list(range(1, 17))


def test_a_creation_that_was_interrupted_is_completed(tmp_path: Path) -> None:
    create_database(tmp_path / CATALOG_FILE)
    with Catalog(tmp_path, create=True) as catalog:
        assert catalog.seq() == 0


def test_tables_are_created_on_file_systems_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    with Catalog(tmp_path, create=True) as catalog, catalog.read() as tx:
        assert missing_names(tx) == []
    assert stat.S_IMODE((tmp_path / CATALOG_FILE).stat().st_mode) == 0o600
