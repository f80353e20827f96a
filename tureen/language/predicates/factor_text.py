"""Factors as SQL conditions for people to read: constants are shown as literals instead of as keys."""

from __future__ import annotations

from collections.abc import Callable

from tureen.functions.user_function import shown_sql
from tureen.language.expression_text import with_names
from tureen.language.spelling import key_literal, spell_name, sql_literal
from tureen.predicate import AllOf, AnyOf, Compare, Interval, IsNull, Key, Like, Opaque, Predicate, Within
from tureen.schema import Kind, Schema, Type

_TEXT = Type(Kind.STRING)


def factor_text(factor: Predicate, schema: Schema, name_of: Callable[[str], str] = spell_name) -> str:
    """A factor as a condition over the columns of a schema, which are written as `name_of` returns them.

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
            return _within(name_of(column), intervals, _constants(schema, column))
        case IsNull(column):
            return f"{name_of(column)} IS NULL"
        case Like(column, pattern, escape, negated):
            escape_clause = "" if escape == "\\" else f" ESCAPE {sql_literal(escape, _TEXT)}"
            return f"{name_of(column)} {'NOT ' if negated else ''}LIKE {sql_literal(pattern, _TEXT)}{escape_clause}"
        case Compare(left, op, right, offset):
            offset_text = f" {'-' if offset < 0 else '+'} {abs(offset)}" if offset else ""
            return f"{name_of(left)} {op} {name_of(right)}{offset_text}"
        case Opaque():
            return with_names(factor.text or shown_sql(factor.sql), name_of)
        case AllOf(parts):
            return " AND ".join(_part(part, schema, name_of) for part in parts) or "TRUE"
        case AnyOf(parts):
            return " OR ".join(_part(part, schema, name_of) for part in parts) or "FALSE"


def _part(part: Predicate, schema: Schema, name_of: Callable[[str], str]) -> str:
    text = factor_text(part, schema, name_of)
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


def _constants(schema: Schema, name: str) -> Callable[[Key], str]:
    """A function that formats the constants of a column."""
    column = schema.find(name)
    return str if column is None else lambda key: key_literal(key, column.type)
