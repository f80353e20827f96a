"""Step windows in GROUP BY: `TUMBLE(ts, length)`, `HOP(ts, slide, length)` and Spark's `window(ts, '5 minutes')`."""

from __future__ import annotations

from sqlglot import exp

from tureen.errors import SqlError, Unsupported
from tureen.language.binding.atoms import interval
from tureen.language.binding.scope import Scope
from tureen.language.durations import Duration, interval_text
from tureen.language.source import Source, offset_of
from tureen.language.tree import TIMESTAMP, Expr, Ref
from tureen.query import STEP_END, STEP_START
from tureen.schema import Column
from tureen.window import Steps

_FUNCTIONS = {"tumble": (2,), "hop": (3,), "window": (2, 3, 4)}
_FORMS = {
    "tumble": "TUMBLE(ts, INTERVAL '5' MINUTE)",
    "hop": "HOP(ts, INTERVAL '1' MINUTE, INTERVAL '5' MINUTE)",
    "window": "window(ts, '5 minutes', '1 minute')",
}


def is_step(node: exp.Expression) -> bool:
    """Whether an item of GROUP BY is a step window."""
    return isinstance(node, exp.Anonymous) and node.name.lower() in _FUNCTIONS


def step_of(scope: Scope, node: exp.Expression) -> Steps:
    """The steps of a function of GROUP BY."""
    name, args = node.name.lower(), node.expressions
    if len(args) not in _FUNCTIONS[name]:
        raise SqlError(
            f"{name.upper()} requires the time column and the lengths of the steps",
            hint=f"write {_FORMS[name]}",
            location=scope.source.node(node),
        )
    _check_time(scope, args[0], name)
    lengths = [_length(scope, arg, name) for arg in args[1:]]
    if name == "hop":
        # The greater is the length, the other the slide, in either order: a slide is never longer than the step.
        return step(scope.source, max(lengths), min(lengths), 0, offset_of(node))
    slide = lengths[1] if len(lengths) > 1 else lengths[0]
    return step(scope.source, lengths[0], slide, lengths[2] if len(lengths) > 2 else 0, offset_of(node))


def name_bounds(select: exp.Select, node: exp.Expression) -> None:
    """Replace `TUMBLE_START(…)`, `HOP_END(…)` and the like by the names of the bounds of the step of GROUP BY."""
    names = {f"{node.name.lower()}_start": STEP_START, f"{node.name.lower()}_end": STEP_END}
    for call in list(select.find_all(exp.Anonymous)):
        name = names.get(call.name.lower())
        if name is not None and call.expressions == node.expressions:
            column = exp.column(exp.to_identifier(name))
            column.this.meta["start"] = offset_of(call)
            call.replace(column)


def step(source: Source, width: int, slide: int, origin: int, at: int, *, rows: bool = False) -> Steps:
    """Steps of a width, a slide apart; raises unless both are positive."""
    if width <= 0 or slide <= 0:
        raise SqlError("a step must be longer than zero", hint="such as SLIDE 1 MINUTE", location=source.location(at))
    return Steps(width, slide, origin if rows else origin % slide, rows)


def known_of_steps(at: int = 0) -> dict[str, Expr]:
    """The names of a step's bounds in a query with steps."""
    start, end = Ref(Column(STEP_START, TIMESTAMP), at), Ref(Column(STEP_END, TIMESTAMP), at)
    return {STEP_START: start, STEP_END: end, "window.start": start, "window.end": end}


def fixed_length(source: Source, duration: Duration, at: int) -> int:
    """The microseconds of a step; raises for months, which have no fixed length."""
    if duration.months:
        raise Unsupported(
            "a step of months has no fixed length",
            hint="write it in DAYS, HOURS or MINUTES",
            location=source.location(at),
        )
    return duration.micros


def _check_time(scope: Scope, node: exp.Expression, name: str) -> None:
    if len(scope.visible) > 1:
        raise Unsupported(
            f"{name.upper()} in GROUP BY is not supported over a join",
            hint="write [TUMBLE 5 MINUTES] after a stream: it contains joined rows by the time of their earliest tuple",
            location=scope.source.node(node),
        )
    column = scope.column(node) if isinstance(node, exp.Column) else None
    time = scope.time
    if not isinstance(column, Ref) or column.column.name != time:
        raise SqlError(
            f"{name.upper()} requires the stream's time column",
            hint=f"write {_FORMS[name].replace('ts', time, 1)}"
            if time
            else "this stream has no time column; write FROM stream [TUMBLE 5 MINUTES]",
            location=scope.source.node(node),
        )


def _length(scope: Scope, node: exp.Expression, name: str) -> int:
    at = offset_of(node)
    if isinstance(node, exp.Interval):
        duration = interval(scope, node)
        return fixed_length(scope.source, Duration(duration.micros, duration.months), at)
    if isinstance(node, exp.Literal) and node.is_string:
        return fixed_length(scope.source, interval_text(scope.source, node.name, None, None, at), at)
    raise SqlError(
        "the length of a step must be an interval", hint=f"write {_FORMS[name]}", location=scope.source.node(node)
    )
