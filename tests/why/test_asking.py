"""Why tuples are in an answer or not: one example for each reason."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tests.why.market import JOIN, NOON, WINDOW, ask
from tureen.errors import QueryFailed, SqlError
from tureen.testing.manual_engine import ManualEngine
from tureen.why.asking import explain_tuples
from tureen.window import to_micros

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
def test_reasons(market: ManualEngine, case: str) -> None:
    sql, condition, in_answer, texts = CASES[case]
    (explained,) = ask(market, sql, condition)
    assert explained.in_answer is in_answer
    assert len(explained.reasons) == len(texts), explained
    for reason, text in zip(explained.reasons, texts, strict=True):
        assert text in reason.text


def test_parts_of_a_reason(market: ManualEngine) -> None:
    (explained,) = ask(market, f"SELECT t.id {JOIN} WHERE t.price > q.bid + 1{WINDOW}", "q.id = 3")
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
def test_distance(market: ManualEngine, sql: str, condition: str, distance: float | None) -> None:
    assert ask(market, sql, condition).tuples[0].reasons[0].distance == distance


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


def test_a_query_within_a_query_is_explained_alone(market: ManualEngine) -> None:
    sql = "SELECT x.sym FROM (SELECT sym FROM trades WHERE qty > 5) x"
    answer = ask(market, sql, "trades.id = 6")
    assert answer.tuples[0].reasons[0].text == "qty >= 6 is false (qty = 3)"
    assert any("is not explained" in note for note in answer.notes)
    union = f"SELECT sym FROM trades a WHERE qty > 5 UNION SELECT sym FROM quotes b{WINDOW}"
    answer = ask(market, union, "b.id = 1")
    assert (answer.input, answer.tuples[0].in_answer) == ("b", True)
    assert any("is not explained" in note for note in answer.notes)
    with pytest.raises(SqlError, match="fits several parts of the query, over a and b"):
        ask(market, union, "sym = 'IBM'")


def test_position_is_that_of_an_answer(market: ManualEngine) -> None:
    handle = market.register("SELECT id FROM trades", materialize=False)
    assert explain_tuples(market.invoker, handle, "id = 6", None, 1).position == market.invoke(handle).position


def test_a_stopped_query_raises(market: ManualEngine) -> None:
    with pytest.raises(QueryFailed):
        ask(market, "SELECT 10 % qty AS m FROM trades ORDER BY m LIMIT 1", "id = 4")
