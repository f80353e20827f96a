"""The plain twin: predicates row by row, in Python, with three-valued logic reduced to TRUE."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from tureen.predicate import (
    AllOf,
    AnyOf,
    Clause,
    Compare,
    Interval,
    IsNull,
    Like,
    Opaque,
    Predicate,
    Within,
)

Row = dict[str, Any]


class Raised(Exception):
    """The predicate cannot be evaluated on a row."""


OPAQUE: dict[str, Callable[[Row], bool | None]] = {
    "i % 2 = 0": lambda row: None if row["i"] is None else row["i"] % 2 == 0,
    "10 // i > 2": lambda row: _divide(row["i"]),
    "s || 'x' = 'ax' OR flag": lambda row: _either(_joined(row["s"]), row["flag"]),
}
"""The opaque expressions of these tests in Python."""

COLUMNS = {"i % 2 = 0": ("i",), "10 // i > 2": ("i",), "s || 'x' = 'ax' OR flag": ("flag", "s")}


def _divide(value: int | None) -> bool | None:
    if value == 0:
        raise Raised
    return None if value is None else int(10 / value) > 2


def _joined(text: str | None) -> bool | None:
    return None if text is None else text + "x" == "ax"


def _either(left: bool | None, right: bool | None) -> bool | None:
    if left or right:
        return True
    return None if left is None or right is None else False


def order_key(value: Any) -> Any:
    """A value that Python compares as Spark compares `value`."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    if isinstance(value, str):
        return value.encode()
    return value


def key(value: Any, scale: int = 0) -> Any:
    """A value in the key domain of its column."""
    if isinstance(value, datetime):
        since = value - datetime(1970, 1, 1, tzinfo=UTC)
        return since.days * 86_400_000_000 + since.seconds * 1_000_000 + since.microseconds
    if isinstance(value, date):
        return (value - date(1970, 1, 1)).days
    if isinstance(value, Decimal):
        sign, digits, exponent = value.as_tuple()
        assert exponent == -scale
        return (-1 if sign else 1) * int("".join(map(str, digits)))
    return int(value) if isinstance(value, bool) else value


def _in(interval: Interval, value: Any) -> bool:
    order = order_key(value)
    if interval.low is not None:
        low = order_key(interval.low)
        if order < low or (order == low and interval.low_open):
            return False
    if interval.high is not None:
        high = order_key(interval.high)
        if order > high or (order == high and interval.high_open):
            return False
    return True


def _like(text: str, pattern: str, escape: str) -> bool:
    parts, i = [], 0
    while i < len(pattern):
        if pattern[i] == escape:
            i += 1
            parts.append(re.escape(pattern[i]))
        else:
            parts.append({"%": ".*", "_": "."}.get(pattern[i], re.escape(pattern[i])))
        i += 1
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None


def _compare(predicate: Compare, left: Any, right: Any) -> bool:
    if predicate.domain == "int":
        left, right = key(left), key(right) + predicate.offset
        if not -(1 << predicate.limit - 1) <= right < 1 << predicate.limit - 1:
            raise Raised
    elif predicate.domain == "double":
        left, right = order_key(float(left)), order_key(float(right) + predicate.offset)
    elif predicate.domain == "string":
        left, right = left.encode(), right.encode()
    answers: dict[str, bool] = {
        "=": left == right,
        "<>": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }
    return answers[predicate.op]


def true_for(predicate: Predicate, row: Row, scales: dict[str, int]) -> bool:
    """Whether a predicate is TRUE for a row; raises Raised if it cannot be evaluated."""
    match predicate:
        case Within(column, intervals):
            value = row[column]
            return value is not None and any(_in(interval, key(value, scales.get(column, 0))) for interval in intervals)
        case IsNull(column):
            return row[column] is None
        case Like(column, pattern, escape, negated):
            return row[column] is not None and _like(row[column], pattern, escape) != negated
        case Compare(left, _, right):
            present = row[left] is not None and row[right] is not None
            return present and _compare(predicate, row[left], row[right])
        case Opaque(sql, _):
            return OPAQUE[sql](row) is True
        case AllOf(parts):
            return _without_raising(parts, row, scales, decisive=False)
        case AnyOf(parts):
            return _without_raising(parts, row, scales, decisive=True)


def _without_raising(parts: Sequence[Predicate], row: Row, scales: dict[str, int], *, decisive: bool) -> bool:
    """Parts combined by AND or OR: a decisive part makes errors of the others irrelevant."""
    raised = False
    for part in parts:
        try:
            if true_for(part, row, scales) is decisive:
                return decisive
        except Raised:
            raised = True
    if raised:
        raise Raised
    return not decisive


def rows_of(clause: Clause, rows: Sequence[Row], scales: dict[str, int]) -> list[int] | None:
    """The rows that satisfy a clause, or None if it fails."""
    try:
        return [number for number, row in enumerate(rows) if true_for(AllOf(clause), row, scales)]
    except Raised:
        return None
