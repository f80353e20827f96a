"""NOW in expressions: `NOW`, `now()`, `current_timestamp` and `current_date`.

NOW is the moment of the invocation. It is bound as a column of every row, so that an expression with it is computed
when the query is asked, like any other over the answer's rows.
"""

from __future__ import annotations

from sqlglot import exp

from tureen.errors import Unsupported
from tureen.language.binding.coerce import explicit_cast
from tureen.language.source import Source, offset_of
from tureen.language.tree import BOOLEAN, DATE, TIMESTAMP, Call, Const, Expr, Ref, columns_in
from tureen.query import NOW
from tureen.schema import Column

NAMES = ("now", "current_timestamp", "current_date", "curdate")
"""The functions that give the current time."""


def now(at: int) -> Ref:
    """The moment of the invocation."""
    return Ref(Column(NOW, TIMESTAMP), at)


def is_now(node: exp.Expression) -> bool:
    """Whether a call asks for the current time or date."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower() == "now"
    return isinstance(node, exp.CurrentTimestamp | exp.CurrentDate)


def bind_now(source: Source, node: exp.Expression) -> Expr:
    """The current time, or the current date, which is that of UTC."""
    if node.expressions if isinstance(node, exp.Anonymous) else node.this:
        raise Unsupported(
            "the current time takes no argument", hint="write now() or current_date()", place=source.node(node)
        )
    moment = now(offset_of(node))
    return explicit_cast(source, moment, DATE) if isinstance(node, exp.CurrentDate) else moment


def split_now(condition: Expr) -> tuple[Expr, Expr | None]:
    """A condition without the factors that depend on NOW, and these; None where there are none."""
    factors = _factors(condition)
    fixed = tuple(one for one in factors if NOW not in columns_in(one))
    moving = tuple(one for one in factors if NOW in columns_in(one))
    return _all(fixed, condition.at), _all(moving, condition.at) if moving else None


def _factors(condition: Expr) -> list[Expr]:
    if isinstance(condition, Call) and condition.op == "and":
        return [factor for part in condition.args for factor in _factors(part)]
    return [condition]


def _all(factors: tuple[Expr, ...], at: int) -> Expr:
    if not factors:
        return Const(1, BOOLEAN, at)
    return factors[0] if len(factors) == 1 else Call("and", factors, BOOLEAN, at)
