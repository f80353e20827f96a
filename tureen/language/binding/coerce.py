"""Casts of bound expressions, implicit and explicit, and constant folding."""

from __future__ import annotations

from tureen.errors import SqlError, TypeMismatch, Unsupported, article
from tureen.language.cast import CastFailed, cast_key
from tureen.language.duckdb.conversions import CASTS, TRIED
from tureen.language.duckdb.fold import evaluate
from tureen.language.source import Source
from tureen.language.tree import Call, Const, Expr, IntervalConst
from tureen.language.types import common_type
from tureen.schema import FRACTIONAL, INTEGRAL, NUMERIC, Kind, Type


def type_name(expr: Expr) -> str:
    """The name of an expression's type, for messages."""
    if isinstance(expr, IntervalConst):
        return "INTERVAL"
    return expr.type.sql if expr.type else "NULL"


def a_type(expr: Expr) -> str:
    """The name of an expression's type with its article."""
    return article(type_name(expr))


def compare_type(source: Source, left: Expr, right: Expr) -> Type | None:
    """The type in which two expressions are compared; an integer literal has the precision of its digits."""
    _check_intervals(source, [left, right])
    target = common_type(_literal_type(left, right), _literal_type(right, left))
    if target is None and left.type is not None and right.type is not None:
        raise _mismatch(source, left, right)
    _check_strings(source, [left, right])
    return target


def common(source: Source, items: list[Expr]) -> Type | None:
    """The common type of several values, as in IN, CASE and COALESCE."""
    target: Type | None = None
    _check_intervals(source, items)
    last: Type | None = None
    for i, item in enumerate(items):
        if item.type is last:
            # Skip equal types quickly in long lists.
            continue
        last = item.type
        merged = common_type(target, item.type)
        if merged is None and target is not None and item.type is not None:
            raise _mismatch(source, next(other for other in items[:i] if other.type is not None), item)
        target = merged
    _check_strings(source, items)
    return target


def coerce(source: Source, expr: Expr, target: Type) -> Expr:
    """The expression cast implicitly to another type."""
    if expr.type == target:
        return expr
    if isinstance(expr, Const):
        return cast_const(source, expr, target)
    _check_intervals(source, [expr])
    return Call("cast", (expr,), target, expr.at)


def explicit_cast(source: Source, expr: Expr, target: Type) -> Expr:
    """CAST(expr AS target), if DuckDB SQL can express it with Spark's semantics."""
    if isinstance(expr, Const):
        return cast_const(source, expr, target)
    if expr.type == target:
        return expr
    if expr.type is None or target.kind not in CASTS[expr.type.kind]:
        raise _no_cast(source, expr, target)
    return Call("cast", (expr,), target, expr.at)


def try_cast(source: Source, expr: Expr, target: Type) -> Expr:
    """TRY_CAST(expr AS target): NULL if the cast fails."""
    if isinstance(expr, Const):
        try:
            return cast_const(source, expr, target)
        except SqlError:
            return Const(None, target, expr.at)
    if expr.type == target:
        return expr
    if expr.type is None or target.kind not in CASTS[expr.type.kind] & TRIED:
        raise _no_cast(source, expr, target)
    return Call("try_cast", (expr,), target, expr.at)


def _no_cast(source: Source, expr: Expr, target: Type) -> Unsupported:
    return Unsupported(
        f"CAST from {type_name(expr)} to {target.sql} is not supported",
        hint="cast it to another type first",
        location=source.location(expr.at),
    )


def cast_const(source: Source, const: Const, target: Type) -> Const:
    """A constant cast to another type; raises if the cast fails."""
    if const.value is None or const.type is None:
        return Const(None, target, const.at)
    if target.kind is Kind.BIGINT and const.type.kind is Kind.INT:
        return Const(const.value, target, const.at)
    if const.type != target and _by_duckdb(const.type.kind, target.kind):
        return evaluate(source, Call("cast", (const,), target, const.at))
    try:
        return Const(cast_key(const.value, const.type, target), target, const.at)
    except CastFailed:
        pass
    text = repr(const.value) if isinstance(const.value, str) else f"the {const.type.sql} constant"
    raise TypeMismatch(
        f"{text} is not {article(target.sql)}", hint=_EXAMPLES.get(target.kind), location=source.location(const.at)
    )


def _by_duckdb(source: Kind, target: Kind) -> bool:
    """Whether DuckDB evaluates a cast of a constant."""
    if target is Kind.STRING:
        return source in FRACTIONAL | {Kind.DECIMAL, Kind.TIMESTAMP}
    if source in FRACTIONAL:
        return target is Kind.DECIMAL
    return (source is Kind.TIMESTAMP and target in NUMERIC) or (source in INTEGRAL and target is Kind.TIMESTAMP)


_EXAMPLES = {
    Kind.DATE: "such as '2026-01-31', from year 1 to 9999",
    Kind.TIMESTAMP: "such as '2026-01-31 12:00:00', from year 1 to 9999",
    Kind.BOOLEAN: "such as TRUE or FALSE",
}


def fold(source: Source, call: Call) -> Expr:
    """Evaluate a call if all its arguments are constants."""
    if all(isinstance(arg, Const) for arg in call.args):
        return evaluate(source, call)
    return call


def _literal_type(expr: Expr, other: Expr) -> Type | None:
    """The type of an operand; an integer literal next to a DECIMAL is a DECIMAL with the precision of its digits."""
    if (
        isinstance(expr, Const)
        and expr.type is not None
        and expr.type.kind in INTEGRAL
        and other.type is not None
        and other.type.kind is Kind.DECIMAL
        and isinstance(expr.value, int)
    ):
        return Type(Kind.DECIMAL, len(str(abs(expr.value))), 0)
    return expr.type


def _check_intervals(source: Source, items: list[Expr]) -> None:
    """Raise for intervals, which can only be added to times, and for ARRAYs, which can only be selected."""
    for item in items:
        if isinstance(item, IntervalConst):
            raise Unsupported("an interval is not allowed here", location=source.location(item.at))
        if item.type is not None and item.type.kind is Kind.ARRAY:
            raise Unsupported(
                "operations on an ARRAY are not supported", hint="select it as it is", location=source.location(item.at)
            )


def _check_strings(source: Source, items: list[Expr]) -> None:
    """Raise for a STRING column next to another type: it would be cast row by row, and fail on any invalid value."""
    other = next((item for item in items if item.type is not None and item.type.kind is not Kind.STRING), None)
    if other is None or other.type is None:
        return
    for item in items:
        if item.type is not None and item.type.kind is Kind.STRING and not isinstance(item, Const):
            hint = "quote the constant" if isinstance(other, Const) else "compare it with a STRING"
            raise TypeMismatch(
                f"a STRING is compared with {a_type(other)}",
                hint=f"{hint}, or CAST(… AS STRING)",
                location=source.location(other.at),
            )


def _mismatch(source: Source, left: Expr, right: Expr) -> TypeMismatch:
    return TypeMismatch(
        f"{a_type(left)} cannot be compared with {a_type(right)}",
        hint="write CAST(… AS …) around one of them",
        location=source.location(right.at if isinstance(right, Const) else left.at),
    )
