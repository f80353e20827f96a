"""SQLAlchemy's engines of catalogs, which share compiled statements, and the tables of a new catalog.

An engine of its own would compile each statement again: that took most of the time of opening a pot.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Dialect, Engine, Table, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.pool import QueuePool
from sqlalchemy.schema import CreateIndex, CreateTable, ExecutableDDLElement
from sqlalchemy.util import LRUCache

from tureen.pot.catalog_schema import TRIGGER_STATEMENTS, all_tables
from tureen.pot.catalog_tables import queries
from tureen.pot.connecting import connect

_URL = make_url("sqlite://")

_STATEMENTS = 1_000
"""The number of compiled statements that are kept."""

_compiled: LRUCache[object, object] = LRUCache(_STATEMENTS)


@cache
def _dialect() -> Dialect:
    """The dialect of all engines: statements are compiled for an object, not for a kind of database."""
    engine = create_engine(_URL)
    # The first connection initialises it.
    engine.connect().close()
    engine.dispose()
    return engine.dialect


def catalog_engine(path: Path) -> Engine:
    """An engine for the catalog in that file."""
    dialect = _dialect()
    # SQLAlchemy's type of connections lacks attributes that those of sqlite3 have.
    creator: Callable[[], Any] = partial(connect, path)
    pool = QueuePool(creator, dialect=dialect)
    engine = Engine(pool, dialect, _URL, execution_options={"compiled_cache": _compiled})
    event.listen(engine, "connect", _configure)
    event.listen(engine, "begin", _begin)
    return engine


def _configure(connection: sqlite3.Connection, _record: object) -> None:
    # SQLAlchemy begins transactions itself (see _begin); the driver must not.
    connection.isolation_level = None
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=30000"):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("tureen_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def missing_tables(tx: Connection) -> list[str]:
    """The tables that the catalog does not have, in an order in which they can be created."""
    existing = set(tx.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'table'").scalars())
    return [name for name in _table_statements() if name not in existing]


def create_missing_tables(tx: Connection) -> None:
    """Create the tables that the catalog does not have with their indexes, and what is missing beside the tables."""
    missing = [statement for name in missing_tables(tx) for statement in _table_statements()[name]]
    for statement in (*missing, *_index_statements(queries), *TRIGGER_STATEMENTS):
        tx.exec_driver_sql(statement)


@cache
def _table_statements() -> dict[str, tuple[str, ...]]:
    """The statements that create each table and its indexes."""
    return {table.name: (_text(CreateTable(table)), *_index_statements(table)) for table in all_tables.sorted_tables}


@cache
def _index_statements(table: Table) -> tuple[str, ...]:
    indexes = sorted(table.indexes, key=lambda index: str(index.name))
    return tuple(_text(CreateIndex(index, if_not_exists=True)) for index in indexes)


def _text(statement: ExecutableDDLElement) -> str:
    return str(statement.compile(dialect=_dialect()))
