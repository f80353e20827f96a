"""The answers of joins in the case files equal DuckDB's for the same SELECT over the tuples in the window."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import duckdb
import pyarrow as pa
import pytest

from tests.cases.casefile import Case, CaseFile, read_files
from tests.cases.runner import cases_of
from tests.cases.spark_input import at_now, bound, now_of, views_of, windowless
from tests.cases.tables import Table, differences, in_any_order

CLOSE = 1e-9
"""The tolerance of DOUBLE aggregates."""

CASES = [
    (file, case)
    for file, case in cases_of(read_files())
    if file.joins and case.judge is None and isinstance(case.expected, Table)
]

DuckAnswer = Callable[[CaseFile, Case], pa.Table]


@pytest.fixture(scope="module")
def duck_answer() -> Iterator[DuckAnswer]:
    """Run a case in DuckDB, with the time zone and the order of NULLs of Spark."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")

        def answer(file: CaseFile, case: Case) -> pa.Table:
            for name, table in views_of(file, case).items():
                connection.register(name, table)
            text = case.spark or at_now(windowless(case.sql), now_of(file, case))
            return connection.sql(text).to_arrow_table()

        yield answer


@pytest.mark.parametrize(("file", "case"), CASES, ids=[f"{file.name}: {case.name}" for file, case in CASES])
def test_answer_equals_duckdb(duck_answer: DuckAnswer, file: CaseFile, case: Case) -> None:
    assert isinstance(case.expected, Table)
    schema = pa.schema([(column.name, column.type.arrow) for column in case.expected.columns])
    actual = Table.of(duck_answer(file, case).rename_columns(schema.names).cast(schema))
    expected = case.expected
    if not bound(file, case).order and "ORDER BY" not in (case.spark or ""):
        actual, expected = in_any_order(actual), in_any_order(expected)
    assert not differences(actual, expected, tolerance=CLOSE)


def test_most_joins_are_judged() -> None:
    assert len(CASES) >= 200
