"""Arithmetic operators, with Spark's operand and result types."""

from __future__ import annotations

from tureen.errors import TypeMismatch, Unsupported
from tureen.language.binding.coerce import coerce, compare_type, fold, type_name
from tureen.language.decimal_types import decimal_result
from tureen.language.moments import DAY_MICROS, in_range
from tureen.language.source import Source
from tureen.language.tree import BIGINT, DATE, DOUBLE, INT, TIMESTAMP, Call, Const, Expr, IntervalConst
from tureen.language.types import as_decimal, at_least_int, integer_range
from tureen.schema import INTEGRAL, NUMERIC, Kind, Type
from tureen.window import Now


def combine(source: Source, op: str, left: Expr, right: Expr) -> Expr:
    """`left op right`, with Spark's result type."""
    at = left.at
    if isinstance(left, IntervalConst) or isinstance(right, IntervalConst):
        return _shift(source, op, left, right)
    if left.type is not None and left.type.kind in (Kind.DATE, Kind.TIMESTAMP):
        return _days(source, op, left, right)
    if right.type is not None and right.type.kind is Kind.DATE and op == "+":
        return _days(source, op, right, left)
    if left.type is None and right.type is None:
        return Const(None, DOUBLE if op == "/" else None, at)
    target = compare_type(source, left, right)
    if target is None or target.kind not in NUMERIC | {Kind.STRING}:
        raise _mismatch(source, op, left, right)
    if target.kind is Kind.STRING:
        target = DOUBLE
    for side in (left, right):
        if side.type is not None and side.type.kind is Kind.STRING and not isinstance(side, Const):
            raise _mismatch(source, op, left, right)
    # NULL / x is a DOUBLE.
    if target.kind is Kind.DECIMAL and not (op == "/" and left.type is None):
        return _decimal(source, op, left, right)
    if op == "/":
        target = DOUBLE
    elif op == "div":
        if target.kind not in INTEGRAL:
            raise Unsupported("DIV requires integers", hint="use /", location=source.location(at))
        target = BIGINT
    sides = coerce(source, left, target), coerce(source, right, target)
    return fold(source, Call(op, sides, target, at))


def negate(source: Source, value: Expr) -> Expr:
    """`- value`."""
    if isinstance(value, IntervalConst):
        return IntervalConst(-value.months, -value.micros, value.at)
    if value.type is None:
        return value
    if value.type.kind not in NUMERIC:
        raise TypeMismatch(
            f"operator does not exist: - {type_name(value)}", hint="write a number", location=source.location(value.at)
        )
    return fold(source, Call("neg", (value,), value.type, value.at))


def _decimal(source: Source, op: str, left: Expr, right: Expr) -> Expr:
    left_type, right_type = _digits(left, right), _digits(right, left)
    result = decimal_result(op, left_type, right_type)
    if result is None:
        raise Unsupported(
            f"{left_type.sql} {op.upper()} {right_type.sql} needs more than 38 digits",
            hint="cast to a smaller DECIMAL, or to DOUBLE",
            location=source.location(left.at),
        )
    sides = coerce(source, left, left_type), coerce(source, right, right_type)
    return fold(source, Call(op, sides, result, left.at))


def _digits(expr: Expr, other: Expr) -> Type:
    """The DECIMAL type of an operand: of its own digits for an integer literal, of the other operand for NULL."""
    if expr.type is None:
        assert other.type is not None
        return as_decimal(other.type)
    if isinstance(expr, Const) and isinstance(expr.value, int) and expr.type.kind in INTEGRAL:
        return Type(Kind.DECIMAL, len(str(abs(expr.value))), 0)
    return as_decimal(expr.type)


def _days(source: Source, op: str, left: Expr, right: Expr) -> Expr:
    """A DATE plus or minus a number of days."""
    if (
        op not in "+-"
        or left.type != DATE
        or (right.type is not None and at_least_int(right.type) != INT)
        or (op == "-" and right.type == DATE)
    ):
        if op == "-" and right.type is not None and right.type.kind in (Kind.DATE, Kind.TIMESTAMP):
            raise Unsupported(
                "the difference of two dates or timestamps is not supported",
                hint="write it as a sum, such as a < b + INTERVAL '5' MINUTE",
                location=source.location(left.at),
            )
        raise _mismatch(source, op, left, right)
    if right.type is None:
        return Const(None, DATE, left.at)
    return fold(source, Call(op, (left, coerce(source, right, INT)), DATE, left.at))


def _shift(source: Source, op: str, left: Expr, right: Expr) -> Expr:
    """A DATE or TIMESTAMP plus or minus an interval."""
    if isinstance(left, IntervalConst) and isinstance(right, IntervalConst) and op in "+-":
        sign = -1 if op == "-" else 1
        months, micros = left.months + sign * right.months, left.micros + sign * right.micros
        if not (months and micros):
            return IntervalConst(months, micros, left.at)
    if isinstance(left, IntervalConst):
        if op != "+" or isinstance(right, IntervalConst):
            raise _mismatch(source, op, left, right)
        left, right = right, left
    assert isinstance(right, IntervalConst)
    if op not in "+-" or left.type is None or left.type.kind not in (Kind.DATE, Kind.TIMESTAMP):
        raise _mismatch(source, op, left, right)
    interval = IntervalConst(-right.months, -right.micros, right.at) if op == "-" else right
    if interval.months and not isinstance(left, Const):
        count = Const(interval.months, INT, right.at)
        direction = "-" if interval.months < 0 else "+"
        written = f"{{0}} {direction} INTERVAL '{abs(interval.months)}' MONTH"
        return Call("add_months", (left, count), left.type, left.at, "{0} + to_months({1})", written)
    if left.type == DATE and interval.micros % DAY_MICROS:
        left = coerce(source, left, TIMESTAMP)
    assert left.type is not None
    if isinstance(left, Const):
        return _shifted(source, left, interval)
    return Call("+", (left, interval), left.type, left.at)


def _shifted(source: Source, time: Const, interval: IntervalConst) -> Const:
    assert time.type is not None
    if time.value is None:
        return time
    unit = DAY_MICROS if time.type == DATE else 1
    try:
        micros = Now(interval.micros, interval.months).at(int(time.value) * unit)
    except (ValueError, OverflowError):
        micros = integer_range(Kind.BIGINT)[1]
    if not in_range(micros):
        raise TypeMismatch("the time is beyond the years 1 to 9999", location=source.location(time.at))
    return Const(micros // unit, time.type, time.at)


def _mismatch(source: Source, op: str, left: Expr, right: Expr) -> TypeMismatch:
    return TypeMismatch(
        f"operator does not exist: {type_name(left)} {op.upper()} {type_name(right)}",
        hint="write CAST(… AS …) around one of them",
        location=source.location(min(left.at, right.at)),
    )
