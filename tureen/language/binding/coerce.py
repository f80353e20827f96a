"""Bringing bound expressions to a type: implicit and explicit casts, and constants worked out."""

from __future__ import annotations

from tureen.errors import SqlError, TypeMismatch, Unsupported, article
from tureen.language.cast import CastFailed, cast_key
from tureen.language.duckdb.conversions import CASTS, TRIED
from tureen.language.duckdb.fold import evaluate
from tureen.language.source import Source
from tureen.language.tree import Call, Const, Expr, Lapse
from tureen.language.types import common_type
from tureen.schema import FRACTIONAL, INTEGRAL, NUMERIC, Kind, Type


def type_name(expr: Expr) -> str:
    """An expression's type, for a message."""
    if isinstance(expr, Lapse):
        return "INTERVAL"
    return expr.type.sql if expr.type else "NULL"


def a_type(expr: Expr) -> str:
    """An expression's type with its article."""
    return article(type_name(expr))


def compare_type(source: Source, left: Expr, right: Expr) -> Type | None:
    """The type of a comparison of two; a number literal counts with its own digits."""
    _check_intervals(source, [left, right])
    target = common_type(_literal_type(left, right), _literal_type(right, left))
    if target is None and left.type is not None and right.type is not None:
        raise _mismatch(source, left, right)
    _check_strings(source, [left, right])
    return target


def common(source: Source, items: list[Expr]) -> Type | None:
    """The type that several values share, as in IN, CASE and COALESCE."""
    target: Type | None = None
    _check_intervals(source, items)
    last: Type | None = None
    for i, one in enumerate(items):
        if one.type is last:
            # As the one before it, in a long list.
            continue
        last = one.type
        merged = common_type(target, one.type)
        if merged is None and target is not None and one.type is not None:
            raise _mismatch(source, next(item for item in items[:i] if item.type is not None), one)
        target = merged
    _check_strings(source, items)
    return target


def coerce(source: Source, expr: Expr, target: Type) -> Expr:
    """The expression in another type, as Spark casts it by itself."""
    if expr.type == target:
        return expr
    if isinstance(expr, Const):
        return cast_const(source, expr, target)
    _check_intervals(source, [expr])
    return Call("cast", (expr,), target, expr.at)


def explicit_cast(source: Source, expr: Expr, target: Type) -> Expr:
    """CAST(expr AS target), where DuckDB is known to cast as Spark does."""
    if isinstance(expr, Const):
        return cast_const(source, expr, target)
    if expr.type == target:
        return expr
    if expr.type is None or target.kind not in CASTS[expr.type.kind]:
        raise _no_cast(source, expr, target)
    return Call("cast", (expr,), target, expr.at)


def try_cast(source: Source, expr: Expr, target: Type) -> Expr:
    """TRY_CAST(expr AS target): NULL where the value does not fit."""
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
        place=source.place(expr.at),
    )


def cast_const(source: Source, const: Const, target: Type) -> Const:
    """A constant in another type, or an error that names it."""
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
        f"{text} is not {article(target.sql)}", hint=_EXAMPLES.get(target.kind), place=source.place(const.at)
    )


def _by_duckdb(source: Kind, target: Kind) -> bool:
    """Whether a cast of a constant is worked out as that of a column is."""
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
    """The constant that an expression without columns means; any other expression as it is."""
    if all(isinstance(one, Const) for one in call.args):
        return evaluate(source, call)
    return call


def _literal_type(expr: Expr, other: Expr) -> Type | None:
    """An integer literal beside a DECIMAL has the DECIMAL type of its own digits."""
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
    """An interval is only added to times, or taken from them; an ARRAY is only a result."""
    for one in items:
        if isinstance(one, Lapse):
            raise Unsupported("an interval cannot stand here", place=source.place(one.at))
        if one.type is not None and one.type.kind is Kind.ARRAY:
            raise Unsupported(
                "an ARRAY is only given as it is", hint="put it into the select list", place=source.place(one.at)
            )


def _check_strings(source: Source, items: list[Expr]) -> None:
    """A STRING column beside another type would be cast row by row, and fail on the first bad one."""
    other = next((one for one in items if one.type is not None and one.type.kind is not Kind.STRING), None)
    if other is None or other.type is None:
        return
    for one in items:
        if one.type is not None and one.type.kind is Kind.STRING and not isinstance(one, Const):
            hint = "put the constant in quotes" if isinstance(other, Const) else "compare it with a STRING"
            raise TypeMismatch(
                f"a STRING is compared with {a_type(other)}",
                hint=f"{hint}, or CAST(… AS STRING)",
                place=source.place(other.at),
            )


def _mismatch(source: Source, left: Expr, right: Expr) -> TypeMismatch:
    return TypeMismatch(
        f"{a_type(left)} cannot be compared with {a_type(right)}",
        hint="write CAST(… AS …) around one of them",
        place=source.place(right.at if isinstance(right, Const) else left.at),
    )
