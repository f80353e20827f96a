"""Whether a predicate holds for a row: the semantics of `tureen.predicate`, in the simplest form."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tureen.errors import QueryFailed
from tureen.predicate import (
    AllOf,
    AnyOf,
    Clause,
    Compare,
    Interval,
    IsNull,
    Key,
    Like,
    Opaque,
    Predicate,
    Within,
)
from tureen.query import NOW, Query
from tureen.schema import Schema, Type
from tureen.testing.evaluate import Row, Types, is_true, types_of, value_of
from tureen.testing.tuples import Tuple
from tureen.testing.values import key_of, order
from tureen.window import from_micros


def holds(predicate: Predicate, row: Row, schema: Schema) -> bool:
    """Whether the predicate is TRUE for this row, not FALSE or unknown."""
    match predicate:
        case AllOf(parts):
            return all(holds(part, row, schema) for part in parts)
        case AnyOf(parts):
            return any(holds(part, row, schema) for part in parts)
        case IsNull(column):
            return row[column] is None
        case Within(column, intervals):
            value = row[column]
            if value is None:
                return False
            key = key_of(value, type_of(schema, column))
            return any(in_interval(key, interval) for interval in intervals)
        case Like(column, pattern, escape, negated):
            text = row[column]
            return text is not None and like(text, pattern, escape) is not negated
        case Compare():
            return compare_columns(predicate, row, types_of(schema))
        case Opaque(sql=sql, columns=columns):
            return is_true(sql, columns, row, types_of(schema))


def matching_rows(clause: Clause, rows: Sequence[Row], schema: Schema) -> list[Row]:
    """The rows that satisfy a clause."""
    return [row for row in rows if holds(AllOf(clause), row, schema)]


def selected_rows(query: Query, tuples: Sequence[Tuple], schema: Schema, now: int) -> list[Row]:
    """The rows that satisfy a query's WHERE clause, with NOW as a column where the query uses it."""
    rows = matching_rows(query.stream.clause, [tuple_.values for tuple_ in tuples], schema)
    if not query.uses_now:
        return rows
    rows = [{**row, NOW: from_micros(now)} for row in rows]
    condition = query.at_now
    return rows if condition is None else [row for row in rows if value_of(condition, row, types_of(schema)) is True]


def type_of(schema: Schema, column: str) -> Type:
    """The type of a stored column, by its declared name."""
    type_ = types_of(schema).get(column)
    if type_ is None:
        raise KeyError(f"a bound predicate refers to '{column}', which is not a declared column")
    return type_


def in_interval(key: Key, interval: Interval) -> bool:
    """Whether a key lies between the bounds of an interval.

    >>> in_interval(3, Interval(low=3, low_open=True)), in_interval(4, Interval(3, 4))
    (False, True)
    """
    if interval.low is not None:
        above = order(key, interval.low)
        if above < 0 or (above == 0 and interval.low_open):
            return False
    if interval.high is not None:
        above = order(key, interval.high)
        if above > 0 or (above == 0 and interval.high_open):
            return False
    return True


def like(text: str, pattern: str, escape: str = "\\") -> bool:
    r"""Whether the whole text matches: `_` is one character, `%` any number; either is literal after the escape.

    >>> like("100%", "1%\\%"), like("100", "1%\\%"), like("a\nb", "a_b")
    (True, False, True)
    """
    if not pattern:
        return not text
    first, rest = pattern[0], pattern[1:]
    if escape and first == escape:
        if not rest:
            raise QueryFailed(f"the pattern ends in its escape character: {pattern!r}")
        return text[:1] == rest[0] and like(text[1:], rest[1:], escape)
    if first == "%":
        return any(like(text[start:], rest, escape) for start in range(len(text) + 1))
    if first == "_":
        return bool(text) and like(text[1:], rest, escape)
    return text[:1] == first and like(text[1:], rest, escape)


def compare_columns(predicate: Compare, row: Row, types: Types) -> bool:
    """Whether a comparison of two columns is TRUE for this row."""
    left, right = row[predicate.left], row[predicate.right]
    if left is None or right is None:
        return False
    left_type, right_type = types[predicate.left], types[predicate.right]
    match predicate.domain:
        case "double":
            sign = order(float(left), float(right) + predicate.offset)
        case "decimal":
            above = Fraction(left) - (Fraction(right) + Fraction(predicate.offset))
            sign = (above > 0) - (above < 0)
        case "int":
            moved = key_of(right, right_type) + predicate.offset  # type: ignore[operator]
            top = 2 ** (predicate.limit - 1)
            if not -top <= moved < top:
                raise QueryFailed(f"overflow: {right!r} + {predicate.offset}")
            sign = order(key_of(left, left_type), moved)
        case "string":
            sign = order(left, right)
        case other:
            raise ValueError(f"unknown domain '{other}'")
    return _by_sign(predicate.op, sign)


def _by_sign(op: str, sign: int) -> bool:
    return {
        "=": sign == 0,
        "<>": sign != 0,
        "<": sign < 0,
        "<=": sign <= 0,
        ">": sign > 0,
        ">=": sign >= 0,
    }[op]
