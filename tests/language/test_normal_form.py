"""The clause of a WHERE condition; equivalent conditions have equal clauses."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from tureen.predicate import (
    EVERYTHING,
    NEVER,
    AnyOf,
    Clause,
    Compare,
    Interval,
    IsNull,
    Like,
    Opaque,
    Within,
    dump_clause,
    load_clause,
)

Where = Callable[[str], Clause]
DAY = 86_400_000_000
_2020 = 18262


def within(column: str, *intervals: Interval) -> Clause:
    return (Within(column, intervals),)


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("TRUE", ()),
        ("1 = 1", ()),
        ("FALSE", (NEVER,)),
        ("NULL", (NEVER,)),
        ("qty = NULL", (NEVER,)),
        ("NOT (qty = NULL)", (NEVER,)),
        ("qty = 5", within("qty", Interval(5, 5))),
        ("QTY == 5", within("qty", Interval(5, 5))),
        ("venue = 'X'", within("Venue", Interval("X", "X"))),
        ("trades.qty > 5", within("qty", Interval(6))),
        ("qty >= 5", within("qty", Interval(5))),
        ("qty < 5", within("qty", Interval(None, 4))),
        ("qty <> 5", within("qty", Interval(None, 4), Interval(6))),
        ("qty != 5", within("qty", Interval(None, 4), Interval(6))),
        ("qty <=> 5", within("qty", Interval(5, 5))),
        ("qty > 2147483647", (NEVER,)),
        ("qty >= 2147483647", within("qty", Interval(2147483647, 2147483647))),
        ("qty <= 2147483647", within("qty", EVERYTHING)),
        ("qty > 3000000000", (NEVER,)),
        ("qty < 3000000000", within("qty", EVERYTHING)),
        ("qty > 1.5", within("qty", Interval(2))),
        ("qty = 1.5", (NEVER,)),
        ("qty <> 1.5", within("qty", EVERYTHING)),
        ("qty BETWEEN 1 AND 5", within("qty", Interval(1, 5))),
        ("qty NOT BETWEEN 1 AND 5", within("qty", Interval(None, 0), Interval(6))),
        ("qty BETWEEN 5 AND 1", (NEVER,)),
        ("qty IN (3, 1, 2, 7)", within("qty", Interval(1, 3), Interval(7, 7))),
        ("qty NOT IN (1, 3)", within("qty", Interval(None, 0), Interval(2, 2), Interval(4))),
        ("qty IN (1, NULL)", within("qty", Interval(1, 1))),
        ("qty NOT IN (1, NULL)", (NEVER,)),
        ("qty IS NULL", (IsNull("qty"),)),
        ("qty IS NOT NULL", within("qty", EVERYTHING)),
        ("qty IS NULL OR qty IS NOT NULL", ()),
        ("qty IS NULL AND qty > 1", (NEVER,)),
        ("qty > 5 AND qty < 3", (NEVER,)),
        ("qty > 5 OR qty <= 5", within("qty", EVERYTHING)),
        ("big = 9007199254740992D", within("big", Interval(9007199254740992, 9007199254740993))),
        ("price > 100", within("price", Interval(100.0, None, True))),
        ("price <> 1", within("price", Interval(None, 1.0, False, True), Interval(1.0, None, True))),
        ("price = -0.0D", within("price", Interval(0.0, 0.0))),
        ("price >= CAST('NaN' AS DOUBLE)", within("price", Interval(math.nan, math.nan))),
        ("price < double('NaN')", within("price", Interval(None, math.nan, False, True))),
        ("price > double('NaN')", (NEVER,)),
        ("price <= double('NaN')", within("price", EVERYTHING)),
        ("ratio = 0.1", within("ratio", Interval(0.1, 0.1))),
        ("ratio = 0.1F", within("ratio", Interval(0.10000000149011612, 0.10000000149011612))),
        ("net = 1.5", within("net", Interval(150, 150))),
        ("net > 1.234", within("net", Interval(124))),
        ("net = 1.234", (NEVER,)),
        ("net >= 1e3", within("net", Interval(100000))),
        ("day = '2020-01-01'", within("day", Interval(_2020, _2020))),
        ("day > TIMESTAMP '2020-01-01 12:00:00'", within("day", Interval(_2020 + 1))),
        ("day = TIMESTAMP '2020-01-01 12:00:00'", (NEVER,)),
        ("ts >= DATE '2020-01-01'", within("ts", Interval(_2020 * DAY))),
        ("ts = '2020-01-01 01:00:00+01:00'", within("ts", Interval(_2020 * DAY, _2020 * DAY))),
        ("ts > TIMESTAMP '2020-01-31' + INTERVAL 1 MONTH", within("ts", Interval((_2020 + 59) * DAY + 1))),
        ("ok", within("ok", Interval(1, 1))),
        ("NOT ok", within("ok", Interval(0, 0))),
        ("ok = FALSE", within("ok", Interval(0, 0))),
        ("ok IS NOT TRUE", (AnyOf((Within("ok", (Interval(0, 0),)), IsNull("ok"))),)),
        ("sym LIKE 'ab'", within("sym", Interval("ab", "ab"))),
        ("sym LIKE 'ab%'", within("sym", Interval("ab", "ac", False, True))),
        ("sym LIKE '%'", within("sym", EVERYTHING)),
        ("sym NOT LIKE 'ab%'", within("sym", Interval(None, "ab", False, True), Interval("ac"))),
        ("sym LIKE 'a/%%' ESCAPE '/'", within("sym", Interval("a%", "a&", False, True))),
        ("sym LIKE '\ud7ff%'", within("sym", Interval("\ud7ff", "\ue000", False, True))),
        ("sym LIKE '\U0010ffff%'", within("sym", Interval("\U0010ffff"))),
        ("sym LIKE '%b'", (Like("sym", "%b"),)),
        ("sym NOT LIKE 'a_/%' ESCAPE '/'", (Like("sym", "a_\\%", "\\", True),)),
        ("startswith(sym, 'a%')", within("sym", Interval("a%", "a&", False, True))),
        ("sym < 'it''s'", within("sym", Interval(None, "it's", False, True))),
        ("qty < lots", (Compare("lots", ">", "qty"),)),
        ("qty < lots + 5", (Compare("qty", "<", "lots", 5, "int", 32),)),
        ("qty < lots - 5L", (Compare("qty", "<", "lots", -5, "int", 64),)),
        ("5 + qty <= lots", (Compare("lots", ">=", "qty", 5, "int", 32),)),
        ("qty = big", (Compare("big", "=", "qty"),)),
        ("price > ratio", (Compare("price", ">", "ratio", 0, "double"),)),
        ("price > qty", (Compare("price", ">", "qty", 0, "double"),)),
        ("price > cost * 1.5", (Opaque('("price" > ("cost" * CAST(\'1.5\' AS DOUBLE)))', ("cost", "price")),)),
        ("price > cost + 1.5", (Compare("price", ">", "cost", 1.5, "double"),)),
        ("net < wide", (Compare("net", "<", "wide", 0, "decimal"),)),
        ("sym <> venue", (Compare("Venue", "<>", "sym", 0, "string"),)),
        ("day < due + INTERVAL 2 DAYS", (Compare("day", "<", "due", 2, "int", 32),)),
        ("ts < seen + INTERVAL '1' HOUR", (Compare("ts", "<", "seen", 3_600_000_000),)),
        ("ok < hot", (Compare("hot", ">", "ok"),)),
        ("qty = qty", within("qty", EVERYTHING)),
        ("qty < qty", (NEVER,)),
        ("`a b` = `order`", (Compare("a b", "=", "order"),)),
        ("qty > 1 OR sym = 'a'", (AnyOf((Within("qty", (Interval(2),)), Within("sym", (Interval("a", "a"),)))),)),
        ("qty > 2 * 3", within("qty", Interval(7))),
        ("qty * 2 > 7", (Opaque('(("qty" * CAST(2 AS INTEGER)) > CAST(7 AS INTEGER))', ("qty",)),)),
        ("NOT (qty * 2 > 7)", (Opaque('(("qty" * CAST(2 AS INTEGER)) <= CAST(7 AS INTEGER))', ("qty",)),)),
    ],
)
def test_condition(where: Where, text: str, clause: Clause) -> None:
    assert where(text) == clause
    assert dump_clause(load_clause(dump_clause(clause))) == dump_clause(clause)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("qty > 3 AND price = 2", "2 = price and 3 < qty"),
        ("qty > 3 AND qty > 3", "qty >= 4"),
        ("qty > 3 AND qty < 10 AND qty <> 5", "(qty BETWEEN 4 AND 9) AND NOT qty = 5"),
        ("qty = 1 OR qty = 2", "qty IN (2, 1)"),
        ("NOT (qty = 1 OR price > 5)", "qty <> 1 AND price <= 5"),
        ("sym = 'a' OR qty = 1", "qty = 1 OR sym = 'a'"),
        ("qty > lots", "lots < qty"),
        ("price > 5 AND (qty > 1 AND (sym = 'a'))", "sym = 'a' AND price > 5 AND qty > 1"),
        ("qty > 5 OR (qty > 7 OR FALSE)", "qty > 5 AND TRUE"),
        ("sym LIKE 'a%%'", "sym LIKE 'a%'"),
        ("ok = TRUE", "ok"),
        ("day >= '2020-01-01'", "day > DATE '2019-12-31'"),
        ("net > 1.501", "net >= 1.51"),
    ],
)
def test_equivalent_conditions_have_equal_clauses(where: Where, left: str, right: str) -> None:
    assert dump_clause(where(left)) == dump_clause(where(right))


def test_factors_are_ordered_by_cost(where: Where) -> None:
    clause = where("qty / lots > 2 AND sym LIKE '%b' AND qty < big AND (ok OR hot) AND lots <> 0")
    assert [type(factor) for factor in clause] == [Within, Compare, Like, AnyOf, Opaque]


def test_strings_are_quoted_in_sql(where: Where) -> None:
    (factor,) = where("concat(sym, '\\'; DROP TABLE x; --') = \"a'b\"")
    assert isinstance(factor, Opaque)
    assert "'''; DROP TABLE x; --'" in factor.sql
    assert factor.sql.endswith("= 'a''b')")
