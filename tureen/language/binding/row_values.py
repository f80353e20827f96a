"""Row values: `(a, b) < (1, 2)`, `(a, b) IN ((1, 2), (3, 4))`, expanded to comparisons of their fields.

They compare as structs do in Spark: field by field, where NULL is less than any value and equal to itself. So a
comparison of two rows is TRUE or FALSE, never NULL.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from tureen.errors import SqlError, Unsupported
from tureen.language.binding.coerce import fold
from tureen.language.source import Source, offset_of
from tureen.language.tree import BOOLEAN, Call, Const, Expr

MOST_FIELDS = 64
"""The maximum number of values of a row: each comparison is nested in the one before."""

Compare = Callable[[str, exp.Expression, exp.Expression], Expr]
"""Binds the comparison of two values."""


def is_row(node: exp.Expression | None) -> bool:
    """Whether an expression is a row of values."""
    while isinstance(node, exp.Paren):
        node = node.this
    return isinstance(node, exp.Tuple)


def compare_rows(source: Source, compare: Compare, op: str, left: exp.Expression, right: exp.Expression) -> Expr:
    """The comparison of two rows, expanded to their fields."""
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
    """Whether a row equals one of several rows."""
    return _joined("or", [_same(source, compare, row, other) for other in rows], offset_of(row))


def _same(source: Source, compare: Compare, left: exp.Expression, right: exp.Expression) -> Expr:
    if not is_row(left) and not is_row(right):
        return compare("<=>", left, right)
    pairs = _fields(source, left, right)
    return _joined("and", [_same(source, compare, *pair) for pair in pairs], offset_of(left))


def _less(source: Source, compare: Compare, left: exp.Expression, right: exp.Expression) -> Expr:
    """Whether a row is less than another: in its first field or, if that is equal, in the rest."""
    at = offset_of(left)
    if not is_row(left) and not is_row(right):
        first = _is_true(source, compare("<", left, right))
        null_first = [_is_null(source, compare, left), _not(_is_null(source, compare, right))]
        return _joined("or", [_joined("and", null_first, at), first], at)
    pairs = _fields(source, left, right)
    less = _less(source, compare, *pairs[-1])
    for pair in reversed(pairs[:-1]):
        rest = _joined("and", [_same(source, compare, *pair), less], at)
        less = _joined("or", [_less(source, compare, *pair), rest], at)
    return less


def _fields(source: Source, left: exp.Expression, right: exp.Expression) -> list[tuple[exp.Expression, exp.Expression]]:
    first, second = _unwrapped(left), _unwrapped(right)
    if not isinstance(first, exp.Tuple) or not isinstance(second, exp.Tuple):
        raise SqlError(
            "a row can only be compared with another row",
            hint="such as (a, b) < (1, 2)",
            location=source.node(second if isinstance(first, exp.Tuple) else first),
        )
    if len(first.expressions) > MOST_FIELDS:
        raise Unsupported(
            f"a row can have at most {MOST_FIELDS} values", hint="leave some out", location=source.node(first)
        )
    if len(first.expressions) != len(second.expressions) or not first.expressions:
        sizes = f"{len(first.expressions)} and {len(second.expressions)}"
        raise SqlError(
            f"rows of {sizes} values cannot be compared",
            hint="both rows must have the same number of values",
            location=source.node(second),
        )
    return list(zip(first.expressions, second.expressions, strict=True))


def _unwrapped(node: exp.Expression) -> exp.Expression:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _is_null(source: Source, compare: Compare, node: exp.Expression) -> Expr:
    """Whether a value is NULL; bound independently of the other side."""
    bound = compare("<=>", node, exp.Null())
    return fold(source, bound) if isinstance(bound, Call) else bound


def _is_true(source: Source, condition: Expr) -> Expr:
    return fold(source, Call("istrue", (condition,), BOOLEAN, condition.at))


def _not(condition: Expr) -> Expr:
    if isinstance(condition, Const):
        return Const(int(not condition.value), BOOLEAN, condition.at)
    return Call("not", (condition,), BOOLEAN, condition.at)


def _joined(word: str, parts: list[Expr], at: int) -> Expr:
    """AND or OR of conditions that are never NULL; constants are simplified away."""
    decides = word == "or"
    rest = []
    for part in parts:
        if not isinstance(part, Const):
            rest.append(part)
        elif bool(part.value) is decides:
            return Const(int(decides), BOOLEAN, at)
    if len(rest) < 2:
        return rest[0] if rest else Const(int(not decides), BOOLEAN, at)
    return Call(word, tuple(rest), BOOLEAN, at)
