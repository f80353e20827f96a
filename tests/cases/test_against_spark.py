"""The answers in the case files equal Spark's for the same SELECT over the tuples in the window.

Of the cases of joins, Spark runs only those that DuckDB cannot judge (`test_against_duckdb.py`), unless
`TUREEN_EXPLORE` is set. Of the cases that Spark has confirmed (`spark_verdicts.py`), it runs a sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.cases.casefile import Case, CaseFile, Failure, read_files
from tests.cases.runner import cases_of
from tests.cases.spark_input import at_now, bound, now_of, views_of, windowless
from tests.cases.spark_verdicts import Question, Verdicts, verdicts
from tests.cases.tables import Table, differences, in_any_order, type_of
from tests.examples import explores

CLOSE = 1e-9
"""The tolerance of DOUBLE aggregates."""

LAST_BIT = 5e-16
"""The tolerance of DOUBLEs in `functions.case`: Java and C round some roots and logarithms differently."""

MAX_EXCLUDED = 36
"""The maximum number of cases that are not compared with Spark."""

CASES = cases_of(read_files())
JUDGED = [
    (file, case)
    for file, case in CASES
    if case.reason is None and (not file.joins or case.judge == "spark" or explores())
]
RUNS = [(file, case) for file, case in JUDGED if isinstance(case.expected, Table)]
FAILS = [
    (file, case) for file, case in JUDGED if isinstance(case.expected, Failure) and case.expected.kind == "QueryFailed"
]

# For hundreds of small queries, interpretation is faster than code generation, and one partition suffices.
_QUICK = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}

SparkAnswer = Callable[[Question], pa.Table]


def ids_of(cases: list[tuple[CaseFile, Case]]) -> list[str]:
    return [f"{file.name}: {case.name}" for file, case in cases]


def question_of(file: CaseFile, case: Case) -> Question:
    """What Spark is asked, with the views that its text names."""
    text = case.spark or at_now(windowless(case.sql), now_of(file, case))
    return Question(text, {name: view for name, view in views_of(file, case).items() if name in text.lower()})


@pytest.fixture(scope="module")
def confirmed() -> Iterator[Verdicts]:
    with verdicts() as opened:
        yield opened


@pytest.fixture(scope="module")
def spark_answer(spark: SparkSession) -> Iterator[SparkAnswer]:
    """Run a question in Spark; views are kept while the tuples stay the same."""
    before = {name: spark.conf.get(name, None) for name in _QUICK}
    for name, value in _QUICK.items():
        spark.conf.set(name, value)
    seen: dict[str, pa.Table] = {}

    def answer(question: Question) -> pa.Table:
        for name, table in question.views.items():
            if not (name in seen and seen[name].equals(table)):
                # Spark knows that a coalesced table has one partition, and does not shuffle it.
                spark.createDataFrame(table).coalesce(1).createOrReplaceTempView(name)
                seen[name] = table
        return spark.sql(question.text).toArrow()

    yield answer
    for name in seen:
        spark.catalog.dropTempView(name)
    for name, old in before.items():
        if old is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, old)


@pytest.mark.parametrize(("file", "case"), RUNS, ids=ids_of(RUNS))
def test_answer_equals_spark(spark_answer: SparkAnswer, confirmed: Verdicts, file: CaseFile, case: Case) -> None:
    question = question_of(file, case)
    fingerprint = question.fingerprint(case.expected)
    if confirmed.must_ask(fingerprint):
        compare(file, case, spark_answer(question))
        confirmed.new.add(fingerprint)


def compare(file: CaseFile, case: Case, answer: pa.Table) -> None:
    """Compare Spark's answer with the expected one."""
    assert isinstance(case.expected, Table)
    types = [column.type.arrow for column in case.expected.columns]
    assert types == [_as_ours(theirs, ours) for theirs, ours in zip(answer.schema.types, types, strict=True)]
    names = [column.name for column in case.expected.columns]
    actual = Table.of(answer.rename_columns(names).cast(_schema(case.expected)))
    query, expected = bound(file, case), case.expected
    if not query.order and "ORDER BY" not in (case.spark or ""):
        actual, expected = in_any_order(actual), in_any_order(expected)
    plain = LAST_BIT if file.name == "functions" else 0.0
    assert not differences(actual, expected, tolerance=CLOSE if query.grouping or query.overs else plain)


def _as_ours(theirs: pa.DataType, ours: pa.DataType) -> pa.DataType:
    """Spark's type, or ours if streams do not support Spark's."""
    try:
        # The field of a list has another name in Spark.
        theirs = type_of(theirs).arrow
    except KeyError:
        return ours
    return theirs


def _schema(table: Table) -> pa.Schema:
    return pa.schema([(column.name, column.type.arrow) for column in table.columns])


@pytest.mark.parametrize(("file", "case"), FAILS, ids=ids_of(FAILS))
def test_runtime_errors_are_errors_in_spark(
    spark_answer: SparkAnswer, confirmed: Verdicts, file: CaseFile, case: Case
) -> None:
    question = question_of(file, case)
    fingerprint = question.fingerprint(case.expected)
    if confirmed.must_ask(fingerprint):
        # An error within a subquery is not converted to an exception of PySpark.
        with pytest.raises((PySparkException, Py4JJavaError)):
            spark_answer(question)
        confirmed.new.add(fingerprint)


def test_every_confirmed_question_exists(confirmed: Verdicts) -> None:
    """A fingerprint of a case that has changed since is removed by `make judge`."""
    fingerprints = {question_of(file, case).fingerprint(case.expected) for file, case in [*RUNS, *FAILS]}
    assert confirmed.known <= fingerprints, "make judge"
    assert len(fingerprints - confirmed.known) <= len(fingerprints) // 10, "make judge"


def test_few_cases_are_excluded() -> None:
    assert sum(case.reason is not None for _, case in CASES) <= MAX_EXCLUDED
    assert not [case.name for file, case in CASES if file.joins and case.reason is not None]
