"""User functions in Spark's workers: clauses that are kept ready are matched when tuples arrive."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import tureen
from tureen.errors import QueryFailed
from tureen.pipeline.arrival import TAIL_ROWS

START = datetime(2026, 1, 1, tzinfo=UTC)


def is_odd(number: int) -> bool:
    return number % 2 == 1


def ends_unless_77(number: int) -> bool:
    while number == 77:
        pass
    return True


def divides(number: int) -> int:
    return 10 // (number - 88)


def test_functions_at_arrival(soup: tureen.Soup) -> None:
    soup.create_stream("numbers", "n INT, ts TIMESTAMP", time="ts", clock="stream")
    soup.create_function("is_odd", is_odd, "BOOLEAN", arguments="INT")
    soup.create_function("ends_unless_77", ends_unless_77, "BOOLEAN", arguments="INT")
    soup.create_function("divides", divides, "INT", arguments="INT")
    odd, endless, raising, plain = (
        soup.register(f"SELECT count(*) AS c FROM numbers WHERE {condition}", materialize=True)
        for condition in ("is_odd(n)", "ends_unless_77(n)", "divides(n) = 0", "n > 99")
    )
    soup.settle()
    rows = [{"n": number, "ts": START + timedelta(seconds=number)} for number in range(2 * TAIL_ROWS)]
    soup.push("numbers", rows)
    soup.settle()
    assert list(odd.invoke()) == [{"c": TAIL_ROWS}]
    assert list(plain.invoke()) == [{"c": 2 * TAIL_ROWS - 100}]
    for query in (odd, plain):
        assert query.explain()["tuples_by_path"] == {"published": 2 * TAIL_ROWS, "owed": 0, "lazy": 0, "tail": 0}
    assert odd.explain()["functions"][0]["called_in"][0].startswith("factor 1 is_odd(n), at arrival")
    with pytest.raises(QueryFailed, match=r"was stopped\n.*\nthe call was ends_unless_77\(77\)"):
        endless.invoke()
    with pytest.raises(QueryFailed, match=r"was stopped\n.*\ndivides\(88\) raised ZeroDivisionError"):
        raising.invoke()
