"""NOW in expressions: `NOW`, `now()`, `current_timestamp` and `current_date`.

NOW is the time of the invocation. It is bound as a column of every row, so that expressions with NOW are evaluated at
each invocation, like any other expression over the rows of the answer.
"""

from __future__ import annotations

from sqlglot import exp

from tureen.errors import Unsupported
from tureen.language.binding.coerce import explicit_cast
from tureen.language.source import Source, offset_of
from tureen.language.tree import DATE, TIMESTAMP, Expr, Ref
from tureen.query import NOW
from tureen.schema import Column

NAMES = ("now", "current_timestamp", "current_date", "curdate")
"""The functions that return the current time or date."""


def now(at: int) -> Ref:
    """The time of the invocation."""
    return Ref(Column(NOW, TIMESTAMP), at)


def is_now(node: exp.Expression) -> bool:
    """Whether a node is a call that returns the current time or date."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower() == "now"
    return isinstance(node, exp.CurrentTimestamp | exp.CurrentDate)


def bind_now(source: Source, node: exp.Expression) -> Expr:
    """The current time, or the current date in UTC."""
    if node.expressions if isinstance(node, exp.Anonymous) else node.this:
        raise Unsupported(
            "now() and current_date() take no arguments",
            hint="write now() or current_date()",
            location=source.node(node),
        )
    time = now(offset_of(node))
    return explicit_cast(source, time, DATE) if isinstance(node, exp.CurrentDate) else time
