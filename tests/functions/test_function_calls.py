"""Calls of user functions from DuckDB: results, errors, and calls that never end."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from tureen.errors import LimitExceeded, QueryFailed
from tureen.evaluation.duck import run
from tureen.functions import function_calls, function_workers
from tureen.functions.function_costs import costs
from tureen.functions.function_source import defined_function
from tureen.functions.user_function import UserFunction, sql_name

ROWS = pa.table({"n": pa.array([*range(5000), None], pa.int32())})


def known(
    name: str, body: str, returns: str = "INT", arguments: str = "INT", *, vectorized: bool = False
) -> UserFunction:
    """A function of one parameter that SQL can call."""
    function = defined_function(name, f"def {name}(n):\n    {body}\n", None, returns, arguments, vectorized=vectorized)
    function_calls.know(function)
    return function


def values(function: UserFunction, argument: str = "n", rows: pa.Table = ROWS) -> list[Any]:
    result = run(f"SELECT {sql_name(function)}({argument}) AS value FROM block", {"block": rows}, "the condition")
    listed: list[Any] = result.column(0).to_pylist()
    return listed


@pytest.fixture
def short_limit(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A limit of half a second for a call."""
    monkeypatch.setenv("TUREEN_FUNCTION_SECONDS", "0.5")
    yield
    function_calls._endless._calls.clear()


def test_results_and_costs() -> None:
    plain = known("plain_twice", "return None if n is None else 2 * n")
    vectorized = known(
        "vectorized_twice", "import pyarrow.compute as pc; return pc.multiply(n, 2)", "BIGINT", vectorized=True
    )
    expected = [2 * number for number in range(5000)] + [None]
    assert values(plain) == values(vectorized) == expected
    cost = costs.of(plain.digest)
    assert (cost.calls, cost.errors) == (5001, 0)
    assert cost.seconds > 0
    assert values(plain, rows=ROWS.slice(0, 0)) == []


def test_errors_name_the_call_and_stop_only_their_evaluation() -> None:
    raising = known("divides", "return 1 // (n - 4321)")
    with pytest.raises(QueryFailed, match=r"divides\(4321\) raised ZeroDivisionError: integer") as failed:
        values(raising)
    assert failed.value.message == "the condition raised on some tuple"
    with pytest.raises(QueryFailed, match=r"wrong\(0\) returned '0' of type str, which is not INT"):
        values(known("wrong", "return str(n)"))
    with pytest.raises(QueryFailed, match=r"exits ended its process, with exit code 3 in exits\(0\)"):
        values(known("exits", "import os; os._exit(3)"))
    with pytest.raises(QueryFailed, match=r"stops\(0\) raised SystemExit: 1"):
        values(known("stops", "raise SystemExit(1)"))
    with pytest.raises(QueryFailed, match=r"deep\(0\) raised RecursionError"):
        values(known("deep", "return deep(n)"))
    with pytest.raises(QueryFailed, match=r"big\(0\) raised MemoryError"):
        values(known("big", "return len(bytes(1 << 40))"))
    assert costs.of(raising.digest).errors == 1
    assert values(known("ok", "return 1"))[:2] == [1, 1]


@pytest.mark.usefixtures("short_limit")
@pytest.mark.parametrize(
    "body",
    [
        "while n == 3000: pass",
        "import time\n    if n == 3000: time.sleep(3600)",
        # This holds the lock of the interpreter.
        "import re\n    if n == 3000: re.match('(a+)+$', 'a' * 60 + 'b')",
    ],
)
def test_calls_that_never_end_are_stopped(body: str) -> None:
    endless = known("endless", f"{body}\n    return 1")
    with pytest.raises(LimitExceeded, match=r"did not end within 0.5 seconds\nthe call was endless\(3000\)"):
        values(endless)
    # The same call fails at once; others are made.
    started = len(function_workers.pool._idle)
    with pytest.raises(LimitExceeded, match=r"the call was endless\(3000\)"):
        values(endless, rows=ROWS.slice(3000, 1))
    assert len(function_workers.pool._idle) == started
    assert values(endless, rows=ROWS.slice(0, 10)) == [1] * 10


@pytest.mark.usefixtures("short_limit")
def test_endless_vectorized_calls_are_stopped() -> None:
    with pytest.raises(LimitExceeded, match=r"endless_vectors, which did not end within 0.5 seconds"):
        values(known("endless_vectors", "while True: pass", vectorized=True))


def test_results_that_are_too_large() -> None:
    with pytest.raises(QueryFailed, match="function long_texts returned 195 MiB for 2,048 rows, more than 128 MiB"):
        values(known("long_texts", "return 'x' * 100_000", "STRING"))


def test_functions_of_the_same_name_differ() -> None:
    first, second = known("same", "return 1"), known("same", "return 2")
    table = ROWS.slice(0, 1)
    assert (values(first, rows=table), values(second, rows=table), values(first, rows=table)) == ([1], [2], [1])


def test_calls_in_many_threads() -> None:
    functions = [known(f"thread_{number % 3}", f"return n + {number % 3}") for number in range(9)]
    answers: dict[int, list[Any]] = {}

    def evaluate(number: int) -> None:
        answers[number] = values(functions[number], rows=ROWS.slice(0, 3000))

    threads = [threading.Thread(target=evaluate, args=(number,)) for number in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number: [row + number % 3 for row in range(3000)] for number in range(9)}
    assert len(function_workers.pool._idle) <= function_workers.MOST_WORKERS


def test_functions_print_without_harm_and_cannot_read_input() -> None:
    assert values(known("prints", "import sys; print('out'); return len(sys.stdin.read())"), rows=ROWS.slice(0, 2)) == [
        0,
        0,
    ]


def test_children_of_functions_do_not_answer_for_them() -> None:
    body = "import os; child = os.fork(); child and os.waitpid(child, 0); return n if child else -n"
    forks = known("forks", body)
    for _ in range(2):
        assert values(forks, rows=ROWS.slice(1, 3)) == [1, 2, 3]


def test_a_missing_module_fails_only_its_evaluations() -> None:
    missing = defined_function("missing", None, "not_here:f", "INT", "INT")
    function_calls.know(missing)
    with pytest.raises(QueryFailed, match="function missing cannot be loaded: ModuleNotFoundError: No module named"):
        values(missing)
    assert values(known("ok", "return 1"), rows=ROWS.slice(0, 1)) == [1]


def test_constant_calls_are_not_made_without_rows() -> None:
    raising = known("constant", "raise ValueError(n)")
    sql = f"SELECT {sql_name(raising, constant=True)}(CAST(1 AS INTEGER)) AS value FROM block WHERE n < 0"
    assert run(sql, {"block": ROWS}, "the condition").num_rows == 0
    with pytest.raises(QueryFailed, match=r"constant\(1\) raised ValueError: 1"):
        run(sql.replace("n < 0", "n < 1"), {"block": ROWS}, "the condition")


def test_workers_are_of_this_process() -> None:
    process_of = known("process_of", "import os; return os.getppid()")
    assert set(values(process_of, rows=ROWS.slice(0, 3))) == {os.getpid()}
