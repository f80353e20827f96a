"""Every function and cast has the type, the values and the errors that it has in Spark."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.column import Column as SparkColumn
from sqlglot.dialects.spark import Spark

from tests.language.edges import SCHEMA, VALUES, table
from tureen.errors import SqlError
from tureen.language.binding.bind import bind
from tureen.language.binding.calls import NAMES
from tureen.language.binding.scope import Relation, Scope
from tureen.language.duckdb.raising import can_raise
from tureen.language.duckdb.render import render
from tureen.language.functions.float_texts import float_text
from tureen.language.source import Source
from tureen.language.text.split import tokenize
from tureen.language.tree import Expr, columns_in
from tureen.schema import Schema, Type

WIDE = Schema(
    (
        *SCHEMA.columns,
        *Schema.parse(
            "p INT, q INT, x STRING, y STRING, z DOUBLE, g FLOAT, w DECIMAL(18,2), v DECIMAL(4,3), u DECIMAL(2,2), "
            "name STRING, day DATE, at TIMESTAMP, secs BIGINT, js STRING, pt STRING, wall TIMESTAMP"
        ).columns,
    )
)
_NUMBERS = [
    "1", " 5 ", "+7", "-3", "1.5", "1e3", "", "x", "2147483648", "-9223372036854775808", "9223372036854775808", "1d",
    "2.5F", ".5", "5.", "NaN", "-inf", "Infinity", "+infinity", "1e400", "1e-400", "0x1p3", "\t12\n", "1 2", "007",
    "1.005", "99999999.995", "true", "T", "no", "N", "yes", "0", "tru", "-0", "0.1", None,
]  # fmt: skip
_TIMES = [
    "2020", "2020-1", "2020-02-29", "2021-02-29", " 2020-01-02 ", "2020-01-02 3:4:5", "2020-01-02T03:04:05.1234567",
    "2020-01-02 03:04:05Z", "2020-01-02 03:04:05+01:30", "2020-01-02 03:04:05 -0200", "2020-01-02 24:00:00",
    "2020-13-01", "2020-01-02T", "2020-01-02 x", "x", "", "2020-01-02 03:04:05UTC+2", "2020-01-02 03:04", "+2020-01-02",
    "2020-01-02 03:04:60", "0001-01-01", "9999-12-31 23:59:59.999999", "2020-01-02 03:04:05.", "2020-01-02 03:04+01:00",
    None,
]  # fmt: skip
_DOUBLES = [
    0.5, 1.5, 2.5, -2.5, -0.5, 0.045, 1.005, 2.675, -1.005, 1234.5678, 0.001, 0.0009, 9999999.5, 1e7, 1e-5,
    123456789.125, 4503599627370497.5, 1e16, 1.2345678901234567e20, 1e22, 9.87e-10, 4.35, 0.1, -0.3, 0.0,
    -0.0, 3.0, -7.25, 5e-324, 1.5e300, math.nan, None,
]  # fmt: skip
_NAMES = [
    "hello world", "Hello  WORLD", "a.b.c", "élan vital", "x-y z", "a,b", "b", "aé😀b", "..", "a.", "e\u0301x",
    "a\r\nb", "2024-05-06 id=17", "foo123bar", "CamelCase9", "  pad ", "xxaxx", "ÿ ñ", "line\n", "", "aaaa", "ba",
    "Ωmega", None,
]  # fmt: skip
_JSON = [
    '{"a":1.5,"b":{"c":[1,2.0,{"d":"x"}]},"t":true,"n":null,"s":"q\\u00e9\\n","x y":7,"x.y":8}', "[1,2,[3]]", '"x"',
    "5", "", "abc", '{"a":"","b":[]}', ' {"a" : 5 , "b":"it\'s"} ', "null", '[{"a":1},{"a":2}]', '{"a":1e10,"b":-0.0}',
    '{"a":123456789012345678901234567890}', '{"a":12345678.5,"b":0.0001}', "[]", "{}", '{"a":{"a":{"a":false}}}',
    '{"a":1,"a":2}', None,
]  # fmt: skip
_PATTERNED = [
    "2020-01-02", "2020-1-2", "20200102", "0000-01-02", "2020-02-30", "2020-02-29", " 2020-01-02", "2020-01-02x",
    "2020", "02/01/20", "2020-01-02 03:04:05", "2020-01-02 03:04:05.5", "2020-01-02 24:00:00", "2020-01-02T03:04:05Z",
    "2020-01-02T03:04:05-01:30", "2 jan 2020", "31 Feb 2020", "2 January 2020", "03:04 pm", "12:30 AM", "13:00 PM",
    "1/2/2020 3:4", "", "x", None,
]  # fmt: skip
MORE: dict[str, list[Any]] = VALUES | {
    "js": _JSON,
    "pt": _PATTERNED,
    "wall": [
        None, datetime(2020, 3, 29, 2, 30, tzinfo=UTC), datetime(2020, 10, 25, 2, 30, tzinfo=UTC),
        datetime(2020, 10, 25, 0, 30, tzinfo=UTC), datetime(2020, 3, 29, 1, tzinfo=UTC),
        datetime(1950, 1, 1, tzinfo=UTC), datetime(2036, 7, 1, 12, tzinfo=UTC),
        datetime(2020, 11, 1, 1, 30, tzinfo=UTC), datetime(2020, 3, 8, 2, 30, 0, 5, tzinfo=UTC),
        datetime(2020, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    ],
    "p": [0, 1, 2, 3, -1, -2, 5, 12, 40, None],
    "q": [1, 0, 2, 3, 4, -3, 7, 31, None],
    "x": _NUMBERS,
    "y": _TIMES,
    "z": _DOUBLES,
    "g": [0.5, 1.5, 2.5, 1.005, 0.1, 16777216.0, 1e10, 0.001, 1e-5, 4075054.25, 6067.71875, 1.401298464324817e-45,
          9.80908925027372e-45, 3.4e38, -0.0, math.nan, None],
    "w": [None, *map(Decimal, ["0", "1.00", "3.00", "-7.55", "9999999999999999.99", "0.01", "-0.01", "2.25", "6.66"])],
    "v": [None, *map(Decimal, ["0", "1.005", "-1.005", "2.500", "9.999", "0.001", "-0.125", "3.000"])],
    "u": [None, *map(Decimal, ["0.00", "0.50", "-0.25", "0.99", "0.05"])],
    "name": _NAMES,
    "day": [
        None, date(2020, 1, 31), date(2020, 2, 29), date(2021, 2, 28), date(1999, 12, 31), date(2024, 12, 30),
        date(1, 1, 1), date(1969, 7, 20), date(2023, 3, 30),
    ],
    "at": [
        None, datetime(2020, 1, 31, 23, 59, 59, 999999, tzinfo=UTC), datetime(2020, 2, 29, 0, 0, 0, 1, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 500000, tzinfo=UTC), datetime(2021, 3, 31, 12, 0, 0, 120000, tzinfo=UTC),
        datetime(1, 1, 1, 0, 0, 1, tzinfo=UTC), datetime(2021, 10, 31, 20, tzinfo=UTC),
        datetime(2024, 12, 1, 8, tzinfo=UTC), datetime(2024, 7, 4, 13, 5, 9, 7000, tzinfo=UTC),
    ],
    "secs": [0, 1, -1, 1577836800, 253402300799, -62135596800, 951782400, None],
}  # fmt: skip


@dataclass(frozen=True)
class Line:
    """An expression of the file: `~` allows the last digits to differ, `!` errors where Spark has none."""

    text: str
    near: bool
    may_raise: bool


def _lines() -> list[Line]:
    lines = []
    for line in Path(__file__).with_name("expressions.sql").read_text().splitlines():
        if line and not line.startswith("--"):
            marks, text = re.fullmatch(r"([~!]*) ?(.*)", line).groups()  # type: ignore[union-attr]
            lines.append(Line(text, "~" in marks, "!" in marks))
    return lines


LINES = _lines()

# For many small expressions, interpretation is faster than code generation.
_INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.subexpressionElimination.enabled": "false",
}
Value = tuple[str, Any]
RAISED: Value = ("raised", None)


def bound(text: str) -> Expr:
    source = Source(f"SELECT {text}")
    (tree,) = Spark().parser().parse(tokenize(source), source.text)
    assert tree is not None
    return bind(Scope(source, (Relation(("x",), WIDE),)), tree.expressions[0].unalias())


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return table(WIDE, MORE)


@pytest.fixture(scope="module")
def frame(spark: SparkSession, rows: pa.Table) -> Iterator[DataFrame]:
    before = {name: spark.conf.get(name) for name in _INTERPRETED}
    for name, value in _INTERPRETED.items():
        spark.conf.set(name, value)
    yield spark.createDataFrame(rows).coalesce(1)
    for name, old in before.items():
        spark.conf.set(name, str(old))


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET disabled_optimizers = 'expression_rewriter'")
    yield connection
    connection.close()


def _by_spark(frame: DataFrame, texts: list[str]) -> list[tuple[str, list[Value]]]:
    """The type and the values of each expression. TryEval, used by Spark's try_ functions, catches errors per row."""
    session: Any = frame.sparkSession
    parser, classes = session._jsparkSession.sessionState().sqlParser(), session._jvm.org.apache.spark.sql
    columns = []
    for i, text in enumerate(texts):
        # IF makes the value nullable, which Arrow requires for rows that raise.
        parsed = parser.parseExpression(f"named_struct('v', if(TRUE, {text}, NULL))")
        tried = classes.catalyst.expressions.TryEval(parsed)
        columns.append(SparkColumn(classes.classic.ExpressionUtils.column(tried)).alias(f"c{i}"))
    selected = frame.select(*columns)
    types = [field.dataType.fields[0].dataType.simpleString() for field in selected.schema.fields]  # type: ignore[attr-defined]
    answer = selected.toArrow()
    results = []
    for i, type_name in enumerate(types):
        structs = answer.column(i).combine_chunks()
        values = _values(structs.field(0))
        raised = structs.is_null().to_pylist()
        results.append(
            (type_name, [RAISED if bad else ("value", value) for bad, value in zip(raised, values, strict=True)])
        )
    return results


def _values(array: Any) -> list[Any]:
    """Python values; times as numbers, because Python does not support every year."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.timestamp("us")).cast(pa.int64())
    if pa.types.is_date(array.type):
        array = array.cast(pa.int32())
    return list(array.to_pylist())


def _by_us(connection: duckdb.DuckDBPyConnection, rows: pa.Table, sql: str, theirs: list[Value]) -> list[Value]:
    """The values of the rows; equal rows are evaluated once.

    Rows that raise in Spark are evaluated one by one, because they will raise here too, and the others together.
    """
    texts = [repr(row) for row in zip(*(_values(column) for column in rows.columns), strict=True)]
    first = {text: index for index, text in reversed(list(enumerate(texts)))}
    together = [index for index in first.values() if theirs[index] != RAISED]
    parts = [together, *([index] for index in first.values() if theirs[index] == RAISED)]
    values = {
        index: value
        for part in parts
        if part
        for index, value in zip(part, _evaluated(connection, rows.take(part), sql), strict=True)
    }
    return [values[first[text]] for text in texts]


def _evaluated(connection: duckdb.DuckDBPyConnection, rows: pa.Table, sql: str) -> list[Value]:
    """The values; if a row raises, those of each half."""
    connection.register("block", rows)
    try:
        answer = connection.execute(f"SELECT ({sql}) AS v FROM block").to_arrow_table()
    except duckdb.Error:
        if rows.num_rows == 1:
            return [RAISED]
        half = rows.num_rows // 2
        return _evaluated(connection, rows.slice(0, half), sql) + _evaluated(connection, rows.slice(half), sql)
    return [("value", value) for value in _values(answer.column(0))]


def _agree(ours: Value, theirs: Value, line: Line) -> bool:
    if ours == RAISED or theirs == RAISED:
        return ours == theirs or (ours == RAISED and line.may_raise)
    left, right = ours[1], theirs[1]
    if isinstance(left, float) and isinstance(right, float):
        if left != left or right != right:
            return left != left and right != right
        if line.near:
            return math.isclose(left, right, rel_tol=1e-12, abs_tol=1e-300)
        return left == right and math.copysign(1, left) == math.copysign(1, right)
    return type(left) is type(right) and bool(left == right)


def _wrong(line: Line, ours: list[Value], theirs: list[Value], rows: pa.Table) -> list[str]:
    bad = [i for i in range(len(ours)) if not _agree(ours[i], theirs[i], line)]
    if not bad:
        return []
    names = [name for name in rows.column_names if re.search(rf"\b{name}\b", line.text)]
    shown = [f"{rows.select(names).slice(i, 1).to_pylist()}: here {ours[i]}, Spark {theirs[i]}" for i in bad[:4]]
    return [f"{line.text}: {len(bad)} rows, such as\n    " + "\n    ".join(shown)]


# The copy costs less than binding each query a second time, which `sql` does.
@pytest.mark.filterwarnings("ignore:Arrow output on a DB-API result")
def test_expressions_equal_spark(frame: DataFrame, connection: duckdb.DuckDBPyConnection, rows: pa.Table) -> None:
    wrong: list[str] = []
    answers = _by_spark(frame, [line.text for line in LINES])
    for line, (type_name, theirs) in zip(LINES, answers, strict=True):
        try:
            expr = bound(line.text)
        except SqlError as error:
            wrong.append(f"{line.text}: {error}")
            continue
        assert expr.type is not None, line.text
        if Type.parse(type_name) != expr.type:
            wrong.append(f"{line.text}: here {expr.type.sql}, Spark {type_name}")
        # At least one column, to have rows.
        values = _by_us(connection, rows.select(columns_in(expr) or ("i",)), render(expr), theirs)
        wrong += _wrong(line, values, theirs, rows)
        if RAISED in values and not can_raise(expr):
            wrong.append(f"{line.text}: raises, although can_raise is false")
    assert not wrong, "\n".join(wrong)


def test_every_function_is_covered() -> None:
    texts = "\n".join(line.text for line in LINES)
    assert [name for name in NAMES if not re.search(rf"\b{name}\b *\(", texts, re.IGNORECASE)] == []


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("str_position(s, t)", "the function str_position is not supported", None),
        ("leftt(s, 1)", "leftt", "left"),
        ("rand()", "rand", None),
        ("date_part(s, at)", "requires a constant field", "HOUR"),
        ("instr(s, t, 2)", "takes 2 arguments", "locate"),
        ("regexp_replace(s, 'a', 'b', 2)", "these arguments", None),
        ("initcap(s, 'x')", "these arguments", None),
        ("ceil(z, 1)", "these arguments", None),
        ("decode(s, 'utf-8')", "these arguments", None),
        ("round(z, p)", "round does not accept an INT", "constant"),
        ("round(z, 19)", "the scale of round must be from -18 to 18", None),
        ("bround(z, 5)", "must be from 0 to 4", "round"),
        ("round(s)", "does not accept a STRING", "CAST"),
        ("substring(s, l)", "does not accept a BIGINT", "CAST"),
        ("substring(s)", "takes 2 or 3 arguments, got 1", None),
        ("substring_index(s, 'aa', 1)", "overlap itself", "split_part"),
        ("substring_index(s, t, 1)", "does not accept a STRING", "constant"),
        ("sha2(s, 512)", "256", None),
        ("date_format(at, 'yyyy QQ')", "'QQ' in a pattern", "letters are"),
        ("date_format(at, s)", "the pattern must be a constant", "as a literal"),
        ("date_trunc(s, at)", "the unit must be a constant", "HOUR"),
        ("to_date(s, 'QQ')", "'QQ' in a pattern", "letters are"),
        ("to_date(s, t)", "the pattern must be a constant", "yyyy-MM-dd"),
        ("to_timestamp(s, 'yyyyM')", "'yyyyM' in a pattern is ambiguous", "literal character"),
        ("to_timestamp(s, 'hh:mm')", "HH, or hh with a", "HH"),
        ("to_timestamp(s, 'yyyy yyyy')", "duplicate 'yyyy'", None),
        ("to_timestamp(i, 'yyyy')", "requires a STRING", "CAST"),
        ("unhex(s)", "BINARY", "CAST"),
        ("CAST(unhex(i) AS STRING)", "requires a STRING", None),
        ("get_json_object(s, t)", "the path must be a constant", None),
        ("get_json_object(s, '$[*]')", "'*' in a JSON path", "name a single value"),
        ("from_utc_timestamp(at, 'Nope/Zone')", "unknown time zone", None),
        ("from_utc_timestamp(at, 'Europe/Berln')", "unknown time zone", "Europe/Berlin"),
        ("to_utc_timestamp(at, s)", "the time zone must be a constant", None),
        ("at AT TIME ZONE 'UTC'", "AT TIME ZONE", "from_utc_timestamp"),
        ("unix_timestamp(s)", "STRING", None),
        ("unix_timestamp(s, 'yyyy')", "one DATE or TIMESTAMP", "cast"),
        ("extract(EPOCH FROM at)", "'EPOCH'", None),
        ("next_day(day, 'x')", "not a day of the week", "MONDAY"),
        ("dateadd(DECADE, 1, at)", "not a unit", "units are"),
        ("at - ts", "difference of two dates or timestamps", None),
        ("m * 0.00000000000000000000000000001", "more than 38 digits", "DOUBLE"),
        ("pmod(n, 3)", "pmod of DECIMAL", "%"),
        ("try_add(n, 1)", "try_add requires integers", "CAST"),
        ("TRY_CAST(y AS TIMESTAMP)", "CAST from STRING to TIMESTAMP", None),
        ("CAST(dt AS INT)", "CAST from DATE to INT", None),
        ("CAST(b AS DATE)", "CAST from BOOLEAN to DATE", None),
        ("regexp_extract(s, 'a', 1)", "no group 1", None),
        ("regexp_extract(s, '(a)+', 1)", "repeated group", None),
        ("regexp_replace(s, 'a*', 'b')", "empty matches", None),
        ("regexp_replace(s, 'a', '$1')", "number of a group", "$1"),
        ("date_add(DATE '9999-12-31', 1)", "beyond the years", None),
    ],
)
def test_error(text: str, message: str, hint: str | None) -> None:
    with pytest.raises(SqlError) as caught:
        bound(text)
    assert message in caught.value.message
    assert hint is None or hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    "pattern",
    [r"\\bx", "(?i)a", "(?=a)", "a++", "a**", "(a*)*", "a{1001}", "a{2,1}", "[[a]]", "[a&&b]", "a^b", "a$b", "^a|b",
     "a|b$", r"\\1", r"\\p{L}", "(a", "a)", "[a", "*a", "a{x}", "[z-a]", r"\\Qa\\E", "(?<n>a)", "^*a", r"[\\b]"],
)  # fmt: skip
def test_ambiguous_regular_expressions_are_rejected(pattern: str) -> None:
    with pytest.raises(SqlError):
        bound(f"s RLIKE '{pattern}'")


def _java_text(value: Any) -> str:
    """A FLOAT or DOUBLE as Java 19 formats it."""
    mantissa, _, power = np.format_float_scientific(abs(value), unique=True, trim="-").partition("e")
    digits, exponent = mantissa.replace(".", ""), int(power)
    if len(digits) == 1:
        exact = Fraction(float(abs(value)))
        exponent -= exact < Fraction(10) ** exponent
        digits = str(round(exact / Fraction(10) ** (exponent - 1)))
        exponent += len(digits) - 2
        digits = digits[:2].rstrip("0")
    sign = "-" if value < 0 else ""
    if not type(value)("0.001") <= abs(value) < 1e7:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"
    digits = "0" * -exponent + digits.ljust(exponent + 1, "0")
    point = max(exponent, 0) + 1
    return f"{sign}{digits[:point]}.{digits[point:] or '0'}"


@pytest.mark.parametrize(("single", "bits"), [(True, 32), (False, 64)])
def test_floats_are_formatted_as_in_java(connection: duckdb.DuckDBPyConnection, single: bool, bits: int) -> None:
    chance = random.Random(7)
    kind, raw = (np.float32, np.uint32) if single else (np.float64, np.uint64)
    any_bits = np.array([chance.getrandbits(bits) for _ in range(3000)], raw).view(kind)
    halves = np.array([chance.randint(1, 2**53) / 2 ** chance.randint(0, 60) for _ in range(3000)], kind)
    smallest = np.arange(1, 300, dtype=raw).view(kind)
    values = np.concatenate([any_bits, halves, smallest])
    values = values[np.isfinite(values) & (values != 0)]
    connection.register("numbers", pa.table({"v": values}))
    texts = connection.sql(f"SELECT {float_text(single).replace('{0}', 'v')} FROM numbers").fetchall()
    assert [text for (text,) in texts] == [_java_text(value) for value in values]
