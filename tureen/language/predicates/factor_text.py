"""Factors as SQL conditions for people to read: constants are shown as literals instead of as keys."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from tureen.functions.user_function import shown_sql
from tureen.language.moments import day_text, moment_text, read_date, read_timestamp
from tureen.language.spelling import sql_literal
from tureen.predicate import AllOf, AnyOf, Compare, Interval, IsNull, Key, Like, Opaque, Predicate, Within
from tureen.schema import Kind, Schema, Type

_TEXT = Type(Kind.STRING)


def factor_text(factor: Predicate, schema: Schema) -> str:
    """A factor as a condition over the columns of a schema.

    >>> schema = Schema.parse("sym STRING, price DOUBLE, day DATE")
    >>> factor_text(Within("price", (Interval(100.0, None, low_open=True),)), schema)
    'price > 100.0'
    >>> factor_text(Within("sym", (Interval("a", "a"), Interval("b", "b"))), schema)
    "sym IN ('a', 'b')"
    >>> factor_text(Within("day", (Interval(0, 30),)), schema)
    "day BETWEEN DATE '1970-01-01' AND DATE '1970-01-31'"
    >>> factor_text(Within("day", (Interval(2932897, None),)), schema)
    "day >= DATE '9999-12-31' + INTERVAL '1' DAY"
    >>> not_a = Within("sym", (Interval(None, "a", high_open=True), Interval("a", None, low_open=True)))
    >>> factor_text(AllOf((not_a, IsNull("day"))), schema)
    "(sym < 'a' OR sym > 'a') AND day IS NULL"
    """
    match factor:
        case Within(column, intervals):
            return _within(column, intervals, _constants(schema, column))
        case IsNull(column):
            return f"{column} IS NULL"
        case Like(column, pattern, escape, negated):
            escape_clause = "" if escape == "\\" else f" ESCAPE {sql_literal(escape, _TEXT)}"
            return f"{column} {'NOT ' if negated else ''}LIKE {sql_literal(pattern, _TEXT)}{escape_clause}"
        case Compare(left, op, right, offset):
            offset_text = f" {'-' if offset < 0 else '+'} {abs(offset)}" if offset else ""
            return f"{left} {op} {right}{offset_text}"
        case Opaque(sql):
            return shown_sql(sql)
        case AllOf(parts):
            return " AND ".join(_part(part, schema) for part in parts) or "TRUE"
        case AnyOf(parts):
            return " OR ".join(_part(part, schema) for part in parts) or "FALSE"


def _part(part: Predicate, schema: Schema) -> str:
    text = factor_text(part, schema)
    is_compound = (
        len(part.parts) > 1 if isinstance(part, AllOf | AnyOf) else isinstance(part, Within) and " OR " in text
    )
    return f"({text})" if is_compound else text


def _within(column: str, intervals: tuple[Interval, ...], constant: Callable[[Key], str]) -> str:
    points = [interval.low for interval in intervals if interval.low is not None and _is_point(interval)]
    if len(intervals) > 1 and len(points) == len(intervals):
        return f"{column} IN ({', '.join(map(constant, points))})"
    return " OR ".join(_interval(column, interval, constant) for interval in intervals) or "FALSE"


def _is_point(interval: Interval) -> bool:
    # Also NaN, which does not equal itself in Python.
    return interval.low == interval.high or str(interval.low) == str(interval.high) == "nan"


def _interval(column: str, interval: Interval, constant: Callable[[Key], str]) -> str:
    low, high = interval.low, interval.high
    if low is None and high is None:
        return f"{column} IS NOT NULL"
    if low is not None and _is_point(interval):
        return f"{column} = {constant(low)}"
    if low is not None and high is not None and not interval.low_open and not interval.high_open:
        return f"{column} BETWEEN {constant(low)} AND {constant(high)}"
    ends = [
        f"{column} {op}{'' if is_open else '='} {constant(end)}"
        for op, end, is_open in ((">", low, interval.low_open), ("<", high, interval.high_open))
        if end is not None
    ]
    return " AND ".join(ends)


_DAYS = read_date("0001-01-01") or 0, read_date("9999-12-31") or 0
_MOMENTS = read_timestamp("0001-01-01") or 0, read_timestamp("9999-12-31 23:59:59.999999") or 0
"""The first and the last values that can be written. The normal form of > 9999-12-31 has the value after the last."""


def _timestamp(micros: int) -> str:
    return f"TIMESTAMP '{moment_text(micros).removesuffix('.000000')}'"


def _in_range(key: int, bounds: tuple[int, int], text_of: Callable[[int], str], unit: str) -> str:
    """The text of a key; of one that cannot be written, its distance from the nearest that can."""
    nearest = min(max(key, bounds[0]), bounds[1])
    if nearest == key:
        return text_of(key)
    return f"{text_of(nearest)} {'+' if key > nearest else '-'} INTERVAL '{abs(key - nearest)}' {unit}"


def _constants(schema: Schema, name: str) -> Callable[[Key], str]:
    """A function that formats the constants of a column."""
    column = schema.find(name)
    match column.type if column is not None else None:
        case Type(kind=Kind.FLOAT | Kind.DOUBLE):
            return lambda key: str(key).replace("nan", "NaN").replace("inf", "Infinity")
        case Type(kind=Kind.STRING):
            return lambda key: sql_literal(key, _TEXT)
        case Type(kind=Kind.BOOLEAN):
            return lambda key: "TRUE" if key else "FALSE"
        case Type(kind=Kind.DATE):
            return lambda key: _in_range(int(key), _DAYS, lambda day: f"DATE '{day_text(day)}'", "DAY")
        case Type(kind=Kind.TIMESTAMP):
            return lambda key: _in_range(int(key), _MOMENTS, _timestamp, "MICROSECOND")
        case Type(kind=Kind.DECIMAL, scale=scale):
            return lambda key: str(Decimal(int(key)).scaleb(-scale))
    return str
