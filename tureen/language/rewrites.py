"""Functions that are another spelling of what the bound tree has already."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from tureen.errors import SqlError, TypeMismatch, Unsupported
from tureen.language import arithmetic
from tureen.language.coerce import coerce, common, compare_type, explicit_cast, fold, type_name
from tureen.language.source import Source, offset_of
from tureen.language.tree import BOOLEAN, DATE, STRING, Call, Const, Expr
from tureen.schema import Kind

Bind = Callable[[exp.Expression], Expr]
Rewrite = Callable[[Source, exp.Expression, Bind], Expr]


def _coalesce(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    return _variadic(source, node, [bind(one) for one in (node.this, *node.expressions)], "coalesce")


def _extreme(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    args = [bind(one) for one in (node.this, *node.expressions)]
    kinds = {one.type.kind for one in args if one.type is not None}
    if len(args) < 2:
        raise SqlError(f"{node.key} takes at least 2 arguments", place=source.node(node))
    if Kind.STRING in kinds and len(kinds) > 1:
        raise TypeMismatch(f"{node.key} of a STRING and another type", place=source.node(node))
    return _variadic(source, node, args, node.key)


def _variadic(source: Source, node: exp.Expression, args: list[Expr], name: str) -> Expr:
    target, at = common(source, args), offset_of(node)
    if target is None:
        return Const(None, None, at)
    sides = tuple(coerce(source, one, target) for one in args)
    slots = ", ".join(f"{{{i}}}" for i in range(len(sides)))
    return fold(source, Call(name, sides, target, at, extra=f"{name}({slots})"))


def _nullif(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    left, right = bind(node.this), bind(node.expression)
    target = compare_type(source, left, right)
    if target is None or left.type is None:
        return left
    sides = coerce(source, left, target), coerce(source, right, target)
    same = fold(source, Call("=", sides, BOOLEAN, left.at))
    return fold(source, Call("case", (same, Const(None, left.type, left.at), left), left.type, left.at))


def _nvl2(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    value, yes, no = bind(node.this), bind(node.args["true"]), bind(node.args["false"])
    target = common(source, [yes, no])
    if target is None:
        return Const(None, None, value.at)
    missing = fold(source, Call("isnull", (value,), BOOLEAN, value.at))
    args = (missing, coerce(source, no, target), coerce(source, yes, target))
    return fold(source, Call("case", args, target, value.at))


def _concat(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    nodes = node.expressions if isinstance(node, exp.Concat) else [node.this, node.expression]
    args: list[Expr] = []
    for one in map(bind, nodes):
        if one.type is None and isinstance(one, Const):
            one = Const(None, STRING, one.at)
        args.append(explicit_cast(source, one, STRING))
    if not args:
        raise SqlError("concat takes at least 1 argument", place=source.node(node))
    slots = " || ".join(f"{{{i}}}" for i in range(len(args)))
    return fold(source, Call("concat", tuple(args), STRING, offset_of(node), extra=f"({slots})"))


def _affix(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    """startswith, endswith and contains are LIKE with a constant."""
    value, part = bind(node.this), bind(node.expression)
    if value.type is None or (isinstance(part, Const) and part.value is None):
        return Const(None, BOOLEAN, value.at)
    if value.type != STRING or part.type != STRING:
        wrong = part if value.type == STRING else value
        raise TypeMismatch(f"{node.key} is over STRING, not {type_name(wrong)}", place=source.place(wrong.at))
    if not isinstance(part, Const):
        raise Unsupported(
            f"the second argument of {node.key} is a constant", hint="write it out", place=source.place(part.at)
        )
    text = "".join(f"\\{one}" if one in "%_\\" else one for one in str(part.value))
    before = "" if isinstance(node, exp.StartsWith) else "%"
    after = "" if isinstance(node, exp.EndsWith) else "%"
    pattern = before + text + after if text else "%"
    return fold(source, Call("like", (value,), BOOLEAN, value.at, extra=pattern))


def _date(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    """date(x) and to_date(x)."""
    if node.args.get("format"):
        raise Unsupported("to_date with a format is not supported", place=source.node(node))
    return explicit_cast(source, bind(node.this), DATE)


def _date_add(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    """date_add(x, days) and date_sub(x, days)."""
    day = bind(node.this)
    return arithmetic.combine(source, "+", explicit_cast(source, day, DATE), bind(node.expression))


REWRITES: dict[type[exp.Expression], Rewrite] = {
    exp.Coalesce: _coalesce,
    exp.Greatest: _extreme,
    exp.Least: _extreme,
    exp.Nullif: _nullif,
    exp.Nvl2: _nvl2,
    exp.Concat: _concat,
    exp.DPipe: _concat,
    exp.StartsWith: _affix,
    exp.EndsWith: _affix,
    exp.Contains: _affix,
    exp.TsOrDsToDate: _date,
    exp.TsOrDsAdd: _date_add,
}
