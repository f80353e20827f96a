"""Which expressions can raise on a row."""

from __future__ import annotations

from tureen.language.decimal_types import exact_result
from tureen.language.functions.json import JSON
from tureen.language.functions.math import MATH
from tureen.language.functions.regexes import REGEXES
from tureen.language.functions.text import TEXT
from tureen.language.functions.time import TIMES
from tureen.language.tree import USER_FUNCTION, Call, Expr, children
from tureen.language.types import MAX_PRECISION, keeps_every_value
from tureen.schema import FRACTIONAL, NUMERIC, Kind

RAISING_FUNCTIONS = frozenset(
    name for name, function in (MATH | TEXT | TIMES | JSON | REGEXES).items() if function.raises
)

MOST_NEGATED = 34
"""The maximum precision of a negated DECIMAL: beyond it Spark's result is not exact, and ours raises."""


def can_raise(expr: Expr) -> bool:
    """Whether an expression can raise: by overflow, division by zero, or a cast."""
    pending = [expr]
    while pending:
        node = pending.pop()
        if isinstance(node, Call) and _raises(node):
            return True
        pending.extend(children(node))
    return False


def _raises(call: Call) -> bool:
    if call.op in ("/", "%", "div", "read time", "bytes", USER_FUNCTION) or call.op in RAISING_FUNCTIONS:
        return True
    if call.op == "neg" and call.type.precision > MOST_NEGATED:
        return True
    if call.op in ("+", "-", "*") and call.type.kind is Kind.DECIMAL:
        left, right = call.args[0].type, call.args[1].type
        assert left is not None
        assert right is not None
        return exact_result(call.op, left, right).precision > MAX_PRECISION
    if call.op in ("+", "-", "*", "neg"):
        return call.type.kind not in FRACTIONAL | {Kind.DECIMAL}
    if call.op in ("cast", "try_cast"):
        return _cast_raises(call)
    return False


def _cast_raises(call: Call) -> bool:
    source = call.args[0].type
    if source is None or source.kind is Kind.STRING:
        # TRY_CAST raises too, for the few strings that Spark parses and we do not.
        return True
    if call.op == "try_cast" or keeps_every_value(source, call.type):
        return False
    harmless = {Kind.STRING, Kind.BOOLEAN} | (FRACTIONAL if source.kind in NUMERIC | {Kind.BOOLEAN} else set())
    return call.type.kind not in harmless
