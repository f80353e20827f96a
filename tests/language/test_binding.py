"""Rejected queries: class, message, location and hint of the error."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tureen.errors import Location, SqlError, TureenError, TypeMismatch, UnknownColumn, UnknownStream, Unsupported
from tureen.query import Query

Bind = Callable[[str], Query]


@pytest.mark.parametrize(
    ("text", "kind", "message", "location", "hint"),
    [
        ("SELECT prize FROM trades", UnknownColumn, "no column 'prize'", (1, 8), "price"),
        ("SELECT *\nFROM trades\nWHERE qty > 1\n  AND prize > 2", UnknownColumn, "'prize'", (4, 7), "price"),
        ("SELECT x.qty FROM trades", UnknownColumn, "'x' is not the stream", (1, 8), "trades"),
        ("SELECT trades.qty FROM trades t", UnknownColumn, "'trades' is not the stream", (1, 8), "t"),
        ("SELECT * FROM trade", UnknownStream, "no stream 'trade'", (1, 15), "trades"),
        ("SELECT * FROM trades WHERE sym = 5", TypeMismatch, "STRING", (1, 34), "quote the constant"),
        ("SELECT * FROM trades WHERE sym IN ('a', 5)", TypeMismatch, "STRING", (1, 41), "quote the constant"),
        ("SELECT * FROM trades WHERE qty = 'x'", TypeMismatch, "'x' is not a BIGINT", (1, 34), None),
        ("SELECT * FROM trades WHERE day = '2020-02-30'", TypeMismatch, "'2020-02-30' is not a DATE", (1, 34), "2026"),
        ("SELECT * FROM trades WHERE ts > DATE '10000-01-01'", TypeMismatch, "is not a DATE", (1, 38), "9999"),
        ("SELECT * FROM trades WHERE qty", TypeMismatch, "requires a condition", (1, 28), "compare"),
        ("SELECT * FROM trades WHERE NOT qty", TypeMismatch, "requires a condition", (1, 32), "compare"),
        ("SELECT * FROM trades WHERE ok > 5", TypeMismatch, "BOOLEAN", (1, 33), "CAST"),
        ("SELECT * FROM trades WHERE sym + 1 > 2", TypeMismatch, "STRING", (1, 34), None),
        (
            "SELECT * FROM trades WHERE sum(qty) > 5",
            SqlError,
            "the aggregate sum is not allowed in WHERE",
            (1, 28),
            "HAVING",
        ),
        ("SELECT * FROM trades WHERE lenght(sym) > 5", Unsupported, "the function lenght", (1, 28), "length"),
        ("SELECT * FROM trades WHERE read_csv('/etc/passwd') = 1", Unsupported, "read_csv", (1, 28), None),
        ("SELECT * FROM trades WHERE qty > ?", Unsupported, "parameters", (1, 34), "value"),
        ("SELECT * FROM trades WHERE qty > :q", Unsupported, "parameters", (1, 34), "value"),
        ("SELECT medain(qty) FROM trades", Unsupported, "the function medain", (1, 8), "median"),
        ("SELECT * FROM trades WHERE ts > now(5)", Unsupported, "take no arguments", (1, 33), "now()"),
        ("SELECT * FROM trades WHERE qty > 1/0", SqlError, "cannot be evaluated", (1, 34), None),
        ("SELECT * FROM trades, quotes", UnknownStream, "no stream 'quotes'", (1, 23), None),
        ("SELECT DISTINCT sym FROM trades ORDER BY qty", SqlError, "with DISTINCT", (1, 42), "select list"),
        ("SELECT sym, qty FROM trades GROUP BY sym", SqlError, "'qty' must appear in GROUP BY", (1, 13), "GROUP BY"),
        ("SELECT * FROM trades GROUP BY sym", SqlError, "'Venue' must appear in GROUP BY", (1, 8), "GROUP BY"),
        ("SELECT sym, count(*) FROM trades", SqlError, "'sym' must appear in GROUP BY", (1, 8), "GROUP BY"),
        ("SELECT sym FROM trades HAVING qty > 1", SqlError, "'sym' must appear in GROUP BY", (1, 8), "GROUP BY"),
        (
            "SELECT sym FROM trades GROUP BY sym HAVING qty > 1",
            SqlError,
            "'qty' must appear in GROUP BY",
            (1, 44),
            "max(qty)",
        ),
        (
            "SELECT sym FROM trades GROUP BY sym ORDER BY qty",
            SqlError,
            "'qty' must appear in GROUP BY",
            (1, 46),
            "max(qty)",
        ),
        (
            "SELECT sym FROM trades GROUP BY count(*)",
            SqlError,
            "the aggregate count is not allowed in GROUP BY",
            (1, 33),
            "columns",
        ),
        (
            "SELECT count(*) n FROM trades GROUP BY n",
            SqlError,
            "an aggregate is not allowed in GROUP BY",
            (1, 40),
            "HAVING",
        ),
        (
            "SELECT count(*) n FROM trades GROUP BY 1",
            SqlError,
            "an aggregate is not allowed in GROUP BY",
            (1, 40),
            "HAVING",
        ),
        ("SELECT sym FROM trades GROUP BY 2", SqlError, "GROUP BY position 2", (1, 33), "from 1 to 1"),
        ("SELECT sym FROM trades ORDER BY 3", SqlError, "ORDER BY position 3", (1, 33), "from 1 to 1"),
        ("SELECT sym, count(*) FROM trades GROUP BY window_start", UnknownColumn, "window_start", (1, 43), None),
        ("SELECT grouping(sym) FROM trades GROUP BY sym", SqlError, "grouping sets", (1, 8), "ROLLUP"),
        ("SELECT sum(max(qty)) FROM trades", SqlError, "max is not allowed in another aggregate", (1, 12), "nested"),
        ("SELECT sum(sym) FROM trades", TypeMismatch, "sum requires a number, got STRING", (1, 12), "CAST"),
        ("SELECT count_if(qty) FROM trades", TypeMismatch, "count_if requires a condition", (1, 17), "compare"),
        ("SELECT percentile(qty, 2) FROM trades", SqlError, "from 0 to 1", (1, 24), "0.5"),
        ("SELECT skewness(qty) FROM trades", Unsupported, "skewness", (1, 8), None),
        (
            "SELECT count(DISTINCT *) FROM trades",
            SqlError,
            "COUNT\\(DISTINCT \\*\\) is not supported",
            (1, 8),
            "name the columns",
        ),
        ("SELECT sym FROM trades WHERE max(qty) OVER () > 1", SqlError, "WHERE", (1, 30), "QUALIFY"),
        ("SELECT first(qty) FILTER (WHERE ok) FROM trades", Unsupported, "FILTER", (1, 8), "max_by"),
        (
            "SELECT count(*) FROM trades HAVING count(*)",
            TypeMismatch,
            "HAVING requires a condition",
            (1, 36),
            "compare",
        ),
        ("SELECT * FROM trades LIMIT -1", SqlError, "LIMIT", (1, 29), "LIMIT 10"),
        ("SELECT * FROM trades LIMIT qty", SqlError, "LIMIT", (1, 28), "LIMIT 10"),
        ("SELECT * FROM trades LIMIT 5 OFFSET 1.5", SqlError, "OFFSET", (1, 37), "OFFSET 10"),
        ("SELECT NULL FROM trades", SqlError, "untyped NULL", (1, 8), "CAST"),
        ("SELECT INTERVAL '5' MINUTE x FROM trades", Unsupported, "interval", (1, 17), "TIMESTAMP"),
        ("SELECT year() FROM trades", SqlError, "year takes 1 argument, got 0", (1, 8), None),
        ("SELECT log2() FROM trades", SqlError, "log2 takes 1 argument, got 0", (1, 8), None),
        ("SELECT datediff(day) FROM trades", SqlError, "datediff takes 2 arguments, got 1", (1, 8), None),
        ("SELECT to_unix_timestamp() FROM trades", SqlError, "takes 1 argument, got 0", (1, 8), None),
        ("SELECT nvl2(qty, qty) AS x FROM trades", SqlError, "nvl2 takes 3 arguments, got 2", (1, 8), None),
        ("SELECT equal_null(qty, INTERVAL '1' DAY) FROM trades", Unsupported, "interval", (1, 33), None),
        ("SELECT INTERVAL '1' DAY LIKE 'x' FROM trades", TypeMismatch, "got INTERVAL", (1, 17), "CAST"),
        ("SELECT sym FROM trades ORDER BY ALL, qty", SqlError, "ORDER BY ALL", (1, 38), "leave ALL out"),
        ("SELECT lenght(sym) FROM trades", Unsupported, "the function lenght", (1, 8), "length"),
        ("SELECT qty FROM trades EMIT PARTIAL", SqlError, "EMIT PARTIAL", (1, 24), "SLIDE"),
        ("SELECT window_start FROM trades", UnknownColumn, "window_start", (1, 8), None),
        ("SELECT * FROM a.trades", Unsupported, "one part", (1, 15), "trades"),
        ("SELECT qty, qty FROM trades", SqlError, "duplicate column 'qty'", (1, 13), "AS"),
        ("SELECT *, qty FROM trades", SqlError, "duplicate column 'qty'", (1, 11), "AS"),
        ("SELECT FROM trades", SqlError, "empty", (1, 1), "\\*"),
        ("SELECT 1", SqlError, "no stream", (1, 1), "FROM"),
        ("DELETE FROM trades", SqlError, "must start with SELECT", (1, 1), None),
        ("SELECT * FROM trades; SELECT 1", SqlError, "only one statement", (1, 23), None),
        ("SELECT * FROM trades WHERE qty >", SqlError, "missing after '>'", (1, 32), None),
        ("SELECT *\nFROM trades\nWHERE (qty > 1", SqlError, "expected \\)", (3, 14), None),
        ("SELECT a b c FROM trades", SqlError, "'c' is not expected", (1, 12), None),
        ("SELECT * FROM trades WHERE sym = 'a", SqlError, "cannot be read", (1, 36), "not closed"),
        ("", SqlError, "no query", None, "SELECT"),
        (" -- nothing", SqlError, "no query", None, "SELECT"),
    ],
)
def test_error(
    bind: Bind, text: str, kind: type[TureenError], message: str, location: tuple[int, int] | None, hint: str | None
) -> None:
    with pytest.raises(kind, match=message) as caught:
        bind(text)
    assert type(caught.value) is kind
    assert caught.value.location == (Location(*location) if location else None)
    if hint is not None:
        assert caught.value.hint is not None
        assert hint.replace("\\", "") in caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "qty > 1" + ")" * 5000,
        "NOT " * 5000 + "ok",
        "qty" + " + 1" * 5000 + " > 1",
        "CASE WHEN " * 500 + "ok" + " THEN 1 END = 1" * 500,
        "- " * 5000 + "1 > qty",
        " AND ".join(f"{'abs(' * 60}qty{')' * 60} = {i}" for i in range(3)) + "(" * 300,
    ],
)
def test_deep_nesting_is_rejected(bind: Bind, text: str) -> None:
    with pytest.raises(SqlError):
        bind(f"SELECT * FROM trades WHERE {text}")


def test_long_chains_are_accepted(bind: Bind) -> None:
    chain = " OR ".join(f"qty = {2 * i}" for i in range(3000))
    (factor,) = bind(f"SELECT * FROM trades WHERE {chain}").stream.clause
    assert len(factor.intervals) == 3000  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "outputs"),
    [
        ("sym, price", [("sym", "sym"), ("price", "price")]),
        ("PRICE", [("PRICE", "price")]),
        ("price AS p, t.qty q", [("p", "price"), ("q", "qty")]),
        ("(qty)", [("qty", "qty")]),
        ("qty, qty AS again", [("qty", "qty"), ("again", "qty")]),
        ("`a b` AS `c d`", [("c d", "a b")]),
    ],
)
def test_select_list(bind: Bind, text: str, outputs: list[tuple[str, str]]) -> None:
    query = bind(f"SELECT {text} FROM Trades AS t")
    assert query.stream.relation == "trades"
    assert [(output.name, output.value.column) for output in query.outputs] == outputs


@pytest.mark.parametrize("text", ["*", "trades.*", "TRADES.*"])
def test_star(bind: Bind, text: str) -> None:
    assert [output.name for output in bind(f"SELECT {text} FROM trades").outputs][:2] == ["sym", "Venue"]
