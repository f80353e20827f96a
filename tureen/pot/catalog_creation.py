"""The tables of a new catalog, and those that were added to the catalog after a pot was created.

A new catalog is a copy of an empty one, which a process creates once in memory: executing the statements for each pot
takes five times longer.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import cache
from pathlib import Path

from sqlalchemy import Table
from sqlalchemy.schema import CreateIndex, CreateTable, ExecutableDDLElement

from tureen.pot.catalog_schema import STANDING_ROW, TRIGGER_STATEMENTS, all_tables
from tureen.pot.files import durable_file, new_attempt, open_private, sync_directory
from tureen.pot.statements import DIALECT
from tureen.pot.transaction import Transaction

_WAL_MODE = slice(18, 20), b"\2\2"
"""The bytes of a database's header that say that it is in WAL mode, and their values."""


def create_database(path: Path) -> None:
    """Create a database with all tables, durably, unless it exists."""
    new = path.with_name(f"{path.name}-{new_attempt()}")
    with durable_file(new) as file:
        file.write(_empty_database())
    try:
        # Another process that creates the pot at the same time sees all of it, or nothing.
        path.hardlink_to(new)
        sync_directory(path.parent)
    except FileExistsError:
        pass
    except OSError:
        # On a file system without links, the tables are created by statements, in a transaction.
        os.close(open_private(path, os.O_RDWR | os.O_CREAT))
    finally:
        new.unlink()


def missing_names(tx: Transaction) -> list[str]:
    """The names of the tables, indexes and triggers that the catalog does not have, in the order of their creation."""
    existing = set(tx.execute_text("SELECT name FROM sqlite_master").scalars())
    return [name for name in _statements() if name not in existing]


def create_missing(tx: Transaction) -> None:
    """Create the tables, indexes and triggers that the catalog does not have."""
    for name in missing_names(tx):
        tx.execute_text(_statements()[name])
    tx.execute_text(STANDING_ROW)


@cache
def _empty_database() -> bytes:
    with closing(sqlite3.connect(":memory:")) as database:
        for statement in (*_statements().values(), STANDING_ROW):
            database.execute(statement)
        database.commit()
        image = bytearray(database.serialize())
    place, value = _WAL_MODE
    image[place] = value
    return bytes(image)


@cache
def _statements() -> dict[str, str]:
    """The statements that create all tables, indexes and triggers, by name."""
    statements = dict(_statements_of_tables(all_tables.sorted_tables))
    return statements | TRIGGER_STATEMENTS


def _statements_of_tables(tables: Iterable[Table]) -> Iterator[tuple[str, str]]:
    for table in tables:
        yield table.name, _text(CreateTable(table))
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            yield str(index.name), _text(CreateIndex(index))


def _text(statement: ExecutableDDLElement) -> str:
    return str(statement.compile(dialect=DIALECT))
