"""Any text is bound, or rejected with an error of Tureen."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.errors import TureenError
from tureen.language import bind_query, parse_duration
from tureen.language.binding.calls import NAMES
from tureen.predicate import dump_clause, load_clause
from tureen.query import NamedRelation
from tureen.schema import Schema

SCHEMA = Schema.parse(
    "i INT, j INT, l BIGINT, f FLOAT, d DOUBLE, e DOUBLE, n DECIMAL(10,2), k DECIMAL(17,2), m DECIMAL(38,10), "
    "s STRING, t STRING, dt DATE, du DATE, ts TIMESTAMP, tu TIMESTAMP, b BOOLEAN, c BOOLEAN"
)
CONDITIONS = [
    line
    for line in Path(__file__).with_name("conditions.sql").read_text().splitlines()
    if line and not line.startswith("--") and ": " not in line
]
WINDOWS = ["", "BEGIN NOW - 10 MINUTES END NOW", "BEGIN '2026-01-01' END (NOW - 5 ROWS)", "END NOW - INTERVAL '1' DAY"]
_WORDS = r"""
SELECT * FROM x WHERE i d s ts n b , ( ) [ ] . ; AND OR NOT IN BETWEEN LIKE ESCAPE IS NULL TRUE CASE
WHEN THEN ELSE END BEGIN NOW - + / % || = <=> < 1 1.5 2e400 1e5BD 'a' '1' '%' `i` INTERVAL DAY ROWS
RANGE MINUTES TIMESTAMP DATE '2020-01-01' CAST AS INT DECIMAL(5,2) STRING abs length substring if
coalesce sum :: -- /* */ \ @ ? : ! ~ & | ^ $ # {} => -> LATERAL VIEW explode JOIN ON USING UNION WITH
GROUP BY HAVING ORDER LIMIT DISTINCT OVER ( PARTITION PRECEDING FOLLOWING UNBOUNDED CURRENT ROW rank() OVER
lag(i) sum(d) QUALIFY WINDOW w IGNORE NULLS current_timestamp now() current_date ROLLUP CUBE GROUPING SETS grouping(i)
TUMBLE X'12' r'x' date_add trim extract year(dt) position ARRAY
MAP
"""
WORDS = _WORDS.split()


def check(text: str) -> None:
    """Bind the text, or check that the location of its error is within it."""
    try:
        clause = bind_query(text, lambda _: NamedRelation("x", SCHEMA)).stream.clause
    except TureenError as error:
        clause, location = (), error.location
    else:
        location = None
    if location is not None:
        lines = text.split("\n")
        assert 1 <= location.line <= len(lines)
        assert 1 <= location.column <= len(lines[location.line - 1]) + 1
    assert dump_clause(load_clause(dump_clause(clause))) == dump_clause(clause)


@given(st.text(max_size=200))
@example_settings(60)
def test_any_text(text: str) -> None:
    check(text)


@given(st.text(max_size=60), st.sampled_from(WINDOWS))
@example_settings(60)
def test_any_condition(text: str, window: str) -> None:
    check(f"SELECT * FROM x WHERE {text} {window}")


@given(st.lists(st.sampled_from(WORDS), max_size=25), st.booleans())
@example_settings(150)
def test_any_words(words: list[str], condition: bool) -> None:
    check(("SELECT * FROM x WHERE " if condition else "SELECT ") + " ".join(words))


@given(st.text(max_size=40))
@example_settings(60)
def test_any_duration(text: str) -> None:
    with contextlib.suppress(TureenError):
        assert parse_duration(text) > 0


@pytest.mark.parametrize("seed", range(8))
def test_mutated_conditions(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(150):
        text = f"SELECT i, x.d AS q FROM x WHERE {chance.choice(CONDITIONS)} AND {chance.choice(CONDITIONS)}"
        text = f"{text} {chance.choice(WINDOWS)}"
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(text) + 1)
            cut = at + chance.choice([0, 0, 1, 5])
            text = text[:at] + chance.choice(["", chance.choice(WORDS), chr(chance.randrange(1, 300))]) + text[cut:]
        check(text)


QUERIES = [
    "SELECT i, lag(i, 2, 0) IGNORE NULLS OVER (PARTITION BY s ORDER BY ts DESC NULLS LAST) AS p FROM x QUALIFY p > 1",
    "SELECT sum(d) OVER (ORDER BY ts RANGE BETWEEN INTERVAL 1 MINUTE PRECEDING AND 2 FOLLOWING) FROM x WHERE i > 1",
    "SELECT rank() OVER w, ntile(3) OVER w FROM x WINDOW w AS (ORDER BY n ROWS 2 PRECEDING), v AS (PARTITION BY s)",
    "SELECT s, max(ts) FROM x WHERE tu < NOW AND i > 1 GROUP BY s HAVING max(ts) < NOW - INTERVAL 5 MINUTES",
    "SELECT sum(sum(i)) OVER () AS q FROM x GROUP BY s, current_date QUALIFY q > first_value(s) OVER (ORDER BY s)",
]


@pytest.mark.parametrize("seed", range(4))
def test_mutated_queries(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(150):
        words = chance.choice(QUERIES).split()
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(words))
            words[at : at + chance.randint(0, 2)] = chance.choices([*WORDS, *words], k=chance.randint(0, 2))
        check(" ".join(words))


ARGUMENTS = ["b", "i", "l", "f", "d", "n", "s", "dt", "ts", "NULL", "1", "'x'", "INTERVAL '1' DAY"]


@pytest.mark.parametrize("count", range(5))
def test_any_arguments(count: int) -> None:
    chance = random.Random(count)
    for name in NAMES:
        calls = [[argument] * count for argument in ARGUMENTS] if count else [[]]
        calls += [chance.choices(ARGUMENTS, k=count) for _ in range(5 * (count > 1))]
        for call in calls:
            check(f"SELECT {name}({', '.join(call)}) AS q FROM x")


@pytest.mark.parametrize("op", ["+", "-", "*", "/", "%", "DIV", "=", "<=>", "LIKE", "AND", "||", "&", "<<"])
def test_any_operands(op: str) -> None:
    for left in ARGUMENTS:
        for right in ARGUMENTS:
            check(f"SELECT {left} {op} {right} AS q FROM x")
