"""The answers in the case files are Spark's: over the tuples that the window holds, the SELECT says the same there."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.cases.asking import at_now, bound, in_window, now_of, tuples_of, views_of, windowless
from tests.cases.casefile import Case, CaseFile, Failure, read_files
from tests.cases.playing import cases_of
from tests.cases.tables import Table, differences, in_any_order, type_of

CLOSE = 1e-9
"""By how much a DOUBLE aggregate of Spark may differ."""

LAST_BIT = 5e-16
"""By how much a DOUBLE in `functions.case` may: Java and C do not round every root and logarithm alike."""

NOT_ASKED = 36
"""So many cases at most may say that Spark cannot be asked."""

CASES = cases_of(read_files())
RUNS = [(file, case) for file, case in CASES if isinstance(case.expected, Table) and case.reason is None]
FAILS = [
    (file, case)
    for file, case in CASES
    if isinstance(case.expected, Failure) and case.expected.kind == "QueryFailed" and case.reason is None
]

# Hundreds of small queries: interpreting them is quicker than compiling them, and one partition is enough.
_QUICK = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.leafNodeDefaultParallelism": "1",
}

Ask = Callable[[CaseFile, Case], pa.Table]


def ids_of(cases: list[tuple[CaseFile, Case]]) -> list[str]:
    return [f"{file.name}: {case.name}" for file, case in cases]


@pytest.fixture(scope="module")
def ask(spark: SparkSession) -> Iterator[Ask]:
    """Ask Spark about a case; views stay as they are while the next one has the same tuples."""
    before = {name: spark.conf.get(name, None) for name in _QUICK}
    for name, value in _QUICK.items():
        spark.conf.set(name, value)
    seen: dict[str, pa.Table] = {}

    def answer(file: CaseFile, case: Case) -> pa.Table:
        rows = in_window(bound(file, case).stream.window.span(now_of(file, case)), tuples_of(file))
        text = case.spark or at_now(windowless(case.sql), now_of(file, case))
        for name, table in views_of(file, rows).items():
            if name in text.lower() and not (name in seen and seen[name].equals(table)):
                spark.createDataFrame(table).createOrReplaceTempView(name)
                seen[name] = table
        return spark.sql(text).toArrow()

    yield answer
    for name in seen:
        spark.catalog.dropTempView(name)
    for name, old in before.items():
        if old is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, old)


@pytest.mark.parametrize(("file", "case"), RUNS, ids=ids_of(RUNS))
def test_spark_answers_the_same(ask: Ask, file: CaseFile, case: Case) -> None:
    assert isinstance(case.expected, Table)
    answer = ask(file, case)
    mine = [column.type for column in case.expected.columns]
    theirs = list(answer.schema.types)
    assert [one.arrow for one in mine] == [_as_ours(one, its.arrow) for one, its in zip(theirs, mine, strict=True)]
    found = Table.of(answer.rename_columns([one.name for one in case.expected.columns]).cast(_schema(case.expected)))
    query, expected = bound(file, case), case.expected
    if not query.order and "ORDER BY" not in (case.spark or ""):
        found, expected = in_any_order(found), in_any_order(expected)
    plain = LAST_BIT if file.name == "functions" else 0.0
    assert not differences(found, expected, tolerance=CLOSE if query.grouping or query.overs else plain)


def _as_ours(theirs: pa.DataType, ours: pa.DataType) -> pa.DataType:
    """Spark's type, or ours where Spark's is one that no stream has."""
    try:
        # A list's own field has another name in Spark's.
        theirs = type_of(theirs).arrow
    except KeyError:
        return ours
    return theirs


def _schema(table: Table) -> pa.Schema:
    return pa.schema([(one.name, one.type.arrow) for one in table.columns])


@pytest.mark.parametrize(("file", "case"), FAILS, ids=ids_of(FAILS))
def test_what_fails_while_it_runs_fails_in_spark(ask: Ask, file: CaseFile, case: Case) -> None:
    with pytest.raises(PySparkException):
        ask(file, case)


def test_few_cases_are_not_asked() -> None:
    assert sum(case.reason is not None for _, case in CASES) <= NOT_ASKED
