"""The window of a query, from its text."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tureen.errors import InvalidSchema, Location, SqlError
from tureen.language import parse_duration
from tureen.query import Query
from tureen.window import At, Bound, Now, RowsBack, Steps, Window

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
NEW_YEAR = 1_767_225_600 * SECOND

Bind = Callable[[str], Query]


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("NOW", Now()),
        ("now()", Now()),
        ("(NOW)", Now()),
        ("NOW - INTERVAL '10' MINUTE", Now(-10 * MINUTE)),
        ("NOW - INTERVAL 10 MINUTES", Now(-10 * MINUTE)),
        ("NOW - INTERVAL '10 minutes'", Now(-10 * MINUTE)),
        ("NOW - INTERVAL '1 day 2 hours'", Now(-DAY - 2 * HOUR)),
        ("NOW - INTERVAL 1 DAY 2 HOURS", Now(-DAY - 2 * HOUR)),
        ("NOW - INTERVAL '1 02:03:04.5' DAY TO SECOND", Now(-(DAY + 2 * HOUR + 3 * MINUTE + 4_500_000))),
        ("NOW - INTERVAL '1-2' YEAR TO MONTH", Now(0, -14)),
        ("NOW - 10 MINUTES", Now(-10 * MINUTE)),
        ("NOW - 10", Now(-10 * SECOND)),
        ("NOW - 0.5", Now(-500_000)),
        ("NOW - 1.5 HOURS", Now(-90 * MINUTE)),
        ("NOW - 250 MILLISECONDS", Now(-250_000)),
        ("NOW - 1 WEEK", Now(-7 * DAY)),
        ("NOW - 1 MONTH", Now(0, -1)),
        ("NOW - 2 YEARS", Now(0, -24)),
        ("NOW - 1 MONTH - 1 DAY", Now(-DAY, -1)),
        ("NOW + 5 MINUTES", Now(5 * MINUTE)),
        ("((NOW - 10))", Now(-10 * SECOND)),
        ("TIMESTAMP '2026-01-01 00:00:00'", At(NEW_YEAR)),
        ("TIMESTAMP '2026-01-01T01:00:00+01:00'", At(NEW_YEAR)),
        ("'2026-01-01'", At(NEW_YEAR)),
        ("'2026-01-01 00:00:00Z'", At(NEW_YEAR)),
        ("DATE '2026-01-01'", At(NEW_YEAR)),
        ("NOW - 100 ROWS", RowsBack(100)),
        ("(NOW - 1 ROW)", RowsBack(1)),
    ],
)
def test_bound(bind: Bind, text: str, bound: Bound) -> None:
    assert bind(f"SELECT * FROM trades BEGIN {text}").stream.window == Window(bound, None)
    assert bind(f"SELECT * FROM trades\nWHERE qty > 1 end {text} ;").stream.window == Window(None, bound)


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("SELECT * FROM trades", Window()),
        ("SELECT * FROM trades BEGIN NOW - 10 END NOW", Window(Now(-10 * SECOND), Now())),
        ("SELECT * FROM trades BEGIN (NOW - 10) END (NOW)", Window(Now(-10 * SECOND), Now())),
        ("SELECT * FROM trades [RANGE 5 MINUTES]", Window(Now(-5 * MINUTE), Now())),
        ("SELECT * FROM trades [RANGE INTERVAL '1' MONTH] WHERE qty > 1", Window(Now(0, -1), Now())),
        ("SELECT * FROM trades [ROWS 100] AS t WHERE t.qty > 1", Window(RowsBack(100), Now())),
        ("SELECT * FROM trades t [rows 100]", Window(RowsBack(100), Now())),
        ("SELECT * FROM trades BEGIN NOW - 9 ROWS END NOW - 3 ROWS", Window(RowsBack(9), RowsBack(3))),
        ("SELECT * FROM trades BEGIN NOW - 1 MONTH END NOW - 30 DAYS", Window(Now(0, -1), Now(-30 * DAY))),
        ("SELECT * FROM trades BEGIN '2026-01-01' END '2026-01-01'", Window(At(NEW_YEAR), At(NEW_YEAR))),
        # BEGIN and END elsewhere do not belong to the window.
        ("SELECT * FROM trades WHERE qty = CASE WHEN ok THEN 1 END BEGIN NOW", Window(Now())),
        (
            "SELECT * FROM trades WHERE CASE qty WHEN 1 THEN CASE WHEN ok THEN 1 END END = 1 END NOW",
            Window(None, Now()),
        ),
        ("SELECT * FROM trades WHERE sym = 'BEGIN NOW END NOW'", Window()),
        ("SELECT * FROM trades -- BEGIN NOW\n/* END NOW */", Window()),
        (
            "SELECT begin, trades.end FROM trades WHERE begin > 1 AND end < 2 OR NOT end = begin BEGIN NOW",
            Window(Now()),
        ),
        ("SELECT `begin` AS begin FROM trades WHERE qty BETWEEN begin AND end", Window()),
    ],
)
def test_window(bind: Bind, text: str, window: Window) -> None:
    assert bind(text).stream.window == window


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("BEGIN NOW END NOW - 10", "always empty", 28),
        ("BEGIN '2026-01-02' END '2026-01-01'", "always empty", 28),
        ("BEGIN NOW - 5 ROWS END NOW - 5 ROWS", "always empty", 28),
        ("BEGIN NOW - 1 MONTH END NOW - 40 DAYS", "always empty", 28),
        ("BEGIN NOW - 0 ROWS", "at least one row", 28),
        ("BEGIN", "BEGIN needs a time", 22),
        ("BEGIN NOW END", "END needs a time", 32),
        ("END NOW BEGIN NOW", "BEGIN must come before END", 30),
        ("BEGIN NOW BEGIN NOW", "duplicate BEGIN", 32),
        ("BEGIN NOW WHERE qty > 1", "'WHERE' is not expected here", 32),
        ("BEGIN NOW - 5 PARSECS", "'PARSECS' is not a unit of time", 34),
        ("BEGIN NOW - 1.5 MONTHS", "no fixed length", 34),
        ("BEGIN NOW - 'x'", "expected a duration", 34),
        ("BEGIN NOW -", "expected a duration", 33),
        ("BEGIN NOW + 5 ROWS", "counted back", 32),
        ("BEGIN NOW - 1.5 ROWS", "must be an integer", 34),
        ("BEGIN NOW - 1 DAY - 5 ROWS", "counted back from NOW itself", 40),
        ("BEGIN NOW - 2000 YEARS", "too long", 34),
        ("BEGIN NOW - 99999999999999999 DAYS", "too long", 34),
        ("BEGIN TIMESTAMP '2026-02-30'", "'2026-02-30' is not a TIMESTAMP", 38),
        ("BEGIN '10000-01-01'", "is not a TIMESTAMP", 28),
        ("BEGIN DATE 'x'", "'x' is not a DATE", 33),
        ("BEGIN qty", "'qty' is not a time", 28),
        ("BEGIN 5", "'5' is not a time", 28),
        ("[RANGE 5 MINUTES] BEGIN NOW", "two windows", 46),
        ("[RANGE -5 MINUTES]", "expected a duration", 29),
        ("[ROWS 0]", "at least 1", 28),
        ("[LAST 5]", "'LAST' is not a window", 23),
        ("[]", "brackets are empty", 22),
        ("[RANGE 5 MINUTES", "not closed", 22),
    ],
)
def test_invalid_window(bind: Bind, text: str, message: str, column: int | None) -> None:
    with pytest.raises(SqlError, match=message) as caught:
        bind(f"SELECT * FROM trades {text}")
    location = caught.value.location
    assert (location.column if location else None) == column


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("[RANGE 5 MINUTES SLIDE 1 MINUTE]", Steps(5 * MINUTE, MINUTE)),
        ("[RANGE BY 5 MINUTES SLIDE BY INTERVAL '1' MINUTE]", Steps(5 * MINUTE, MINUTE)),
        ("[HOP 1 MINUTE SLIDE 5 MINUTES]", Steps(MINUTE, 5 * MINUTE)),
        ("[TUMBLE 90 SECONDS]", Steps(90 * SECOND, 90 * SECOND)),
        ("[TUMBLE 60 START AT TIMESTAMP '1970-01-01 00:01:10']", Steps(MINUTE, MINUTE, 10 * SECOND)),
        ("[TUMBLE 60 START AT '1969-12-31 23:59:50' EMIT PARTIAL]", Steps(MINUTE, MINUTE, 50 * SECOND, partial=True)),
        ("[TUMBLE 60] EMIT PARTIAL", Steps(MINUTE, MINUTE, partial=True)),
        ("[TUMBLE 60] EMIT PARTIAL BEGIN NOW - 10 END NOW", Steps(MINUTE, MINUTE, partial=True)),
        ("[TUMBLE 60] BEGIN NOW - 10 END NOW EMIT PARTIAL", Steps(MINUTE, MINUTE, partial=True)),
        ("[ROWS 20 SLIDE 10]", Steps(20, 10, rows=True)),
        ("[ROWS 20 SLIDE 10 ROWS EMIT PARTIAL]", Steps(20, 10, rows=True, partial=True)),
        ("GROUP BY TUMBLE(ts, INTERVAL '5' MINUTE)", Steps(5 * MINUTE, 5 * MINUTE)),
        ("GROUP BY hop(ts, INTERVAL '1' MINUTE, INTERVAL '5' MINUTES)", Steps(5 * MINUTE, MINUTE)),
        ("GROUP BY HOP(ts, INTERVAL '5' MINUTE, INTERVAL '1' MINUTE)", Steps(5 * MINUTE, MINUTE)),
        ("GROUP BY window(ts, '5 minutes')", Steps(5 * MINUTE, 5 * MINUTE)),
        ("GROUP BY window(TS, '5 minutes', '1 minute', '70 seconds')", Steps(5 * MINUTE, MINUTE, 10 * SECOND)),
    ],
)
def test_steps(bind: Bind, text: str, steps: Steps) -> None:
    assert bind(f"SELECT count(*), window_start, window_end FROM trades {text}").steps == steps


@pytest.mark.parametrize(
    ("text", "message", "column", "hint"),
    [
        ("[RANGE 5 MINUTES SLIDE]", "duration", None, "MINUTES"),
        ("[RANGE 5 MINUTES SLIDE 0 MINUTES]", "a step must be longer than zero", 52, "SLIDE 1 MINUTE"),
        ("[RANGE 5 MINUTES SLIDE 1 MONTH]", "no fixed length", 52, "DAYS"),
        ("[RANGE 5 MINUTES SLYDE 1 MINUTE]", "'SLYDE' is not expected", 46, "SLIDE"),
        ("[RANGE 5 MINUTES START AT '2026-01-01']", "START requires a step window", 46, "SLIDE"),
        ("[TUMBLE 5 MINUTES START '2026-01-01']", "followed by AT", 47, "START AT"),
        ("[TUMBLE 5 MINUTES START AT noon]", "'noon' is not a time", 56, "TIMESTAMP"),
        ("[TUMBLE 5 MINUTES EMIT ALL]", "followed by PARTIAL", 47, "EMIT PARTIAL"),
        ("[ROWS 10 SLIDE 5 START AT '2026-01-01']", "START AT is not supported for steps of rows", 46, "first tuple"),
        ("[ROWS 10 SLIDE 0]", "must be an integer of at least 1", 44, None),
        ("[HOP 5 MINUTES]", "HOP requires SLIDE", 34, "SLIDE"),
        ("[TUMBL 5 MINUTES]", "'TUMBL' is not a window", 30, "TUMBLE"),
        (
            "[TUMBLE 5 MINUTES] GROUP BY TUMBLE(ts, INTERVAL '5' MINUTE)",
            "only one step window is allowed",
            57,
            "one of them",
        ),
        (
            "GROUP BY TUMBLE(ts, INTERVAL '5' MINUTE), window(ts, '1 minute')",
            "only one step window is allowed",
            71,
            "one of them",
        ),
        ("GROUP BY TUMBLE(seen, INTERVAL '5' MINUTE)", "requires the stream's time column", 45, "TUMBLE(ts"),
        ("GROUP BY TUMBLE(ts)", "the time column and the lengths of the steps", 38, "TUMBLE(ts"),
        ("GROUP BY TUMBLE(ts, 5)", "an interval", 49, "TUMBLE(ts"),
        ("[TUMBLE 5 MINUTES] BEGIN NOW - 10 ROWS END NOW", "window of rows", None, "both in time"),
        ("[RANGE 5 MINUTES] EMIT PARTIAL", "EMIT PARTIAL", 47, "SLIDE"),
        ("EMIT PARTIAL GROUP BY sym", "after the clauses", 29, "end"),
    ],
)
def test_invalid_steps(bind: Bind, text: str, message: str, column: int | None, hint: str | None) -> None:
    with pytest.raises(SqlError, match=message) as caught:
        bind(f"SELECT count(*) FROM trades {text}")
    if column is not None:
        assert caught.value.location == Location(1, column)
    assert hint is None or hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1 day", DAY),
        ("90 minutes", 90 * MINUTE),
        ("INTERVAL '10' MINUTE", 10 * MINUTE),
        ("interval 2 hours", 2 * HOUR),
        ("1 day 12 hours", 36 * HOUR),
        ("0.5 s", 500_000),
        ("30", 30 * SECOND),
    ],
)
def test_duration(text: str, micros: int) -> None:
    assert parse_duration(text) == micros


@pytest.mark.parametrize(
    "text", ["", "x", "day", "1 month", "0 days", "-1 day", "1 day x", "1 parsec", "99999 years", "'", "1 day;"]
)
def test_invalid_duration(text: str) -> None:
    with pytest.raises((SqlError, InvalidSchema)) as caught:
        parse_duration(text)
    assert caught.value.hint
