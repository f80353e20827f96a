"""Statements compiled with SQLAlchemy return the rows that SQLAlchemy's own execution of them returns."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, bindparam, create_engine, delete, func, insert, select, update

from tureen.errors import StorageFailed
from tureen.pot.catalog import Catalog, take_seq
from tureen.pot.catalog_schema import all_tables
from tureen.pot.catalog_tables import clauses, garbage, queries, query_inputs, runs, streams
from tureen.pot.statements import Prepared
from tureen.pot.transaction import Transaction

STREAM = {"name": "s", "name_key": "s", "columns": "a INT", "clock": "wall", "keeps_needed": True}
RUN = {"stream_id": 1, "seq": 1, "rows": 2, "min_time": 0, "max_time": 9, "matched_seq": 0, "bytes": 7, "written_at": 5}
FILES = [{"path": path, "since": since} for since, path in enumerate("abcde")]


@pytest.fixture
def databases() -> Iterator[tuple[Transaction, Connection]]:
    """Two databases with the same tables: one for our transactions, one for those of SQLAlchemy."""
    engine = create_engine("sqlite://")
    with engine.connect() as theirs, closing(sqlite3.connect(":memory:")) as ours:
        all_tables.create_all(theirs)
        for (text,) in theirs.exec_driver_sql("SELECT sql FROM sqlite_master WHERE sql NOT LIKE '%sqlite_sequence%'"):
            if text is not None:
                ours.execute(text)
        yield Transaction(ours), theirs
    engine.dispose()


STATEMENTS: list[tuple[Any, Any]] = [
    (insert(streams).values(STREAM).returning(streams), {}),
    (insert(streams).returning(streams), {**STREAM, "name_key": "t"}),
    (insert(runs), {**RUN, "path": "r1", "first_id": 0, "indexed": True}),
    (insert(runs).values(**RUN, path="r2", first_id=2, indexed=False), {}),
    (insert(garbage), FILES),
    (select(streams).order_by(streams.c.id), {}),
    (select(runs.c.indexed, runs.c.path).where(runs.c.stream_id == bindparam("stream")), {"stream": 1}),
    (select(runs.c.path).where(runs.c.indexed), {}),
    (select(runs.c.path).where(runs.c.first_id.between(1, 5)).limit(1), {}),
    (select(runs.c.stream_id, func.max(runs.c.first_id), func.count()).group_by(runs.c.stream_id), {}),
    (select(streams.c.keeps_needed, runs.c.indexed).join_from(streams, runs, streams.c.id == runs.c.stream_id), {}),
    (update(garbage).where(garbage.c.path == bindparam("file")), {"file": "a", "since": 11}),
    (update(runs).values(seq=runs.c.seq + 1).returning(runs.c.seq, runs.c.indexed), {}),
    (delete(garbage).where(garbage.c.since < 2), {}),
    (select(garbage).order_by(garbage.c.path), {}),
]


@pytest.mark.parametrize("prepare", [Prepared, lambda statement: statement])
def test_rows_are_those_of_sqlalchemy(databases: tuple[Transaction, Connection], prepare: Any) -> None:
    ours, theirs = databases
    for statement, values in STATEMENTS:
        result, expected = ours.execute(prepare(statement), values), theirs.execute(statement, values)
        if expected.returns_rows:
            rows, expected_rows = result.all(), expected.all()
            assert [row._asdict() for row in rows] == [row._asdict() for row in expected_rows]
            types = [[type(value) for value in row] for row in rows]
            assert types == [[type(value) for value in row] for row in expected_rows]
        elif not isinstance(values, list):
            assert result.rowcount == expected.rowcount


def test_a_statement_of_one_structure_has_its_own_values(databases: tuple[Transaction, Connection]) -> None:
    ours, _ = databases
    ours.execute(insert(garbage), FILES)
    for paths in (["a"], ["b", "c"], [], ["a", "d", "e", "x"]):
        chosen = select(garbage.c.path).where(garbage.c.path.in_(paths), garbage.c.since >= 0).order_by(garbage.c.path)
        assert ours.execute(chosen).scalars() == [path for path in paths if path != "x"]
    for since in (1, 3):
        assert ours.execute(select(func.count()).where(garbage.c.since < since)).scalar_one() == since
    subquery = select(garbage.c.path).where(garbage.c.since == 2)
    assert ours.execute(select(garbage.c.since).where(garbage.c.path.in_(subquery))).scalar() == 2


def test_defaults_of_columns_are_stored(databases: tuple[Transaction, Connection]) -> None:
    ours, theirs = databases
    values = {"id": "q", "owner": "me", "sql": "", "shape": "", "seq": 1, "registered_at": 0}
    for statement in (insert(queries).values(values), Prepared(insert(queries))):
        ours.execute(statement, {} if statement.__class__ is not Prepared else {**values, "id": "r"})
    theirs.execute(insert(queries).values(values))
    stored = [tuple(row)[1:] for row in ours.execute(select(queries))]
    assert stored == [tuple(theirs.execute(select(queries)).one())[1:]] * 2


def test_rows_without_a_match(databases: tuple[Transaction, Connection]) -> None:
    ours, _ = databases
    nothing = Prepared(select(clauses.c.chosen, clauses.c.text))
    result = ours.execute(nothing)
    assert (result.first(), ours.execute(nothing).scalar(), ours.execute(nothing).all()) == (None, None, [])
    with pytest.raises(ValueError, match="not enough values"):
        ours.execute(nothing).one()
    with pytest.raises(ValueError, match="not enough values"):
        ours.execute(nothing).scalar_one()


def test_values_of_prepared_statements_must_be_given(databases: tuple[Transaction, Connection]) -> None:
    with pytest.raises(KeyError, match="input"):
        databases[0].execute(Prepared(select(query_inputs).where(query_inputs.c.number == bindparam("input"))))


def test_prepared_statements_contain_no_lists(databases: tuple[Transaction, Connection]) -> None:
    with pytest.raises(AssertionError, match="a list in a prepared statement"):
        databases[0].execute(Prepared(select(garbage).where(garbage.c.path.in_(["a", "b"]))))


def test_a_row_that_is_left_unread_does_not_keep_the_transaction(tmp_path: Path) -> None:
    with Catalog(tmp_path, create=True) as catalog:
        with catalog.write() as tx:
            tx.execute(insert(garbage), FILES)
        with catalog.read() as tx:
            rows = iter(tx.execute(select(garbage)))
            next(rows)
        with catalog.write() as tx:
            take_seq(tx)
        # The same connection reads the later commit.
        assert catalog.seq() == 1
        assert len(list(rows)) == len(FILES) - 1


def test_violated_constraints_are_raised_as_such_and_other_errors_as_storage_errors(tmp_path: Path) -> None:
    with Catalog(tmp_path, create=True) as catalog:
        with pytest.raises(sqlite3.IntegrityError), catalog.write() as tx:
            tx.execute(insert(garbage), [FILES[0], FILES[0]])
        with pytest.raises(StorageFailed, match="no such table"), catalog.write() as tx:
            tx.execute_text("DELETE FROM nowhere")
        with catalog.read() as tx:
            assert tx.execute(select(garbage)).all() == []
