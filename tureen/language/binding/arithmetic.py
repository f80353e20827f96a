"""Arithmetic: the types that Spark adds, multiplies and divides in."""

from __future__ import annotations

from tureen.errors import TypeMismatch, Unsupported
from tureen.language.binding.coerce import a_type, coerce, compare_type, fold, type_name
from tureen.language.duckdb.division import quotient_type
from tureen.language.moments import DAY_MICROS, in_range
from tureen.language.source import Source
from tureen.language.tree import BIGINT, DATE, DOUBLE, INT, TIMESTAMP, Call, Const, Expr, Lapse
from tureen.language.types import MAX_PRECISION, as_decimal, at_least_int, integer_range
from tureen.schema import INTEGRAL, NUMERIC, Kind, Type
from tureen.window import Now


def combine(source: Source, op: str, left: Expr, right: Expr) -> Expr:
    """`left op right` in the type that Spark gives it."""
    at = left.at
    if isinstance(left, Lapse) or isinstance(right, Lapse):
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
    for one in (left, right):
        if one.type is not None and one.type.kind is Kind.STRING and not isinstance(one, Const):
            raise _mismatch(source, op, left, right)
    # NULL over anything is a DOUBLE.
    if target.kind is Kind.DECIMAL and not (op == "/" and left.type is None):
        return _decimal(source, op, left, right)
    if op == "/":
        target = DOUBLE
    elif op == "div":
        if target.kind not in INTEGRAL:
            raise Unsupported("DIV is over whole numbers", hint="use /", place=source.place(at))
        target = BIGINT
    sides = coerce(source, left, target), coerce(source, right, target)
    return fold(source, Call(op, sides, target, at))


def negate(source: Source, value: Expr) -> Expr:
    """`- value`."""
    if isinstance(value, Lapse):
        return Lapse(-value.months, -value.micros, value.at)
    if value.type is None:
        return value
    if value.type.kind not in NUMERIC:
        raise TypeMismatch(f"{a_type(value)} has no negative", hint="write a number", place=source.place(value.at))
    return fold(source, Call("neg", (value,), value.type, value.at))


def _decimal(source: Source, op: str, left: Expr, right: Expr) -> Expr:
    """DECIMAL arithmetic, where 38 digits are enough to do it exactly."""
    ours, theirs = _digits(left, right), _digits(right, left)
    scale = max(ours.scale, theirs.scale)
    whole = max(ours.precision - ours.scale, theirs.precision - theirs.scale)
    precision = whole + scale + 1
    if op == "*":
        precision, scale = ours.precision + theirs.precision + 1, ours.scale + theirs.scale
    result: Type | None = Type(Kind.DECIMAL, precision, scale) if precision <= MAX_PRECISION else None
    if op not in "+-*":
        result = quotient_type(op, ours, theirs)
    if result is None:
        raise Unsupported(
            f"{ours.sql} {op.upper()} {theirs.sql} needs more than 38 digits",
            hint="cast to a smaller DECIMAL, or to DOUBLE",
            place=source.place(left.at),
        )
    sides = coerce(source, left, ours), coerce(source, right, theirs)
    return fold(source, Call(op, sides, result, left.at))


def _digits(expr: Expr, other: Expr) -> Type:
    """The DECIMAL type of a side; an integer literal has that of its own digits, and NULL that of the other side."""
    if expr.type is None:
        assert other.type is not None
        return as_decimal(other.type)
    if isinstance(expr, Const) and isinstance(expr.value, int) and expr.type.kind in INTEGRAL:
        return Type(Kind.DECIMAL, len(str(abs(expr.value))), 0)
    return as_decimal(expr.type)


def _days(source: Source, op: str, left: Expr, right: Expr) -> Expr:
    """A DATE and a whole number of days."""
    if (
        op not in "+-"
        or left.type != DATE
        or (right.type is not None and at_least_int(right.type) != INT)
        or (op == "-" and right.type == DATE)
    ):
        if op == "-" and right.type is not None and right.type.kind in (Kind.DATE, Kind.TIMESTAMP):
            raise Unsupported(
                "the difference of two times is not supported",
                hint="write it as a sum, such as a < b + INTERVAL '5' MINUTE",
                place=source.place(left.at),
            )
        raise _mismatch(source, op, left, right)
    if right.type is None:
        return Const(None, DATE, left.at)
    return fold(source, Call(op, (left, coerce(source, right, INT)), DATE, left.at))


def _shift(source: Source, op: str, left: Expr, right: Expr) -> Expr:
    """A time and an interval."""
    if isinstance(left, Lapse) and isinstance(right, Lapse) and op in "+-":
        sign = -1 if op == "-" else 1
        months, micros = left.months + sign * right.months, left.micros + sign * right.micros
        if not (months and micros):
            return Lapse(months, micros, left.at)
    if isinstance(left, Lapse):
        if op != "+" or isinstance(right, Lapse):
            raise _mismatch(source, op, left, right)
        left, right = right, left
    assert isinstance(right, Lapse)
    if op not in "+-" or left.type is None or left.type.kind not in (Kind.DATE, Kind.TIMESTAMP):
        raise _mismatch(source, op, left, right)
    lapse = Lapse(-right.months, -right.micros, right.at) if op == "-" else right
    if lapse.months and not isinstance(left, Const):
        count = Const(lapse.months, INT, right.at)
        return Call("add_months", (left, count), left.type, left.at, extra="{0} + to_months({1})")
    if left.type == DATE and lapse.micros % DAY_MICROS:
        left = coerce(source, left, TIMESTAMP)
    assert left.type is not None
    if isinstance(left, Const):
        return _shifted(source, left, lapse)
    return Call("+", (left, lapse), left.type, left.at)


def _shifted(source: Source, moment: Const, lapse: Lapse) -> Const:
    assert moment.type is not None
    if moment.value is None:
        return moment
    unit = DAY_MICROS if moment.type == DATE else 1
    try:
        micros = Now(lapse.micros, lapse.months).at(int(moment.value) * unit)
    except (ValueError, OverflowError):
        micros = integer_range(Kind.BIGINT)[1]
    if not in_range(micros):
        raise TypeMismatch("the time is beyond the years 1 to 9999", place=source.place(moment.at))
    return Const(micros // unit, moment.type, moment.at)


def _mismatch(source: Source, op: str, left: Expr, right: Expr) -> TypeMismatch:
    return TypeMismatch(
        f"{type_name(left)} {op.upper()} {type_name(right)} has no meaning",
        hint="write CAST(… AS …) around one of them",
        place=source.place(min(left.at, right.at)),
    )
