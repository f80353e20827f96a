"""Row values: `(a, b) < (1, 2)`, `(a, b) IN ((1, 2), (3, 4))`, written out as comparisons of their fields.

They compare as Spark compares structures: field by field, where NULL is less than any value and equals itself. So a
comparison of two rows is TRUE or FALSE, and never NULL.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from tureen.errors import SqlError, Unsupported
from tureen.language.binding.coerce import fold
from tureen.language.source import Source, offset_of
from tureen.language.tree import BOOLEAN, Call, Const, Expr

MOST_FIELDS = 64
"""The most values of a row that is compared: each is nested in the comparison of the one before."""

Compare = Callable[[str, exp.Expression, exp.Expression], Expr]
"""Binds the comparison of two values."""


def is_row(node: exp.Expression | None) -> bool:
    """Whether an expression is a row of values."""
    while isinstance(node, exp.Paren):
        node = node.this
    return isinstance(node, exp.Tuple)


def compare_rows(source: Source, compare: Compare, op: str, left: exp.Expression, right: exp.Expression) -> Expr:
    """The comparison of two rows, as one of their fields."""
    match op:
        case "=" | "<=>":
            return _same(source, compare, left, right)
        case "<>":
            return _not(_same(source, compare, left, right))
        case "<":
            return _less(source, compare, left, right)
        case ">":
            return _less(source, compare, right, left)
        case "<=":
            return _not(_less(source, compare, right, left))
    assert op == ">=", op
    return _not(_less(source, compare, left, right))


def row_in(source: Source, compare: Compare, row: exp.Expression, rows: list[exp.Expression]) -> Expr:
    """Whether a row is one of some."""
    return _joined("or", [_same(source, compare, row, one) for one in rows], offset_of(row))


def _same(source: Source, compare: Compare, left: exp.Expression, right: exp.Expression) -> Expr:
    if not is_row(left) and not is_row(right):
        return compare("<=>", left, right)
    pairs = _fields(source, left, right)
    return _joined("and", [_same(source, compare, one, other) for one, other in pairs], offset_of(left))


def _less(source: Source, compare: Compare, left: exp.Expression, right: exp.Expression) -> Expr:
    """Whether one row comes before another: in its first field or, where that is the same, in the rest."""
    at = offset_of(left)
    if not is_row(left) and not is_row(right):
        first = _is_true(source, compare("<", left, right))
        absent = [_is_null(source, compare, left), _not(_is_null(source, compare, right))]
        return _joined("or", [_joined("and", absent, at), first], at)
    pairs = _fields(source, left, right)
    found = _less(source, compare, *pairs[-1])
    for one, other in reversed(pairs[:-1]):
        rest = _joined("and", [_same(source, compare, one, other), found], at)
        found = _joined("or", [_less(source, compare, one, other), rest], at)
    return found


def _fields(source: Source, left: exp.Expression, right: exp.Expression) -> list[tuple[exp.Expression, exp.Expression]]:
    first, second = _unwrapped(left), _unwrapped(right)
    if not isinstance(first, exp.Tuple) or not isinstance(second, exp.Tuple):
        raise SqlError(
            "a row of values is compared with another row",
            hint="such as (a, b) < (1, 2)",
            place=source.node(second if isinstance(first, exp.Tuple) else first),
        )
    if len(first.expressions) > MOST_FIELDS:
        raise Unsupported(f"a row of values has at most {MOST_FIELDS}", hint="leave some out", place=source.node(first))
    if len(first.expressions) != len(second.expressions) or not first.expressions:
        sizes = f"{len(first.expressions)} and {len(second.expressions)}"
        raise SqlError(
            f"rows of {sizes} values cannot be compared", hint="give both as many", place=source.node(second)
        )
    return list(zip(first.expressions, second.expressions, strict=True))


def _unwrapped(node: exp.Expression) -> exp.Expression:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _is_null(source: Source, compare: Compare, node: exp.Expression) -> Expr:
    """Whether a value is NULL; bound by itself, whatever it is compared with."""
    bound = compare("<=>", node, exp.Null())
    return fold(source, bound) if isinstance(bound, Call) else bound


def _is_true(source: Source, condition: Expr) -> Expr:
    return fold(source, Call("istrue", (condition,), BOOLEAN, condition.at))


def _not(condition: Expr) -> Expr:
    if isinstance(condition, Const):
        return Const(int(not condition.value), BOOLEAN, condition.at)
    return Call("not", (condition,), BOOLEAN, condition.at)


def _joined(word: str, parts: list[Expr], at: int) -> Expr:
    """Conditions that are TRUE or FALSE, joined; those that change nothing are left out."""
    decides = word == "or"
    kept = []
    for part in parts:
        if not isinstance(part, Const):
            kept.append(part)
        elif bool(part.value) is decides:
            return Const(int(decides), BOOLEAN, at)
    if len(kept) < 2:
        return kept[0] if kept else Const(int(not decides), BOOLEAN, at)
    return Call(word, tuple(kept), BOOLEAN, at)
