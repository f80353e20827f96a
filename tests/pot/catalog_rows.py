"""The rows of a catalog, for tests that compare two pots."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import select

from tureen.pot.catalog_tables import clauses, counter, query_inputs, query_runs, streams
from tureen.pot.catalog_tables import queries as standing_queries
from tureen.pot.transaction import Transaction

TABLES = (streams, standing_queries, query_inputs, clauses, query_runs, counter)
"""The tables that registrations read or change."""


def rows_of_tables(tx: Transaction) -> dict[str, list[str]]:
    """The rows of each table, sorted; without the paths of files, which are random."""
    selects = {table.name: select(*(column for column in table.c if column.name != "path")) for table in TABLES}
    return {name: sorted(str(tuple(row)) for row in tx.execute(query)) for name, query in selects.items()}


@contextmanager
def reproducible() -> Iterator[None]:
    """Handles that count up, and registrations all at the same time."""
    handles = (f"{number:032x}" for number in itertools.count())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tureen.pot.queries.new_handle", lambda: next(handles))
        patch.setattr("tureen.pot.queries.micros_now", lambda: 0)
        yield
