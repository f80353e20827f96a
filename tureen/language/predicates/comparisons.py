"""Comparisons that an index can answer: a column with a constant, and a column with a column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tureen.keys import sort_key
from tureen.language.cast import cast_key
from tureen.language.moments import DAY_MICROS
from tureen.language.predicates.intervals import domain_of
from tureen.language.tree import DATE, DOUBLE, Call, Const, Expr, IntervalConst, Ref
from tureen.language.types import INT_BITS, as_decimal, keeps_every_value
from tureen.predicate import EVERYTHING, FLIPPED, NEVER, Compare, Interval, Key, Predicate, Within
from tureen.schema import FRACTIONAL, INTEGRAL, Column, Kind, Type


def column_with_constant(op: str, left: Expr, right: Expr) -> Predicate | None:
    """`column op constant` as intervals of the column's keys; None for any other expression."""
    if not isinstance(right, Const):
        return None
    if right.value is None:
        return NEVER
    side = _cast_column(left)
    return None if side is None else Within(side[0].name, _intervals(op, side[0].type, side[1], right.value))


def column_in(left: Expr, keys: Iterable[Key]) -> Within | None:
    """`column IN (constants)` as the intervals of the constants, in ascending order; None for any other expression."""
    side = _cast_column(left)
    if side is None:
        return None
    column, casts = side
    if not domain_of(column.type).discrete:
        return Within(column.name, tuple(Interval(key, key) for key in sorted(set(keys))))
    if not casts:
        return Within(column.name, tuple(_merged_points({int(key) for key in keys})))
    return Within(column.name, tuple(interval for key in keys for interval in _intervals("=", column.type, casts, key)))


def _merged_points(keys: set[int]) -> Iterator[Interval]:
    """Integers as intervals; consecutive integers are one interval."""
    # A key without its predecessor starts an interval, a key without its successor ends it.
    starts = sorted(key for key in keys if key - 1 not in keys)
    ends = sorted(key for key in keys if key + 1 not in keys)
    return map(Interval, starts, ends)


def _cast_column(expr: Expr) -> tuple[Column, list[Type]] | None:
    """A column, and the casts around it that keep every value; None for any other expression."""
    casts: list[Type] = []
    while isinstance(expr, Call) and expr.op == "cast":
        casts.insert(0, expr.type)
        expr = expr.args[0]
    if not isinstance(expr, Ref):
        return None
    source = expr.type
    for target in casts:
        if not keeps_every_value(source, target):
            return None
        source = target
    return expr.column, casts


def intervals_of(op: str, column: Type, key: Key) -> tuple[Interval, ...]:
    """The keys of a column for which `column op key` holds, compared in the column's own type.

    An integer is converted to DOUBLE if the column is one.
    """
    return _intervals(op, column, [], float(key) if column.kind is Kind.DOUBLE else key)


def _intervals(op: str, column: Type, casts: list[Type], constant: Key) -> tuple[Interval, ...]:
    if not domain_of(column).discrete:
        # FLOAT is compared as DOUBLE, which keeps every value; STRING has no casts.
        return _between_keys(op, constant)
    low, high = _boundary(column, casts, constant)
    below, above = Interval(None, low, False, True), Interval(high)
    return {
        "=": (Interval(low, high, False, True),),
        "<>": (below, above),
        "<": (below,),
        "<=": (Interval(None, high, False, True),),
        ">": (above,),
        ">=": (Interval(low),),
    }[op]


def _between_keys(op: str, key: Key) -> tuple[Interval, ...]:
    below, above = Interval(None, key, False, True), Interval(key, None, True, False)
    return {
        "=": (Interval(key, key),),
        "<>": (below, above),
        "<": (below,),
        "<=": (Interval(None, key),),
        ">": (above,),
        ">=": (Interval(key),),
    }[op]


def _boundary(column: Type, casts: list[Type], constant: Key) -> tuple[int, int]:
    """The first key whose cast is not less than the constant, and the first whose cast is greater."""
    domain = domain_of(column)
    assert isinstance(domain.least, int)
    assert isinstance(domain.greatest, int)
    if not casts:
        assert isinstance(constant, int)
        return constant, constant + 1
    rank = _rank(constant)

    def cast_rank(key: int) -> tuple[bool, Key]:
        value: Key = key
        source = column
        for target in casts:
            value = cast_key(value, source, target)
            source = target
        return sort_key(value)

    first = _first(domain.least, domain.greatest + 1, lambda key: cast_rank(key) >= rank)
    return first, _first(first, domain.greatest + 1, lambda key: cast_rank(key) > rank)


def _rank(key: Key) -> tuple[bool, Key]:
    """A sort key with NaN greater than all numbers."""
    return (True, 0) if key != key else (False, key)


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The least key in [low, high) for which a monotonic condition holds, by bisection; high if there is none."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


@dataclass(frozen=True, slots=True)
class _Side:
    """A side of a comparison: a column plus an offset. `limit` is the bits of the type of the sum."""

    column: Column
    offset: int | float = 0
    limit: int = 64


def column_with_column(op: str, left: Expr, right: Expr) -> Predicate | None:
    """`column op column + offset`; None for any other expression."""
    first, second = _side(left), _side(right)
    if first is None or second is None or (first.offset and second.offset):
        return None
    if first.offset or (not second.offset and first.column.name > second.column.name):
        first, second, op = second, first, FLIPPED[op]
    assert left.type is not None
    domain = _domain(left.type, first.column.type, second.column.type)
    if domain is None:
        return None
    if first.column.name == second.column.name and not second.offset:
        name = first.column.name
        return Within(name, (EVERYTHING,) if op in ("=", "<=", ">=") else ())
    if domain in ("decimal", "string") and second.offset:
        return None
    return Compare(first.column.name, op, second.column.name, second.offset, domain, second.limit)


def _domain(compared: Type, left: Type, right: Type) -> str | None:
    """The domain in which comparing two columns is exact; None if there is none."""
    kinds = {left.kind, right.kind}
    if kinds <= INTEGRAL and compared.kind in INTEGRAL:
        return "int"
    if len(kinds) == 1 and kinds <= {Kind.DATE, Kind.TIMESTAMP, Kind.BOOLEAN}:
        return "int" if compared == left else None
    if kinds == {Kind.STRING}:
        return "string"
    if compared.kind in FRACTIONAL:
        return "double"
    if compared.kind is Kind.DECIMAL:
        exact = all(compared.scale >= as_decimal(type_).scale for type_ in (left, right))
        return "decimal" if exact else None
    return None


def _side(expr: Expr) -> _Side | None:
    if isinstance(expr, Call) and expr.op == "cast":
        inner = expr.args[0]
        if inner.type is None or not keeps_every_value(inner.type, expr.type):
            return None
        if isinstance(inner, Call) and inner.op == "cast":
            # The domains account for one cast; the inner of two may round.
            return None
        side = _side(inner)
        # A cast of a sum is exact only to a wider integer.
        return side if side is None or not side.offset or expr.type.kind in INTEGRAL else None
    if isinstance(expr, Ref):
        return _Side(expr.column)
    if isinstance(expr, Call) and expr.op in ("+", "-"):
        return _sum(expr)
    return None


def _sum(call: Call) -> _Side | None:
    first, second = call.args
    if call.op == "+" and isinstance(first, Const):
        first, second = second, first
    side = _side(first)
    if side is None or side.offset:
        return None
    step: int | float
    if isinstance(second, IntervalConst):
        step = second.micros // DAY_MICROS if call.type == DATE else second.micros
    elif isinstance(second, Const) and second.value is not None and not isinstance(second.value, str):
        step = second.value
    else:
        return None
    if call.type.kind in INTEGRAL:
        limit = INT_BITS[call.type.kind]
    elif call.type.kind in (Kind.DATE, Kind.TIMESTAMP):
        limit = 32 if call.type == DATE else 64
    elif call.type == DOUBLE and side.column.type == DOUBLE:
        limit = 64
    else:
        return None
    return _Side(side.column, -step if call.op == "-" else step, limit)
