"""NOW in expressions: `NOW`, `now()`, `current_timestamp` and `current_date`.

NOW is the moment of the invocation. It is bound as a column of every row, so that an expression with it is computed
when the query is asked, like any other over the answer's rows.
"""

from __future__ import annotations

from sqlglot import exp

from tureen.errors import Unsupported
from tureen.language.binding.coerce import explicit_cast
from tureen.language.source import Source, offset_of
from tureen.language.tree import DATE, TIMESTAMP, Expr, Ref, columns_in
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
            "the current time takes no argument", hint="write now() or current_date()", location=source.node(node)
        )
    moment = now(offset_of(node))
    return explicit_cast(source, moment, DATE) if isinstance(node, exp.CurrentDate) else moment


def uses_now(expr: Expr) -> bool:
    """Whether an expression depends on NOW."""
    return NOW in columns_in(expr)
