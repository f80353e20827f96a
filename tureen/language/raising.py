"""Which expressions can raise on a row."""

from __future__ import annotations

from tureen.language.tree import Call, Expr, children
from tureen.language.types import keeps_every_value
from tureen.schema import FRACTIONAL, Kind

RAISING_FUNCTIONS = frozenset({"abs", "ceil", "floor", "upper", "lower"})


def can_raise(expr: Expr) -> bool:
    """Whether an expression can raise: by overflow, division by zero, or a cast."""
    todo = [expr]
    while todo:
        one = todo.pop()
        if isinstance(one, Call) and _raises(one):
            return True
        todo.extend(children(one))
    return False


def _raises(call: Call) -> bool:
    if call.op in ("/", "%", "div") or call.op in RAISING_FUNCTIONS:
        return True
    if call.op in ("+", "-", "*", "neg"):
        return call.type.kind not in FRACTIONAL | {Kind.DECIMAL}
    if call.op == "cast":
        source = call.args[0].type
        harmless = call.type.kind in (Kind.STRING, Kind.BOOLEAN, Kind.DOUBLE)
        return source is None or not (harmless or keeps_every_value(source, call.type))
    return False
