"""From sqlglot's tree to the bound tree: names are resolved, types inferred, Spark's implicit casts inserted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from sqlglot import exp

from tureen.errors import SqlError, TureenError, TypeMismatch, Unsupported
from tureen.language.binding import arithmetic, ranking
from tureen.language.binding import row_values as rows
from tureen.language.binding.aggregates import is_aggregate, misplaced
from tureen.language.binding.atoms import boolean, interval, literal, null, number
from tureen.language.binding.binary import is_bytes, text_of_bytes
from tureen.language.binding.calls import bind_function, lower
from tureen.language.binding.coerce import (
    a_type,
    coerce,
    common,
    compare_type,
    explicit_cast,
    fold,
    try_cast,
    type_name,
)
from tureen.language.binding.now import bind_now, is_now
from tureen.language.binding.scope import Scope
from tureen.language.predicates.patterns import read_pattern
from tureen.language.source import offset_of
from tureen.language.text.blocks import is_block_name
from tureen.language.text.in_lists import constants_of
from tureen.language.tree import BOOLEAN, STRING, Call, Const, Expr, IntervalConst
from tureen.schema import SCALARS, Type

_COMPARISONS: dict[type[exp.Expression], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_ARITHMETIC: dict[type[exp.Expression], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
}
_UNSUPPORTED: dict[type[exp.Expression], tuple[str, str]] = {
    exp.Subquery: ("a subquery", "list the values, or register a second query"),
    exp.Select: ("a subquery", "list the values, or register a second query"),
    exp.Placeholder: ("a parameter", "write the value itself"),
    exp.Parameter: ("a parameter", "write the value itself"),
    exp.SessionParameter: ("a parameter", "write the value itself"),
    exp.Any: ("ANY", "write x IN (SELECT …), or EXISTS (SELECT … WHERE …); the aggregate is bool_or"),
    exp.SimilarTo: ("SIMILAR TO", "use LIKE"),
    exp.RegexpILike: ("a regular expression", "use LIKE"),
    exp.Star: ("* in WHERE", "name a column"),
    exp.Tuple: ("a row of values here", "compare it with another row, such as (a, b) < (1, 2)"),
    exp.Bracket: ("an element in brackets", "compare whole columns"),
    exp.Lambda: ("a lambda function", "compare columns"),
}


def bind_condition(scope: Scope, node: exp.Expression) -> Expr:
    """The bound tree of a condition: WHERE, HAVING or FILTER."""
    return _condition(scope, node, scope.clause)


def bind(scope: Scope, node: exp.Expression) -> Expr:
    """The bound tree of an expression."""
    if isinstance(node, exp.Window):
        if scope.over is None:
            raise ranking.misplaced(scope, node)
        return scope.over(node)
    if ranking.is_ranking(node):
        raise ranking.without_over(scope, node)
    if is_aggregate(node):
        if scope.aggregate is None:
            raise misplaced(scope, node)
        return scope.aggregate(node)
    if is_now(node):
        return bind_now(scope.source, node)
    handler = _HANDLERS.get(type(node))
    if handler is not None:
        return handler(scope, node)
    if type(node) in _COMPARISONS:
        return _compared(scope, _COMPARISONS[type(node)], node.this, node.expression)
    if type(node) in _ARITHMETIC:
        return _binary(scope, node)
    if type(node) in _UNSUPPORTED:
        construct, hint = _UNSUPPORTED[type(node)]
        raise Unsupported(f"{construct} is not supported", hint=hint, location=scope.source.node(node))
    return bind_function(scope.source, node, lambda argument: bind(scope, argument))


def _compared(scope: Scope, op: str, left: exp.Expression, right: exp.Expression) -> Expr:
    """A comparison of two values, or of two rows of values."""
    if rows.is_row(left) or rows.is_row(right):
        return rows.compare_rows(scope.source, partial(_compared, scope), op, left, right)
    return compare(scope, op, bind(scope, left), bind(scope, right))


def compare(scope: Scope, op: str, left: Expr, right: Expr) -> Expr:
    """A comparison, with both sides cast to the type in which Spark compares them."""
    at = min(left.at, right.at)
    if isinstance(left, IntervalConst) or isinstance(right, IntervalConst):
        interval = left if isinstance(left, IntervalConst) else right
        raise Unsupported(
            "comparing intervals is not supported",
            hint="write it as a sum, such as a < b + INTERVAL '5' MINUTE",
            location=scope.source.location(interval.at),
        )
    target = compare_type(scope.source, left, right)
    if target is None:
        return Const(1 if op == "<=>" else None, BOOLEAN, at)
    sides = coerce(scope.source, left, target), coerce(scope.source, right, target)
    return fold(scope.source, Call(op, sides, BOOLEAN, at))


def _condition(scope: Scope, node: exp.Expression, construct: str) -> Expr:
    bound = bind(scope, node)
    if bound.type is None and isinstance(bound, Const):
        return Const(None, BOOLEAN, bound.at)
    if bound.type != BOOLEAN:
        raise TypeMismatch(
            f"{construct} requires a condition, got {a_type(bound)}",
            hint="compare it with a value",
            location=scope.source.location(bound.at),
        )
    return bound


def _logic(scope: Scope, node: exp.Expression) -> Expr:
    word = "AND" if isinstance(node, exp.And) else "OR"
    parts = tuple(_condition(scope, operand, word) for operand in _flatten(node))
    return Call(word.lower(), parts, BOOLEAN, min(part.at for part in parts))


def _flatten(node: exp.Expression) -> list[exp.Expression]:
    """The operands of a chain of the same connector. Iterative, because chains may be long."""
    operands: list[exp.Expression] = []
    pending = [node]
    while pending:
        current = pending.pop()
        if type(current) is type(node):
            pending += [current.expression, current.this]
        else:
            operands.append(current)
    return operands


def _not(scope: Scope, node: exp.Expression) -> Expr:
    inner = _condition(scope, node.this, "NOT")
    return Call("not", (inner,), BOOLEAN, inner.at)


def _between(scope: Scope, node: exp.Expression) -> Expr:
    if node.args.get("symmetric"):
        raise Unsupported("BETWEEN SYMMETRIC is not supported", location=scope.source.node(node))
    low = _compared(scope, ">=", node.this, node.args["low"])
    high = _compared(scope, "<=", node.this, node.args["high"])
    return Call("and", (low, high), BOOLEAN, offset_of(node.this))


def _in(scope: Scope, node: exp.Expression) -> Expr:
    if node.args.get("query") or node.args.get("unnest") or node.args.get("field"):
        raise Unsupported(
            "IN requires a list of values",
            hint="such as IN (1, 2, 3)",
            location=scope.source.node(node),
        )
    if not node.expressions:
        raise SqlError("the list of IN is empty", location=scope.source.node(node))
    if len(node.expressions) == 1 and is_block_name(node.expressions[0].name):
        return _subquery(scope, node)
    if any(map(rows.is_row, (node.this, *node.expressions))):
        return rows.row_in(scope.source, partial(_compared, scope), node.this, node.expressions)
    value = bind(scope, node.this)
    items = _items(scope, node.expressions)
    target = common(scope.source, [value, *items])
    if target is None:
        return Const(None, BOOLEAN, value.at)
    value, *items = [coerce(scope.source, operand, target) for operand in (value, *items)]
    if all(isinstance(item, Const) for item in items):
        return fold(scope.source, Call("in", (value, *items), BOOLEAN, value.at))
    parts = tuple(fold(scope.source, Call("=", (value, item), BOOLEAN, value.at)) for item in items)
    return Call("or", parts, BOOLEAN, value.at)


def _items(scope: Scope, nodes: list[exp.Expression]) -> list[Expr]:
    """The bound values of a list."""
    if len(nodes) == 1 and isinstance(nodes[0], exp.RawString):
        return [*constants_of(scope.source, nodes[0].meta["start"], nodes[0].meta["end"] + 1)]
    return [bind(scope, node) for node in nodes]


def _is(scope: Scope, node: exp.Expression) -> Expr:
    value = bind(scope, node.this)
    operand = node.expression
    if isinstance(operand, exp.Null):
        return fold(scope.source, Call("isnull", (value,), BOOLEAN, value.at))
    if isinstance(operand, exp.Boolean):
        side = _condition(scope, node.this, "IS TRUE") if value.type != BOOLEAN else value
        return fold(scope.source, Call("istrue" if operand.this else "isfalse", (side,), BOOLEAN, value.at))
    raise Unsupported(
        "IS must be followed by NULL, TRUE or FALSE",
        hint="use <=> to compare with NULLs",
        location=scope.source.node(node),
    )


def _distinct(scope: Scope, node: exp.Expression) -> Expr:
    same = _compared(scope, "<=>", node.this, node.expression)
    return Call("not", (same,), BOOLEAN, same.at)


def _like(scope: Scope, node: exp.Expression) -> Expr:
    escape: str | None = None
    if isinstance(node, exp.Escape):
        mark = bind(scope, node.expression)
        node = node.this
        if not isinstance(mark, Const) or not isinstance(mark.value, str) or len(mark.value) != 1:
            raise SqlError("ESCAPE must be a single character", location=scope.source.location(mark.at))
        escape = mark.value
    if not isinstance(node, exp.Like | exp.ILike) or isinstance(node.expression, exp.Any | exp.All):
        raise Unsupported(
            "only LIKE with one pattern is supported", hint="join several with OR", location=scope.source.node(node)
        )
    value, pattern = bind(scope, node.this), bind(scope, node.expression)
    if not isinstance(pattern, Const):
        raise Unsupported(
            "the pattern of LIKE must be a constant",
            hint="write it as a literal",
            location=scope.source.location(pattern.at),
        )
    if (value.type is None and isinstance(value, Const)) or pattern.value is None:
        return Const(None, BOOLEAN, value.at)
    if value.type != STRING or not isinstance(pattern.value, str):
        wrong = value if value.type != STRING else pattern
        raise TypeMismatch(
            f"LIKE requires a STRING, got {type_name(wrong)}",
            hint="write CAST(… AS STRING)",
            location=scope.source.location(wrong.at),
        )
    if isinstance(node, exp.ILike):
        value, pattern = (lower(scope.source, side) for side in (value, pattern))
        assert isinstance(pattern, Const)
    text = read_pattern(scope.source, str(pattern.value), escape or "\\", pattern.at)
    match = fold(scope.source, Call("like", (value,), BOOLEAN, value.at, extra=text))
    return Call("not", (match,), BOOLEAN, value.at) if node.args.get("negate") else match


def _neg(scope: Scope, node: exp.Expression) -> Expr:
    inner = node.this
    literal = inner.this if isinstance(inner, exp.TryCast) else inner
    # The sign is part of the literal: -2147483648 is an INT, although 2147483648 is not.
    if isinstance(literal, exp.Literal) and (constant := number(scope, inner, True)) is not None:
        return constant
    return arithmetic.negate(scope.source, bind(scope, inner))


def _column(scope: Scope, node: exp.Expression) -> Expr:
    return scope.column(cast(exp.Column, node))


def _subquery(scope: Scope, node: exp.Expression) -> Expr:
    if scope.subquery is None:
        word = "EXISTS" if isinstance(node, exp.Exists) else "IN with a query"
        raise Unsupported(
            f"{word} is not supported in {scope.clause}",
            hint="write it in WHERE, or add GROUP BY without grouping sets",
            location=scope.source.node(node),
        )
    return scope.subquery(node)


def _paren(scope: Scope, node: exp.Expression) -> Expr:
    return bind(scope, node.this)


def _binary(scope: Scope, node: exp.Expression) -> Expr:
    left, right = bind(scope, node.this), bind(scope, node.expression)
    return arithmetic.combine(scope.source, _ARITHMETIC[type(node)], left, right)


def _cast(scope: Scope, node: exp.Expression) -> Expr:
    constant = number(scope, node)
    if constant is not None:
        return constant
    text = node.args["to"].sql("spark")
    try:
        # VARCHAR(n) and CHAR(n) truncate or pad; only STRING leaves a string unchanged.
        target = Type.parse(text if "CHAR" not in text.upper() else "CHAR")
    except TureenError:
        raise Unsupported(
            f"the type {text} is not supported",
            hint=f"types are {', '.join(SCALARS)}",
            location=scope.source.node(node),
        ) from None
    if is_bytes(node.this) and target == STRING and not node.args.get("safe"):
        return text_of_bytes(scope.source, node.this, lambda argument: bind(scope, argument))
    value = bind(scope, node.this)
    return (try_cast if node.args.get("safe") else explicit_cast)(scope.source, value, target)


def _if(scope: Scope, node: exp.Expression) -> Expr:
    return _branches(scope, node, [node])


def _case(scope: Scope, node: exp.Expression) -> Expr:
    return _branches(scope, node, node.args["ifs"])


def _branches(scope: Scope, node: exp.Expression, ifs: list[Any]) -> Expr:
    """CASE and IF: conditions and values alternate, followed by the ELSE value."""
    subject = bind(scope, node.this) if isinstance(node, exp.Case) and node.this else None
    conditions: list[Expr] = []
    values: list[Expr] = []
    for branch in ifs:
        if subject is None:
            conditions.append(_condition(scope, branch.this, "WHEN"))
        else:
            conditions.append(compare(scope, "=", subject, bind(scope, branch.this)))
        values.append(bind(scope, branch.args["true"]))
    otherwise = node.args.get("false") or node.args.get("default")
    values.append(bind(scope, otherwise) if otherwise is not None else Const(None, None, offset_of(node)))
    target = common(scope.source, values)
    at = offset_of(node)
    if target is None:
        return Const(None, None, at)
    values = [coerce(scope.source, value, target) for value in values]
    args = [arg for pair in zip(conditions, values, strict=False) for arg in pair]
    return fold(scope.source, Call("case", (*args, values[-1]), target, at))


_Handler = Callable[[Scope, exp.Expression], Expr]
_HANDLERS: dict[type[exp.Expression], _Handler] = {
    exp.And: _logic,
    exp.Or: _logic,
    exp.Not: _not,
    exp.Between: _between,
    exp.In: _in,
    exp.Is: _is,
    exp.NullSafeNEQ: _distinct,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Escape: _like,
    exp.Neg: _neg,
    exp.Literal: literal,
    exp.Null: null,
    exp.Boolean: boolean,
    exp.Column: _column,
    exp.Exists: _subquery,
    exp.Paren: _paren,
    exp.Interval: interval,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.If: _if,
    exp.Case: _case,
}
