"""The limits of one evaluation: memory, time, and the length of created texts."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from tureen.errors import LimitExceeded, QueryFailed
from tureen.evaluation import duck
from tureen.evaluation import limits as evaluation
from tureen.language.binding.passes import bind_query
from tureen.query import NamedRelation
from tureen.schema import Schema

ENDLESS = "SELECT sum(rows.id * a.range) AS n FROM rows, range(1000000) a, range(1000000) b"
ROWS = pa.table({"id": range(20), "text": ["x" * 1_000] * 20})
SCHEMA = Schema.parse("id BIGINT, text STRING", time=None)


def output(sql: str) -> str:
    """The DuckDB SQL of an expression."""
    (expression,) = bind_query(f"SELECT {sql} AS it FROM s", lambda _: NamedRelation("s", SCHEMA)).outputs
    return expression.value.sql


def test_evaluation_beyond_the_time_limit_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluations in other threads, and later ones on the same connection, are not affected."""
    monkeypatch.setattr(evaluation, "TIME_LIMIT", 0.2)
    errors: list[LimitExceeded] = []

    def endless() -> None:
        with pytest.raises(LimitExceeded, match=r"the condition took more than 0\.2 seconds") as caught:
            duck.run(ENDLESS, {"rows": ROWS}, "the condition")
        errors.append(caught.value)
        assert duck.run("SELECT count(*) AS n FROM rows", {"rows": ROWS}, "it").column(0).to_pylist() == [20]

    thread = threading.Thread(target=endless)
    thread.start()
    while thread.is_alive():
        assert duck.run("SELECT max(id) AS n FROM rows", {"rows": ROWS}, "it").column(0).to_pylist() == [19]
    thread.join()
    assert [error.code for error in errors] == ["limit_exceeded"]


def test_memory_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """With less memory than usual, which is sooner exceeded; a thread has a connection of its own."""
    assert evaluation.MEMORY_LIMIT == 2 << 30
    monkeypatch.setattr(evaluation, "MEMORY_LIMIT", 128 << 20)
    sql = "SELECT list(a.range) AS n FROM rows, range(100000000) a GROUP BY id"

    def exceed() -> list[int]:
        with pytest.raises(LimitExceeded, match=r"an aggregate needs more than 128 MiB of memory"):
            duck.run(sql, {"rows": ROWS}, "an aggregate")
        answer: list[int] = duck.run("SELECT 1 AS one", {}, "it").column(0).to_pylist()
        return answer

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(exceed).result() == [1]


@pytest.mark.parametrize(
    "sql",
    [
        "replace(rpad(text, 10000, 'xy'), 'x', rpad('a', 10000, 'b'))",
        "length(replace(text, 'x', text))",
        "regexp_replace(text, 'x', repeat('ab', 5000))",
        "regexp_replace(text, '(x)', '$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1')",
        "hex(hex(hex(hex(hex(text)))))",
        "base64(rpad(text, 10000, 'a') || rpad(text, 10000, 'a') || 'a')",
        "repeat(text, 11)",
    ],
)
def test_exploding_texts_are_rejected(sql: str) -> None:
    with pytest.raises(QueryFailed, match="a text of more than 10000 characters"):
        duck.run(f"SELECT {output(sql)} AS it FROM rows", {"rows": ROWS}, "it")


@pytest.mark.parametrize(
    ("sql", "answer"),
    [
        ("replace(text, 'x', 'abcdefghijk')", "abcdefghijk" * 1_000),
        ("replace(text, 'xx', '')", ""),
        ("replace(text, '', 'abc')", "x" * 1_000),
        ("replace(text, 'xy', repeat('ab', 4000))", "x" * 1_000),
        ("replace(text, NULL, 'a')", None),
        ("regexp_replace(text, 'x{100}', repeat('ab', 500))", "ab" * 5_000),
        ("regexp_replace(text, 'y', repeat('ab', 4000))", "x" * 1_000),
        ("regexp_replace(text, '(x)x', '$1$1$1')", "xxx" * 500),
        ("hex(text)", "78" * 1_000),
        ("hex(id)", "0"),
    ],
)
def test_moderately_growing_texts_are_allowed(sql: str, answer: str | None) -> None:
    result = duck.run(f"SELECT {output(sql)} AS it FROM rows LIMIT 1", {"rows": ROWS}, "it")
    assert result.column(0).to_pylist() == [answer]


@pytest.mark.parametrize(
    "sql", ["replace(repeat('a', 9000), 'a', repeat('b', 9000))", "regexp_replace(repeat('a', 9000), 'a', 'bcd')"]
)
def test_exploding_constants_are_rejected(sql: str) -> None:
    with pytest.raises(Exception, match="may add more than 10,000 characters"):
        output(sql)


MANY_TEXTS = r"""
import re, pyarrow as pa
from tureen.evaluation import duck
from tests.evaluation.test_limits import output
rows = pa.table({"id": range(1_200), "text": ["x" * 9_900] * 1_200})
lengths = [output(f"length(concat(rpad(text, 10000, 'a{n}'), rpad(text, 10000, 'b{n}')))") for n in range(20)]
sql = ", ".join(f"{length} AS c{n}" for n, length in enumerate(lengths))
result = duck.run(f"SELECT {sql} FROM rows", {"rows": rows}, "it")
assert {column[-1].as_py() for column in result.columns} == {20_000}
print(int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read()).group(1)) >> 10)
"""


def test_many_long_texts_are_created_in_small_batches() -> None:
    """For all rows at a time, 80 texts of 10,000 characters each would take about 1 GB."""
    process = subprocess.run([sys.executable, "-c", MANY_TEXTS], capture_output=True, text=True, check=True)
    assert int(process.stdout) < 800, "MiB"


def test_processes_can_be_forked_while_threads_have_connections() -> None:
    duck.run("SELECT n + 1 AS n FROM block", {"block": pa.table({"n": [1]})}, "the condition")
    codes: list[int] = []

    def fork() -> None:
        # As pyspark starts its JVM.
        codes.append(subprocess.run(["true"], preexec_fn=lambda: None, check=False).returncode)

    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
    assert codes == [0]
