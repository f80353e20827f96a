"""A bound clause holds for exactly the rows for which the condition is TRUE in Spark."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.language.edges import SCHEMA, VALUES, table
from tureen.errors import SqlError
from tureen.language import bind_query
from tureen.language.moments import read_timestamp
from tureen.language.types import as_decimal
from tureen.predicate import AllOf, AnyOf, Clause, Compare, Interval, IsNull, Like, Opaque, Predicate, Within
from tureen.query import NamedRelation
from tureen.schema import Kind, Type
from tureen.window import to_micros


def _key(value: Any, type_: Type) -> Any:
    if value is None:
        return None
    if isinstance(value, datetime):
        return to_micros(value)
    if isinstance(value, date):
        return (value - date(1970, 1, 1)).days
    if isinstance(value, Decimal):
        return int(value.scaleb(type_.scale, Context(prec=100)))
    return int(value) if isinstance(value, bool) else value


_OPS = {"=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


class RowEvaluator:
    """The slow, obvious evaluator, row by row."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self.rows = [
            {column.name: _key(row[column.name], column.type) for column in SCHEMA.columns} for row in table.to_pylist()
        ]
        self.duckdb = duckdb.connect()
        self.duckdb.execute("SET TimeZone='Asia/Tokyo'")
        # DuckDB's optimizer turns i + 1 > 0 into i > -1, which does not raise where Spark does.
        self.duckdb.execute("SET disabled_optimizers = 'expression_rewriter'")
        self.duckdb.register("block", table)

    def holds(self, predicate: Predicate) -> list[bool | None]:
        """Whether the predicate holds, row by row; None if it raises and no other part decides."""
        match predicate:
            case AllOf(parts):
                results = [self.holds(part) for part in parts]
                return [_decided([result[i] for result in results], False) for i in range(len(self.rows))]
            case AnyOf(parts):
                results = [self.holds(part) for part in parts]
                return [_decided([result[i] for result in results], True) for i in range(len(self.rows))]
            case Within(name, intervals):
                return [any(_inside(row[name], interval) for interval in intervals) for row in self.rows]
            case IsNull(name):
                return [row[name] is None for row in self.rows]
            case Compare():
                return [_compares(row, predicate) for row in self.rows]
            case Like(name, pattern, escape, negated):
                word = "NOT LIKE" if negated else "LIKE"
                return self._sql(f'"{name}" {word} $1 ESCAPE $2', [pattern, escape])
            case Opaque(sql):
                return self._sql(sql, [])

    def _sql(self, sql: str, values: list[str]) -> list[bool | None]:
        try:
            answer = self.duckdb.sql(f"SELECT ({sql}) FROM block", params=values).fetchall()
        except duckdb.Error:
            return [self._row(sql, i) for i in range(len(self.rows))]
        return [row[0] is True for row in answer]

    def _row(self, sql: str, i: int) -> bool | None:
        self.duckdb.register("one_row", self.table.slice(i, 1))
        try:
            return self.duckdb.sql(f"SELECT ({sql}) FROM one_row").fetchall()[0][0] is True
        except duckdb.Error:
            return None


def _rank(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode()
    return (value != value, 0 if value != value else value)


def _inside(value: Any, interval: Interval) -> bool:
    if value is None:
        return False
    low = (
        interval.low is None
        or _rank(value) > _rank(interval.low)
        or (not interval.low_open and _rank(value) == _rank(interval.low))
    )
    high = (
        interval.high is None
        or _rank(value) < _rank(interval.high)
        or (not interval.high_open and _rank(value) == _rank(interval.high))
    )
    return low and high


def _decided(parts: list[bool | None], by: bool) -> bool | None:
    if by in parts:
        return by
    return None if None in parts else not by


def _compares(row: dict[str, Any], compare: Compare) -> bool | None:
    left, right = row[compare.left], row[compare.right]
    if left is None or right is None:
        return False
    kinds = [SCHEMA.find(name).type for name in (compare.left, compare.right)]  # type: ignore[union-attr]
    if compare.domain == "double":
        left, right = (
            value / 10**kind.scale if kind.kind is Kind.DECIMAL else float(value)
            for value, kind in zip((left, right), kinds, strict=True)
        )
    elif compare.domain == "decimal":
        left, right = (
            Decimal(value).scaleb(-as_decimal(kind).scale, Context(prec=100))
            for value, kind in zip((left, right), kinds, strict=True)
        )
    if compare.offset:
        right = right + compare.offset
        if compare.domain == "int" and not -(2 ** (compare.limit - 1)) <= right < 2 ** (compare.limit - 1):
            return None
    return bool(_OPS[compare.op](_rank(left), _rank(right)))


_COMPARED = (
    "i-j i-l j-i i-d i-f l-d l-f d-e d-f n-i n-l n-d n-m k-d k-f m-l m-d s-t dt-du ts-tu dt-ts b-c i-i d-d n-k "
    "a-o a-h h-i h-l a-d h-f a-n h-m"
)
_CONSTANTS = re.compile(r"(\w+): (.*)")


def _predicates() -> list[str]:
    predicates: list[str] = []
    for line in Path(__file__).with_name("conditions.sql").read_text().splitlines():
        constants = _CONSTANTS.fullmatch(line)
        if constants:
            for constant in constants.group(2).split("|"):
                column = constants.group(1)
                predicates += [f"{column} {op} {constant}" for op in ("=", "<>", "<", ">=")]
                # These are <= and >, mirrored and negated.
                predicates += [f"{constant} >= {column}", f"NOT ({column} <= {constant})"]
        elif line and not line.startswith("--"):
            predicates.append(line)
    for pair in _COMPARED.split():
        left, right = pair.split("-")
        predicates += [f"{left} {op} {right}" for op in ("=", "<", ">=")]
        predicates += [f"NOT ({left} <= {right})", f"NOT ({left} = {right})"]
    return predicates


PREDICATES = _predicates()


# For thousands of small expressions, interpretation is faster than code generation.
_INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.subexpressionElimination.enabled": "false",
}


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> Iterator[DataFrame]:
    before = {name: spark.conf.get(name) for name in _INTERPRETED}
    for name, value in _INTERPRETED.items():
        spark.conf.set(name, value)
    yield spark.createDataFrame(table(SCHEMA, VALUES)).coalesce(1)
    for name, old in before.items():
        spark.conf.set(name, str(old))


@pytest.fixture(scope="module")
def expected(frame: DataFrame) -> dict[str, list[bool]]:
    answers = frame.selectExpr(*[f"coalesce({text}, FALSE)" for text in PREDICATES]).collect()
    return {text: [row[i] for row in answers] for i, text in enumerate(PREDICATES)}


@pytest.fixture(scope="module")
def evaluator() -> RowEvaluator:
    return RowEvaluator(table(SCHEMA, VALUES))


def test_clause_holds_where_spark_returns_true(expected: dict[str, list[bool]], evaluator: RowEvaluator) -> None:
    wrong = []
    for text in PREDICATES:
        clause = _clause(text)
        outcome = evaluator.holds(AllOf(clause))
        if outcome != expected[text]:
            rows = [i for i in range(len(outcome)) if outcome[i] != expected[text][i]]
            wrong.append(f"{text}: rows {rows[:3]}, such as {evaluator.table.slice(rows[0], 1).to_pylist()}, {clause}")
    assert not wrong, "\n".join(wrong)


def _clause(text: str) -> Clause:
    return bind_query(f"SELECT * FROM x WHERE {text}", lambda _: NamedRelation("x", SCHEMA)).stream.clause


@pytest.mark.parametrize("text", ["l < 9223372036854775808", "l > -9223372036854775809"])
def test_comparison_beyond_integer_range_is_null_for_null(text: str, frame: DataFrame, evaluator: RowEvaluator) -> None:
    # Spark simplifies the comparison to TRUE, even for a NULL; here it is NULL, as in SQL.
    expected = [row[0] for row in frame.selectExpr(f"{text} AND l IS NOT NULL").collect()]
    assert evaluator.holds(AllOf(_clause(text))) == [value is True for value in expected]
    assert all(row[0] for row in frame.selectExpr(text).collect())


@pytest.mark.parametrize(
    "text",
    [
        "i + 1 > 0",
        "a + o > 0",
        "a + 1Y > 0Y",
        "h * 2S > 0",
        "-a > 0",
        "CAST(h AS TINYINT) = 1",
        "i - 1 < 0",
        "i * 2 > 0",
        "-i > 0",
        "abs(i) > 0",
        "l + 1 > 0",
        "i / j > 1",
        "i % j = 1",
        "i div j = 1",
        "d / e > 1",
        "d % e > 1",
        "i > 1 OR i / j > 1",
        "CAST(l AS INT) = 1",
        "CAST(d AS INT) = 1",
        "CAST(d AS BIGINT) = 1",
        "CAST(n AS DECIMAL(4,2)) = 1",
        "CAST(m AS BIGINT) = 1",
        "ceil(d) = 1",
    ],
)
def test_runtime_errors_of_spark_are_errors(text: str, frame: DataFrame, evaluator: RowEvaluator) -> None:
    with pytest.raises(PySparkException):
        frame.selectExpr(text).collect()
    assert None in evaluator.holds(AllOf(_clause(text)))


@pytest.mark.parametrize(
    "text",
    [
        "i = '1.5'",
        "i = 'x'",
        "d = 'x'",
        "dt = '2021-02-29'",
        "ts = '2020-01-01 25:00:00'",
        "ts = '2020-01-02 03:04+01:00'",
        "ts = '2020-01-02T'",
        "b = 'maybe'",
        "ts = 5",
        "dt = 1",
        "b = 1",
        "i = TRUE",
        "i = DATE '2020-01-01'",
        "NOT i",
        "i AND b",
        "d = 1e400",
        "i = 128Y",
        "s LIKE 'a\\\\b'",
        "s LIKE 'a' ESCAPE 'ab'",
        "ts + 1 > ts",
        "l = 1.5e40BD",
        "sum(i) > 1 AND i > 1",
    ],
)
def test_invalid_conditions_of_spark_are_rejected(text: str, frame: DataFrame) -> None:
    with pytest.raises(PySparkException):
        frame.where(text).selectExpr("i").collect()
    with pytest.raises(SqlError):
        _clause(text)


TIMESTAMPS = """
2020
2020-1
2020-01-02
2020-01-02 3
2020-01-02 3:4
2020-01-02 3:4:5
2020-01-02 03:04:05.1234567
2020-01-02T03:04:05Z
2020-01-02 03:04:05 Z
2020-01-02 03:04:05+1
2020-01-02 03:04:05+0130
2020-01-02 03:04:05-01:30
2020-01-02 03:04:05UTC+2
2020-01-02 03:04:05 GMT-03:30
2020-03-29 02:30:00 Europe/Berlin
2020-10-25 02:30:00 Europe/Berlin
2020-01-02 03:04:05+01:00:30
2020-01-02 03:04:05+1:5
2020-01-02 03:04:05.
2020-01-02T3
+2020-01-02
0001-01-01
9999-12-31 23:59:59.999999
"""


def test_timestamps_are_parsed_as_in_spark(spark: SparkSession) -> None:
    texts = TIMESTAMPS.split("\n")[1:-1]
    values = ", ".join(f"(' {text} ')" for text in texts)
    rows = spark.sql(f"SELECT unix_micros(CAST(t AS TIMESTAMP)) FROM VALUES {values} AS x(t)").collect()
    assert [read_timestamp(f" {text} ") for text in texts] == [row[0] for row in rows]


STRINGS = r"""
'a\tb\n\0\b\Z\%\_\q\'\"\\x'
'\u0041\U0001F600\101\12'
'\uD83D\uDE00'
r'a\n'
"a""b"
'it''s'
'a''''b'
'a' 'b'
'a' '' 'b'
''
"""


def test_string_literals_are_parsed_as_in_spark(spark: SparkSession) -> None:
    literals = STRINGS.split("\n")[1:-1]
    row = spark.sql(f"SELECT {', '.join(literals)}").collect()[0]
    for literal, expected in zip(literals, row, strict=True):
        assert _clause(f"s = {literal}") == (Within("s", (Interval(expected, expected),)),), literal
