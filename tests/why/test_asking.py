"""Why tuples are in an answer or not: one example for each reason, and what conditions may be."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tureen.errors import QueryFailed, SqlError, TureenError, TypeMismatch, UnknownColumn, Unsupported
from tureen.soup.tables import Dimensions
from tureen.testing.manual_engine import ManualEngine
from tureen.why.asking import explain_tuples
from tureen.why.explanation import DEFAULT_LIMIT, Explanation
from tureen.window import to_micros

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
WINDOW = " BEGIN NOW - 10 MINUTES END NOW"
JOIN = "FROM trades t JOIN quotes q ON t.sym = q.sym"


def trade(number: int, sym: str | None, price: float | None, qty: int, minutes: float) -> dict[str, Any]:
    """A trade some minutes before noon."""
    return {"id": number, "sym": sym, "price": price, "qty": qty, "ts": NOON - timedelta(minutes=minutes)}


def quote(number: int, sym: str, bid: float, minutes: float) -> dict[str, Any]:
    """A quote some minutes before noon."""
    return {"id": number, "sym": sym, "bid": bid, "ts": NOON - timedelta(minutes=minutes)}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManualEngine]:
    """Trades and quotes up to noon; some of them are pending, one has expired."""
    engine = ManualEngine(tmp_path_factory.mktemp("pot"), lambda: to_micros(NOON))
    engine.create_stream(
        "trades", "id INT, sym STRING, price DOUBLE, qty INT, ts TIMESTAMP", time="ts", retain="1 hour"
    )
    engine.create_stream("quotes", "id INT, sym STRING, bid DOUBLE, ts TIMESTAMP", time="ts")
    engine.push("trades", [trade(1, "IBM", 99.0, 3, 70), trade(2, "IBM", 99.0, 3, 5), trade(3, "IBM", None, 3, 4)])
    engine.append("trades", [trade(4, "SAP", 200.0, 0, 3), trade(5, "IBM", 150.0, 3, 20), trade(6, "IBM", 150.0, 3, 0)])
    engine.push("quotes", [quote(1, "IBM", 100.0, 2), quote(2, "SAP", 99.0, 1.5), quote(3, "SAP", 199.5, 1)])
    Dimensions(engine.catalog).create("limits", "sym STRING, most INT", [{"sym": "IBM", "most": 2}])
    yield engine
    engine.close()


def ask(engine: ManualEngine, sql: str, condition: str, limit: int = DEFAULT_LIMIT, **options: Any) -> Explanation:
    """Why tuples are in the answer of a query that is registered for it."""
    handle = engine.register(sql, materialize=False)
    return explain_tuples(engine.invoker, handle, condition, options.get("now"), limit)


CASES = {
    "in the answer": (f"SELECT sym FROM trades WHERE price > 100{WINDOW}", "id = 6", True, []),
    "false": (
        f"SELECT sym FROM trades WHERE price > 100 AND qty < 5{WINDOW}",
        "id = 2",
        False,
        ["price > 100.0 is false (price = 99.0)"],
    ),
    "unknown": (
        f"SELECT sym FROM trades WHERE price > 100{WINDOW}",
        "id = 3",
        False,
        ["price > 100.0 is unknown (price is NULL)"],
    ),
    "or": (
        f"SELECT sym FROM trades WHERE price > 100 OR qty > 5{WINDOW}",
        "id = 3",
        False,
        ["price > 100.0 OR qty >= 6 is unknown (price is NULL, qty = 3)"],
    ),
    "several factors": (
        f"SELECT sym FROM trades WHERE price > 100 AND sym LIKE 'S%P' AND qty > 5{WINDOW}",
        "id = 2",
        False,
        [
            "price > 100.0 is false (price = 99.0)",
            "qty >= 6 is false (qty = 3)",
            "sym LIKE 'S%P' is false (sym = 'IBM')",
        ],
    ),
    "error": (
        f"SELECT sym FROM trades WHERE sym = 'SAP' AND 10 % qty > 1{WINDOW}",
        "id = 4",
        False,
        ["raises an error (qty = 0): "],
    ),
    "expired": (
        f"SELECT sym FROM trades{WINDOW}",
        "id = 1",
        False,
        ["expired: its time is 0:10:00 before 2026-01-01 11:00:00, from which on tuples are retained"],
    ),
    "before the window": (
        f"SELECT sym FROM trades{WINDOW}",
        "id = 5",
        False,
        ["outside the window: 0:10:00 before it begins at 2026-01-01 11:50:00"],
    ),
    "after the window": (
        "SELECT sym FROM trades BEGIN NOW - 1 HOUR END NOW - 2 MINUTES",
        "id = 6",
        False,
        ["outside the window: 0:02:00 after it ends at 2026-01-01 11:58:00"],
    ),
    "window of rows": (
        "SELECT sym FROM trades [ROWS 2]",
        "id = 2",
        False,
        ["it is tuple 4 from the latest, and the window contains the tuples 1 to 2 from the latest"],
    ),
    "NOW": (
        "SELECT sym FROM trades WHERE ts < NOW - INTERVAL 5 MINUTES",
        "id = 6",
        False,
        ["is false (NOW = 2026-01-01 12:00:00, ts = 2026-01-01 12:00:00)"],
    ),
    "group": (
        f"SELECT sym, count(*) AS n FROM trades GROUP BY sym{WINDOW}",
        "id = 2",
        True,
        ["counts in the group sym = 'IBM'"],
    ),
    "only group": ("SELECT count(*) AS n FROM trades", "id = 2", True, ["counts in the only group"]),
    "having": (
        f"SELECT sym FROM trades GROUP BY sym HAVING count(*) > 1{WINDOW}",
        "id = 4",
        False,
        ["counts in the group sym = 'SAP'", "count(*) > 1 is false (count(*) = 1)"],
    ),
    "step": (
        "SELECT sym, count(*) AS n FROM trades [TUMBLE 5 MINUTES] GROUP BY sym",
        "id = 6",
        False,
        ["no step of the answer contains it: such steps are complete and in the window"],
    ),
    "in a step": (
        "SELECT count(*) AS n FROM trades [TUMBLE 5 MINUTES]",
        "id = 2",
        True,
        ["counts in the group window_start = 2026-01-01 11:55:00, window_end = 2026-01-01 12:00:00"],
    ),
    "limit": (
        f"SELECT id FROM trades ORDER BY id LIMIT 1 OFFSET 1{WINDOW}",
        "id = 6",
        False,
        ["cut by LIMIT 1 OFFSET 1: it is row 4 of 4"],
    ),
    "limit of groups": (
        f"SELECT sym FROM trades GROUP BY sym ORDER BY sym LIMIT 1{WINDOW}",
        "id = 4",
        False,
        ["counts in the group sym = 'SAP'", "cut by LIMIT 1: it is row 2 of 2"],
    ),
    "distinct": (
        f"SELECT DISTINCT sym FROM trades ORDER BY sym LIMIT 1{WINDOW}",
        "id = 6",
        True,
        ["a row equal to its row is in the answer, which has each row once"],
    ),
    "distinct and limit": (
        f"SELECT DISTINCT sym FROM trades ORDER BY sym LIMIT 1{WINDOW}",
        "id = 4",
        False,
        ["cut by LIMIT 1"],
    ),
    "qualify": (
        f"SELECT id FROM trades QUALIFY row_number() OVER (ORDER BY id) = 1{WINDOW}",
        "id = 6",
        False,
        ["removed by QUALIFY, which is not true for its row"],
    ),
    "joined": (f"SELECT t.id {JOIN}{WINDOW}", "t.id = 4", True, ["part of 2 joined rows"]),
    "no equal string": (
        "SELECT t.id FROM trades t JOIN limits l ON t.sym = l.sym",
        "t.id = 4",
        False,
        ["no partner in l: for the nearest of its 1 rows, l.sym = t.sym is false (l.sym = 'IBM', t.sym = 'SAP')"],
    ),
    "no equal time, and another factor": (
        f"SELECT t.id {JOIN} AND t.ts = q.ts AND t.price < q.bid{WINDOW}",
        "t.id = 4",
        False,
        [
            "no partner in q: for the nearest of its 3 rows, 0:01:30 away, q.ts = t.ts is false "
            "(q.ts = 2026-01-01 11:58:30, t.ts = 2026-01-01 11:57:00) and q.bid > t.price is false "
            "(q.bid = 99.0, t.price = 200.0)"
        ],
    ),
    "nearest number": (
        f"SELECT t.id {JOIN} WHERE t.price > q.bid + 1{WINDOW}",
        "q.id = 3",
        False,
        [
            "no partner in t: for the nearest of its 4 rows, 0.5 away, t.price > q.bid + 1.0 is false "
            "(t.price = 200.0, q.bid = 199.5)"
        ],
    ),
    "empty input": (
        f"SELECT t.id {JOIN} WHERE q.bid > 1000{WINDOW}",
        "t.id = 6",
        False,
        ["no partner in q: none of the 3 tuples in its window satisfies its conditions"],
    ),
    "empty window": (
        "SELECT t.id FROM trades t JOIN quotes q [RANGE 5 SECONDS] ON t.sym = q.sym",
        "t.id = 6",
        False,
        ["no partner in q: its window contains no tuple"],
    ),
    "empty side": (
        "SELECT t.id FROM trades t JOIN (quotes q LEFT JOIN limits l ON q.sym = l.sym) ON t.sym = q.sym "
        "WHERE coalesce(l.most, 0) > 5",
        "t.id = 6",
        False,
        ["no partner in q and l: no row satisfies its conditions"],
    ),
    "no partner of a combination": (
        f"SELECT t.id {JOIN} JOIN limits l ON l.most = t.qty - 1 AND l.most > q.bid",
        "t.id = 6",
        False,
        ["no partner in l for t and q: for the nearest of its 1 rows"],
    ),
    "exists": (
        "SELECT t.id FROM trades t WHERE EXISTS (SELECT 1 FROM quotes q WHERE q.sym = t.sym AND q.bid > 150)",
        "t.id = 6",
        False,
        ["no partner in q: for the nearest of its 1 rows, q.sym = t.sym is false"],
    ),
    "not exists": (
        "SELECT t.id FROM trades t WHERE NOT EXISTS (SELECT 1 FROM quotes q WHERE q.sym = t.sym)",
        "t.id = 6",
        False,
        ["it has a partner in q, which NOT EXISTS or NOT IN excludes: q.sym = t.sym"],
    ),
    "only read by a condition": (
        "SELECT t.id FROM trades t WHERE EXISTS (SELECT 1 FROM quotes q WHERE q.sym = t.sym)",
        "q.id = 1",
        False,
        ["only conditions such as EXISTS or IN read this input: its tuples are no part of the answer's rows"],
    ),
    "closer partner": (
        "SELECT q.id FROM quotes q ASOF JOIN trades t ON q.sym = t.sym AND q.ts >= t.ts",
        "t.id = 2",
        False,
        ["its partners in q have a closer one in t, such as t.ts = 2026-01-01 11:56:00"],
    ),
    "outer join": (
        "SELECT t.id, q.id FROM quotes q LEFT JOIN trades t ON q.sym = t.sym AND q.bid = t.price",
        "t.id = 6",
        False,
        ["no partner in q: for the nearest of its 3 rows, 50 away, t.price = q.bid is false"],
    ),
    "filter of an outer join": (
        "SELECT q.id FROM quotes q LEFT JOIN trades t ON q.sym = t.sym WHERE coalesce(t.qty, 9) > 5",
        "q.id = 1",
        False,
        ["is false (t.qty = 3)"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_reasons(engine: ManualEngine, case: str) -> None:
    sql, condition, in_answer, texts = CASES[case]
    (explained,) = ask(engine, sql, condition)
    assert explained.in_answer is in_answer
    assert len(explained.reasons) == len(texts), explained
    for reason, text in zip(explained.reasons, texts, strict=True):
        assert text in reason.text


def test_parts_of_a_reason(engine: ManualEngine) -> None:
    (explained,) = ask(engine, f"SELECT t.id {JOIN} WHERE t.price > q.bid + 1{WINDOW}", "q.id = 3")
    (reason,) = explained.reasons
    assert (explained.input, explained.row["bid"], explained.time) == ("q", 199.5, NOON - timedelta(minutes=1))
    assert (reason.kind, reason.input, reason.factor, reason.truth) == (
        "no partner",
        "t",
        "t.price > q.bid + 1.0",
        "false",
    )
    assert reason.values == {"t.price": 200.0, "q.bid": 199.5}
    assert reason.nearest is not None
    assert (reason.nearest["t.id"], reason.nearest["t.ts"]) == (4, NOON - timedelta(minutes=3))


@pytest.mark.parametrize(
    ("sql", "condition", "distance"),
    [
        (f"SELECT id FROM trades{WINDOW}", "id = 5", 600.0),
        ("SELECT id FROM trades BEGIN NOW - 1 HOUR END NOW - 2 MINUTES", "id = 6", 120.0),
        (f"SELECT id FROM trades{WINDOW}", "id = 1", 600.0),
        ("SELECT id FROM trades [ROWS 2]", "id = 2", 2.0),
        ("SELECT id FROM trades BEGIN NOW - 3 ROWS END NOW - 2 ROWS", "id = 6", 2.0),
        (f"SELECT t.id {JOIN} AND t.ts = q.ts{WINDOW}", "t.id = 4", 90.0),
        (f"SELECT t.id {JOIN} WHERE t.price > q.bid + 1{WINDOW}", "q.id = 3", 0.5),
        (f"SELECT id FROM trades WHERE price > 100{WINDOW}", "id = 2", None),
    ],
)
def test_distance(engine: ManualEngine, sql: str, condition: str, distance: float | None) -> None:
    assert ask(engine, sql, condition).tuples[0].reasons[0].distance == distance


def test_time_of_arrival_is_shown(tmp_path: Path) -> None:
    engine = ManualEngine(tmp_path, lambda: to_micros(NOON))
    engine.create_stream("s", "id INT")
    engine.push("s", [{"id": 1}])
    answer = ask(engine, "SELECT id FROM s WHERE id > 1", "id = 1")
    assert str(answer).splitlines() == [
        "s (id = 1, arrived at 2026-01-01 12:00:00): not in the answer",
        "  id >= 2 is false (id = 1)",
    ]
    engine.close()


def test_latest_tuples_in_order_of_time(engine: ManualEngine) -> None:
    answer = ask(engine, "SELECT id FROM trades", "qty = 3", limit=2)
    assert [explained.row["id"] for explained in answer] == [3, 6]
    assert (answer.total, answer.has_more, len(answer)) == (5, True, 2)
    assert str(answer).splitlines()[-1] == "the latest 2 of 5 tuples that satisfy the condition"
    nothing = ask(engine, "SELECT id FROM trades", "qty = 33")
    assert (str(nothing), nothing.has_more) == ("no tuple of trades satisfies the condition", False)


def test_now_moves_the_window(engine: ManualEngine) -> None:
    sql = f"SELECT id FROM trades{WINDOW}"
    before = to_micros(NOON - timedelta(minutes=15))
    assert [explained.in_answer for explained in ask(engine, sql, "id IN (5, 6)", now=before)] == [True, False]
    assert [explained.in_answer for explained in ask(engine, sql, "id IN (5, 6)")] == [False, True]


def test_rows_of_tables_and_of_queries_in_parentheses(engine: ManualEngine) -> None:
    sql = "SELECT l.sym FROM limits l, (SELECT sym, count(*) AS n FROM trades GROUP BY sym) x WHERE x.n > l.most"
    (table_row,) = ask(engine, sql, "most = 2")
    assert (table_row.in_answer, table_row.time, table_row.row) == (True, None, {"sym": "IBM", "most": 2})
    row = ask(engine, sql, "x.sym = 'SAP'").tuples[0]
    assert (row.in_answer, row.row) == (False, {"sym": "SAP", "n": 1})
    assert "x.n > l.most is false" in row.reasons[0].text.replace("l.most < x.n", "x.n > l.most")


def test_a_query_within_a_query_is_explained_alone(engine: ManualEngine) -> None:
    sql = "SELECT x.sym FROM (SELECT sym FROM trades WHERE qty > 5) x"
    answer = ask(engine, sql, "trades.id = 6")
    assert answer.tuples[0].reasons[0].text == "qty >= 6 is false (qty = 3)"
    assert any("is not explained" in note for note in answer.notes)
    union = f"SELECT sym FROM trades a WHERE qty > 5 UNION SELECT sym FROM quotes b{WINDOW}"
    answer = ask(engine, union, "b.id = 1")
    assert (answer.input, answer.tuples[0].in_answer) == ("b", True)
    assert any("is not explained" in note for note in answer.notes)
    with pytest.raises(SqlError, match="fits several parts of the query, over a and b"):
        ask(engine, union, "sym = 'IBM'")


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


def test_position_is_that_of_an_answer(engine: ManualEngine) -> None:
    handle = engine.register("SELECT id FROM trades", materialize=False)
    assert explain_tuples(engine.invoker, handle, "id = 6", None, 1).position == engine.invoke(handle).position


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
    engine: ManualEngine, condition: str, error: type[TureenError], message: str, hint: str, column: int | None
) -> None:
    with pytest.raises(error) as raised:
        ask(engine, TWO_INPUTS, condition)
    assert message in raised.value.message
    assert hint in (raised.value.hint or "")
    if column is not None:
        assert raised.value.location is not None
        assert raised.value.location.column == column


def test_a_stopped_query_raises(engine: ManualEngine) -> None:
    with pytest.raises(QueryFailed):
        ask(engine, "SELECT 10 % qty AS m FROM trades ORDER BY m LIMIT 1", "id = 4")
