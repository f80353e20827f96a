"""The tuples that a condition asks about: order and number, time, tables and blocks; and errors of conditions."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tests.why.market import JOIN, NOON, WINDOW, ask
from tureen.errors import SqlError, TureenError, TypeMismatch, UnknownColumn, Unsupported
from tureen.testing.manual_engine import ManualEngine
from tureen.window import to_micros


def test_latest_tuples_in_order_of_time(market: ManualEngine) -> None:
    answer = ask(market, "SELECT id FROM trades", "qty = 3", limit=2)
    assert [explained.row["id"] for explained in answer] == [3, 6]
    assert (answer.total, answer.has_more, len(answer)) == (5, True, 2)
    assert str(answer).splitlines()[-1] == "the latest 2 of 5 tuples that satisfy the condition"
    nothing = ask(market, "SELECT id FROM trades", "qty = 33")
    assert (str(nothing), nothing.has_more) == ("no tuple of trades satisfies the condition", False)


def test_now_moves_the_window(market: ManualEngine) -> None:
    sql = f"SELECT id FROM trades{WINDOW}"
    before = to_micros(NOON - timedelta(minutes=15))
    assert [explained.in_answer for explained in ask(market, sql, "id IN (5, 6)", now=before)] == [True, False]
    assert [explained.in_answer for explained in ask(market, sql, "id IN (5, 6)")] == [False, True]


def test_rows_of_tables_and_of_queries_in_parentheses(market: ManualEngine) -> None:
    sql = "SELECT l.sym FROM limits l, (SELECT sym, count(*) AS n FROM trades GROUP BY sym) x WHERE x.n > l.most"
    (table_row,) = ask(market, sql, "most = 2")
    assert (table_row.in_answer, table_row.time, table_row.row) == (True, None, {"sym": "IBM", "most": 2})
    row = ask(market, sql, "x.sym = 'SAP'").tuples[0]
    assert (row.in_answer, row.row) == (False, {"sym": "SAP", "n": 1})
    assert "x.n > l.most is false" in row.reasons[0].text.replace("l.most < x.n", "x.n > l.most")


def test_expired_tuples_cannot_be_examined(tmp_path: Path) -> None:
    engine = ManualEngine(tmp_path, lambda: to_micros(NOON))
    engine.create_stream("s", "id INT, ts TIMESTAMP", time="ts", retain="1 minute")
    for minutes in (10, 1, 0):
        engine.push("s", [{"id": minutes, "ts": NOON - timedelta(minutes=minutes)}])
    assert [explained.in_answer for explained in ask(engine, "SELECT id FROM s", "TRUE")] == [False, True, True]
    engine.expire()
    answer = ask(engine, "SELECT id FROM s", "TRUE")
    assert [explained.row["id"] for explained in answer] == [1, 0]
    assert "before 2026-01-01 11:59:00 have expired" in answer.notes[0]
    engine.close()


def test_tuples_of_the_same_time_are_counted_by_their_ids(tmp_path: Path) -> None:
    engine = ManualEngine(tmp_path, lambda: to_micros(NOON))
    engine.create_stream("s", "id INT, ts TIMESTAMP", time="ts")
    for number in range(4):
        (engine.append if number == 3 else engine.push)("s", [{"id": number, "ts": NOON}] * (1 + number % 2))
    answer = ask(engine, "SELECT id FROM s [ROWS 1]", "TRUE")
    numbers = [explained.reasons[0].text.split()[6] for explained in answer if explained.reasons]
    assert ([explained.row["id"] for explained in answer], numbers) == ([0, 1, 1, 2, 3, 3], ["6", "5", "4", "3", "2"])
    assert answer.tuples[-1].in_answer
    engine.close()


def test_steps_of_rows_with_the_same_time(tmp_path: Path) -> None:
    engine = ManualEngine(tmp_path, lambda: to_micros(NOON))
    engine.create_stream("s", "id INT, ts TIMESTAMP", time="ts")
    engine.push("s", [{"id": number, "ts": NOON} for number in range(4)])
    answer = ask(engine, "SELECT count(*) AS n FROM s [ROWS 2 SLIDE 1] LIMIT 1", "TRUE")
    assert [explained.in_answer for explained in answer] == [True, True, False, False]
    engine.close()


TWO_INPUTS = f"SELECT t.id {JOIN}"


@pytest.mark.parametrize(
    ("condition", "error", "message", "hint", "column"),
    [
        ("sym = 'IBM'", SqlError, "column 'sym' is ambiguous", "write t.sym or q.sym", 1),
        ("t.id = 1 AND q.id = 2", Unsupported, "must concern one input, got t and q", "one input at a time", 1),
        ("1 = 1", SqlError, "names no input", "compare a column of t or q", 1),
        ("qty > 1 AND t.prize > 3", UnknownColumn, "no column 'prize'", "did you mean 'price'", 13),
        ("x.price > 3", UnknownColumn, "'x' is not an input of this query", "", 1),
        ("price", TypeMismatch, "requires a condition, got a DOUBLE", "compare it", 1),
        ("qty > 'x' AND", SqlError, "", "", None),
        ("price > 1 GROUP BY sym", SqlError, "only a condition is allowed", "", 1),
        ("t.ts > NOW - INTERVAL 5 MINUTES", Unsupported, "NOW is not supported", "TIMESTAMP", 1),
        ("", SqlError, "the condition is empty", "", None),
        ("t.id IN (SELECT 1)", Unsupported, "IN requires a list", "", None),
    ],
)
def test_errors_of_conditions(
    market: ManualEngine, condition: str, error: type[TureenError], message: str, hint: str, column: int | None
) -> None:
    with pytest.raises(error) as raised:
        ask(market, TWO_INPUTS, condition)
    assert message in raised.value.message
    assert hint in (raised.value.hint or "")
    if column is not None:
        assert raised.value.location is not None
        assert raised.value.location.column == column
