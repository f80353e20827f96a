"""Comparisons that an index can answer: a column with a constant, and a column with a column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tureen.keys import sort_key
from tureen.language.cast import cast_key
from tureen.language.moments import DAY_MICROS
from tureen.language.predicates.intervals import domain_of
from tureen.language.tree import DATE, DOUBLE, Call, Const, Expr, Lapse, Ref
from tureen.language.types import INT_BITS, as_decimal, keeps_every_value
from tureen.predicate import EVERYTHING, NEVER, Compare, Interval, Key, Predicate, Within
from tureen.schema import FRACTIONAL, INTEGRAL, Column, Kind, Type

FLIPPED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
"""What a comparison is with its sides exchanged."""


def column_with_constant(op: str, left: Expr, right: Expr) -> Predicate | None:
    """`column op constant` as intervals of the column's keys; None where it is not that."""
    if not isinstance(right, Const):
        return None
    if right.value is None:
        return NEVER
    side = _cast_column(left)
    return None if side is None else Within(side[0].name, _intervals(op, side[0].type, side[1], right.value))


def column_in(left: Expr, keys: Iterable[Key]) -> Within | None:
    """`column IN (constants)` as the intervals of each, in ascending order; None where it is not that."""
    side = _cast_column(left)
    if side is None:
        return None
    column, casts = side
    if not domain_of(column.type).discrete:
        return Within(column.name, tuple(Interval(key, key) for key in sorted(set(keys))))
    if not casts:
        return Within(column.name, tuple(_stretches({int(key) for key in keys})))
    return Within(column.name, tuple(one for key in keys for one in _intervals("=", column.type, casts, key)))


def _stretches(keys: set[int]) -> Iterator[Interval]:
    """Whole numbers as intervals, of which neighbours are one."""
    # A key whose neighbour below is not there begins one; one whose neighbour above is not there ends it.
    starts = sorted(key for key in keys if key - 1 not in keys)
    ends = sorted(key for key in keys if key + 1 not in keys)
    return map(Interval, starts, ends)


def _cast_column(expr: Expr) -> tuple[Column, list[Type]] | None:
    """A column, and the casts around it that keep every value; None where it is not that."""
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
    """The keys of a column for which `column op key` holds, where they are compared in the column's own type.

    A whole number is taken for the DOUBLE that it is where the column is one.
    """
    return _intervals(op, column, [], float(key) if column.kind is Kind.DOUBLE else key)


def _intervals(op: str, column: Type, casts: list[Type], constant: Key) -> tuple[Interval, ...]:
    if not domain_of(column).discrete:
        # FLOAT is compared as the DOUBLE it is; STRING has no casts.
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
    """The first key whose cast is not below the constant, and the first whose cast is above it."""
    domain = domain_of(column)
    assert isinstance(domain.least, int)
    assert isinstance(domain.greatest, int)
    if not casts:
        assert isinstance(constant, int)
        return constant, constant + 1
    goal = sort_key(constant)

    def image(key: int) -> tuple[bool, Key]:
        value: Key = key
        source = column
        for target in casts:
            value = cast_key(value, source, target)
            source = target
        return sort_key(value)

    first = _first(domain.least, domain.greatest + 1, lambda key: image(key) >= goal)
    return first, _first(first, domain.greatest + 1, lambda key: image(key) > goal)


def _first(low: int, high: int, reached: Callable[[int], bool]) -> int:
    """The least key from low to high that reaches the goal, by halving; high where none does."""
    while low < high:
        middle = (low + high) // 2
        if reached(middle):
            high = middle
        else:
            low = middle + 1
    return low


@dataclass(frozen=True, slots=True)
class _Side:
    """A column, in the type it is compared in, with what is added to it."""

    column: Column
    offset: int | float = 0
    limit: int = 64


def column_with_column(op: str, left: Expr, right: Expr) -> Predicate | None:
    """`column op column + offset`; None where it is not that."""
    ours, theirs = _side(left), _side(right)
    if ours is None or theirs is None or (ours.offset and theirs.offset):
        return None
    if ours.offset or (not theirs.offset and ours.column.name > theirs.column.name):
        ours, theirs, op = theirs, ours, FLIPPED[op]
    assert left.type is not None
    domain = _domain(left.type, ours.column.type, theirs.column.type)
    if domain is None:
        return None
    if ours.column.name == theirs.column.name and not theirs.offset:
        name = ours.column.name
        return Within(name, (EVERYTHING,) if op in ("=", "<=", ">=") else ())
    if domain in ("decimal", "string") and theirs.offset:
        return None
    return Compare(ours.column.name, op, theirs.column.name, theirs.offset, domain, theirs.limit)


def _domain(compared: Type, left: Type, right: Type) -> str | None:
    """How two columns are compared, where one of the plain ways is exact."""
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
        exact = all(compared.scale >= as_decimal(one).scale for one in (left, right))
        return "decimal" if exact else None
    return None


def _side(expr: Expr) -> _Side | None:
    if isinstance(expr, Call) and expr.op == "cast":
        inner = expr.args[0]
        if inner.type is None or not keeps_every_value(inner.type, expr.type):
            return None
        if isinstance(inner, Call) and inner.op == "cast":
            # One cast is what the domains mean; a second may have rounded on the way.
            return None
        side = _side(inner)
        # A sum keeps its meaning as a wider integer only.
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
    if isinstance(second, Lapse):
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
