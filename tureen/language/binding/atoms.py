"""Leaves of expressions: numbers, strings, NULL, TRUE, FALSE, intervals."""

from __future__ import annotations

from sqlglot import exp

from tureen.errors import Unsupported
from tureen.language.binding.scope import Scope
from tureen.language.durations import interval_text
from tureen.language.literals import read_number
from tureen.language.source import offset_of
from tureen.language.tree import BOOLEAN, STRING, Const, IntervalConst


def number(scope: Scope, node: exp.Expression, negative: bool = False) -> Const | None:
    """A number literal, or None. sqlglot represents a literal with a suffix as a cast."""
    if isinstance(node, exp.TryCast):
        inner = node.this
        if not isinstance(inner, exp.Literal):
            return None
        at = offset_of(inner)
        raw = scope.source.raw(inner)
        if inner.is_string:
            # Only the suffix BD loses its offsets; the digits are kept.
            return None if raw else read_number(scope.source, f"{inner.name}BD", at, negative)
        suffixed = raw is not None and raw[-1:].isalpha()
        return read_number(scope.source, raw or inner.name, at, negative) if suffixed else None
    if isinstance(node, exp.Literal) and not node.is_string:
        raw = scope.source.raw(node)
        return read_number(
            scope.source, raw if raw and raw[0] in ".0123456789" else node.name, offset_of(node), negative
        )
    return None


def literal(scope: Scope, node: exp.Expression) -> Const:
    """A number or a string."""
    constant = number(scope, node)
    if constant is not None:
        return constant
    return Const(node.name, STRING, offset_of(node))


def null(scope: Scope, node: exp.Expression) -> Const:  # noqa: ARG001
    """An untyped NULL."""
    return Const(None, None, offset_of(node))


def boolean(scope: Scope, node: exp.Expression) -> Const:  # noqa: ARG001
    """TRUE or FALSE."""
    return Const(int(bool(node.this)), BOOLEAN, offset_of(node))


def interval(scope: Scope, node: exp.Expression) -> IntervalConst:
    """INTERVAL with a constant length."""
    value, unit = node.this, node.args.get("unit")
    at = offset_of(node)
    negative = isinstance(value, exp.Neg)
    value = value.this if negative else value
    if not isinstance(value, exp.Literal):
        raise Unsupported(
            "an interval must be a constant", hint="such as INTERVAL '5' MINUTE", location=scope.source.location(at)
        )
    first, to = unit, None
    if isinstance(unit, exp.IntervalSpan):
        first, to = unit.this, unit.expression
    duration = interval_text(
        scope.source, value.name, first.name if first is not None else None, to.name if to is not None else None, at
    )
    duration = -duration if negative else duration
    if duration.months and duration.micros:
        raise Unsupported(
            "an interval cannot have both months and days", hint="add two intervals", location=scope.source.location(at)
        )
    return IntervalConst(duration.months, duration.micros, at)
