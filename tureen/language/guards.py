"""Which expressions can raise on a row, and what keeps them from rows that AND and OR would have skipped.

Factors are evaluated apart from each other, but in `b <> 0 AND a / b > 1` the division must not meet the rows that the
first condition excludes. So an expression that can raise carries the conditions before it with it.
"""

from __future__ import annotations

from tureen.language.functions import RAISING
from tureen.language.render import LONGEST, render
from tureen.language.tree import Call, Expr, children
from tureen.language.types import keeps_every_value
from tureen.schema import FRACTIONAL, Kind

Guard = tuple[Expr, bool]
"""A condition, and the truth at which what follows is skipped."""


def can_raise(expr: Expr) -> bool:
    """Whether an expression can raise on some row."""
    todo = [expr]
    while todo:
        one = todo.pop()
        if isinstance(one, Call) and _raises(one):
            return True
        todo.extend(children(one))
    return False


def guarded(text: str, guards: tuple[Guard, ...]) -> str:
    """The SQL, evaluated only where no guard skips it."""
    if not guards:
        return text
    whens = [f"WHEN {render(one)} IS {'TRUE' if skip else 'FALSE'} THEN FALSE" for one, skip in guards]
    if sum(map(len, whens)) > LONGEST:
        return text
    return f"(CASE {' '.join(whens)} ELSE {text} END)"


def _raises(call: Call) -> bool:
    if call.op in ("/", "%", "div") or call.op in RAISING:
        return True
    if call.op in ("+", "-", "*", "neg"):
        return call.type.kind not in FRACTIONAL | {Kind.DECIMAL}
    if call.op == "cast":
        source = call.args[0].type
        harmless = call.type.kind in (Kind.STRING, Kind.BOOLEAN, Kind.DOUBLE, Kind.FLOAT)
        return source is None or not (harmless or keeps_every_value(source, call.type))
    return False
