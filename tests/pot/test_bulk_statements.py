"""Bulk statements leave the same catalog as statements for one row at a time."""

from __future__ import annotations

from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select

from tests.examples import example_settings
from tests.fast_path_switch import without_fast_paths
from tests.pot.catalog_rows import reproducible, rows_of_tables
from tests.pot.test_registering import compiled, registration, two_streams
from tureen.fast_paths import FastPath
from tureen.pot.bulk_statements import BATCH_ROWS, BulkStatement
from tureen.pot.catalog import Catalog, take_seq
from tureen.pot.catalog_tables import clauses
from tureen.pot.clauses import choosable_clauses, choose_clauses, fail_clauses
from tureen.pot.queries import names_taken
from tureen.pot.query_runs import publish_query_run
from tureen.pot.registered import Registration, Unregistration
from tureen.pot.registering import change_together

Change = Registration | tuple[int, str | None]
"""A query to register; or one to unregister, by the number of its registration, and the owner who asks."""

Group = tuple[list[Change], list[int], list[int], bool]
"""Changes, clauses that the engine makes eager and lazy, and whether it compiles the eager ones."""

registrations = st.builds(
    registration,
    st.integers(0, 5),
    st.sampled_from([True, False, None]),
    st.sampled_from([None, None, "x", "X", "y"]),
    st.sampled_from(["me", "you"]),
    st.integers(1, 2),
)
clause_ids = st.lists(st.integers(1, 12), unique=True, max_size=4)
groups = st.tuples(
    st.lists(registrations | st.tuples(st.integers(0, 20), st.sampled_from([None, "me", "you"])), max_size=9),
    clause_ids,
    clause_ids,
    st.booleans(),
)


def apply(catalog: Catalog, script: list[Group]) -> list[Any]:
    """Run groups of changes; returns their outcomes, and the rows of all tables after each."""
    history: list[Any] = []
    handles: list[str] = []
    for changes, eager, lazy, compiles in script:
        group = [
            change
            if isinstance(change, Registration)
            else Unregistration((handles[change[0] :] or ["nothing"])[0], change[1])
            for change in changes
        ]
        outcomes = change_together(catalog, group)
        registered = zip(group, outcomes, strict=True)
        handles += [str(outcome) for change, outcome in registered if isinstance(change, Registration)]
        with catalog.write() as tx:
            choose_clauses(tx, take_seq(tx), eager, lazy)
            if compiles:
                publish_query_run(tx, 1, [], compiled(tx), take_seq(tx))
            failed = tx.execute(select(clauses.c.number).where(clauses.c.id == 3)).scalar()
            if failed is not None and len(changes) == 5:
                fail_clauses(tx, {failed: "it raised"})
            choosable = choosable_clauses(tx, range(1, 13))
            taken = names_taken(tx, [("me", "x"), ("you", "Y"), ("me", "z")])
            history.append(([repr(outcome) for outcome in outcomes], choosable, taken, rows_of_tables(tx)))
    return history


def play(root: Path, script: list[Group], *, bulk: bool) -> list[Any]:
    """Run a script in a new pot."""
    with (
        reproducible(),
        nullcontext() if bulk else without_fast_paths(FastPath.BULK_STATEMENTS),
        closing(two_streams(root)) as catalog,
    ):
        return apply(catalog, script)


@example_settings(15)
@given(script=st.lists(groups, min_size=1, max_size=8))
def test_catalogs_are_the_same(tmp_path_factory: pytest.TempPathFactory, script: list[Group]) -> None:
    on, off = (play(tmp_path_factory.mktemp("pot"), script, bulk=bulk) for bulk in (True, False))
    assert on == off


def test_catalogs_of_groups_larger_than_a_statement_are_the_same(tmp_path_factory: pytest.TempPathFactory) -> None:
    many = 2 * BATCH_ROWS + 7
    coming: list[Change] = [registration(low % 200, eager=True, name=f"n{low % 250}") for low in range(many)]
    leaving: list[Change] = [(number, None) for number in range(0, many, 2)]
    script: list[Group] = [(coming, [], [], True), (leaving, [1], [2], False)]
    on, off = (play(tmp_path_factory.mktemp("pot"), script, bulk=bulk) for bulk in (True, False))
    assert on == off
    assert len(on[-1][-1]["queries"]) > BATCH_ROWS / 2


@pytest.mark.parametrize(("bulk", "statements"), [(True, 1), (False, 5)])
def test_a_statement_is_executed_once_for_many_rows(tmp_path: Path, bulk: bool, statements: int) -> None:
    texts: list[str] = []
    statement = BulkStatement("UPDATE counter SET seq = seq WHERE seq IN (VALUES {rows})", width=1)
    with (
        nullcontext() if bulk else without_fast_paths(FastPath.BULK_STATEMENTS),
        closing(Catalog(tmp_path, create=True)) as catalog,
        catalog.write() as tx,
    ):
        tx.connection.set_trace_callback(texts.append)
        statement.run(tx, [(number,) for number in range(5)])
    assert len([text for text in texts if text.startswith("UPDATE")]) == statements
