"""Engines of catalogs: the tables of a new catalog, and compiled statements that all of them share."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, create_engine, literal, select

from tureen.pot.catalog import Catalog
from tureen.pot.catalog_engine import _compiled, create_missing_tables, missing_tables
from tureen.pot.catalog_schema import all_tables


def definitions(tx: Connection) -> set[tuple[str, str, str]]:
    """The tables and indexes of a database, as SQLite has stored their definitions."""
    statement = "SELECT type, name, coalesce(sql, '') FROM sqlite_master WHERE type IN ('table', 'index')"
    return {(kind, name, " ".join(text.split())) for kind, name, text in tx.exec_driver_sql(statement)}


def test_new_catalogs_have_the_tables_that_are_defined(tmp_path: Path) -> None:
    engine = create_engine("sqlite://")
    with engine.connect() as expected, Catalog(tmp_path, create=True) as catalog, catalog.read() as tx:
        all_tables.create_all(expected)
        assert definitions(tx) == definitions(expected)
    engine.dispose()


def test_missing_tables_indexes_and_triggers_are_created(tmp_path: Path) -> None:
    with Catalog(tmp_path, create=True) as catalog, catalog.write() as tx:
        expected = definitions(tx), triggers(tx)
        index = tx.exec_driver_sql(
            "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = 'queries' AND sql IS NOT NULL"
        ).scalar()
        for text in (f"DROP INDEX {index}", "DROP TRIGGER query_gone", "DROP TABLE dead_attempts"):
            tx.exec_driver_sql(text)
        assert missing_tables(tx) == ["dead_attempts"]
        create_missing_tables(tx)
        assert (definitions(tx), triggers(tx)) == expected


def triggers(tx: Connection) -> set[str]:
    """The triggers of a database."""
    return set(tx.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'trigger'").scalars())


def test_catalogs_share_compiled_statements(tmp_path: Path) -> None:
    statement = select(literal(1).label("only_in_this_test"))
    counts = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        with Catalog(tmp_path / name, create=True) as catalog, catalog.read() as tx:
            assert tx.execute(statement).scalar() == 1
        counts.append(sum("only_in_this_test" in str(compiled) for compiled in _compiled.values()))
    assert counts == [1, 1]
