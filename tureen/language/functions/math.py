"""Functions of numbers."""

from __future__ import annotations

import math

from tureen.language.functions.rounding import bround_sql, round_sql, round_type
from tureen.language.functions.signatures import (
    Args,
    Function,
    bigint,
    boolean_or_whole,
    const,
    constant,
    double,
    integer,
    number,
    same,
    whole,
)
from tureen.language.tree import BIGINT, BOOLEAN, DOUBLE, INT, STRING
from tureen.schema import FRACTIONAL, INTEGRAL, Kind, Type


def _unary(sql: str) -> Function:
    """A function from DOUBLE to DOUBLE."""
    return Function((double,), DOUBLE, sql)


def _binary(sql: str) -> Function:
    """A function from two DOUBLEs to DOUBLE."""
    return Function((double, double), DOUBLE, sql)


def _logarithm(sql: str, above: int = 0) -> Function:
    # Spark returns NULL outside the domain of the logarithm.
    return _unary(f"CASE WHEN {{0}} <= {above} THEN NULL ELSE {sql} END")


def _whole_type(args: Args) -> Type:
    """The type of a ceiling: a DECIMAL without its scale, or BIGINT."""
    type_ = same(args)
    if type_.kind is not Kind.DECIMAL:
        return BIGINT
    return Type(Kind.DECIMAL, min(38, type_.precision - type_.scale + 1), 0) if type_.scale else type_


def _whole_sql(name: str) -> Function:
    def sql(args: Args) -> str:
        type_ = same(args)
        if type_.kind in INTEGRAL:
            return "{0}"
        # Java converts NaN to 0.
        return f"CASE WHEN isnan({{0}}) THEN 0 ELSE {name}({{0}}) END" if type_.kind in FRACTIONAL else f"{name}({{0}})"

    return Function((number,), _whole_type, sql, raises=True)


def _wrapped(value: str, args: Args) -> str:
    """An integer truncated to the bits of the first argument's type, as in Java."""
    half = 2**31 if same(args).kind is Kind.INT else 2**63
    return f"(({value} + {half}) & CAST({2 * half - 1} AS HUGEINT)) - {half}"


def _distance(args: Args) -> str:
    """The distance to shift by: Java uses the last 5 or 6 bits."""
    return f"({{1}} & {31 if same(args).kind is Kind.INT else 63})"


def _shift_left(args: Args) -> str:
    return _wrapped(f"CAST({{0}} AS HUGEINT) * (CAST(1 AS HUGEINT) << {_distance(args)})", args)


def _shift_right(args: Args) -> str:
    return f"{{0}} >> {_distance(args)}"


def _shift_unsigned(args: Args) -> str:
    ones = 2**32 - 1 if same(args).kind is Kind.INT else 2**64 - 1
    return _wrapped(f"((CAST({{0}} AS HUGEINT) & CAST({ones} AS HUGEINT)) >> {_distance(args)})", args)


_INFINITY = "CAST('inf' AS DOUBLE)"
_NAN = "CAST('nan' AS DOUBLE)"
_LOG = (
    "CASE WHEN {0} <= 0 OR {1} <= 0 THEN NULL WHEN {0} <> 1 THEN ln({1}) / ln({0}) "
    f"WHEN {{1}} = 1 OR isnan({{1}}) THEN {_NAN} WHEN {{1}} > 1 THEN {_INFINITY} ELSE -{_INFINITY} END"
)
# In C, 1 to any power is 1; in Java it is NaN if the exponent is NaN or infinite.
_POW = f"CASE WHEN isnan({{1}}) OR (abs({{0}}) = 1 AND isinf({{1}})) THEN {_NAN} ELSE pow({{0}}, {{1}}) END"
_SIGN = "CASE WHEN isnan({0}) OR {0} = 0 THEN {0} WHEN {0} > 0 THEN 1 WHEN {0} < 0 THEN -1 END"
_HYPOT = (
    f"CASE WHEN isinf({{0}}) OR isinf({{1}}) THEN {_INFINITY} WHEN isnan({{0}}) OR isnan({{1}}) THEN {_NAN} "
    "WHEN {0} = 0 AND {1} = 0 THEN 0 ELSE greatest(abs({0}), abs({1})) * "
    "sqrt(1 + pow(least(abs({0}), abs({1})) / greatest(abs({0}), abs({1})), 2)) END"
)
_ATANH = (
    f"CASE WHEN {{0}} = 1 THEN {_INFINITY} WHEN {{0}} = -1 THEN -{_INFINITY} "
    f"WHEN abs({{0}}) > 1 THEN {_NAN} ELSE atanh({{0}}) END"
)
_ACOSH = f"CASE WHEN {{0}} < 1 THEN {_NAN} ELSE acosh({{0}}) END"
_ARC = f"CASE WHEN abs({{0}}) > 1 THEN {_NAN} ELSE %s({{0}}) END"
_CIRCLE = f"CASE WHEN isinf({{0}}) THEN {_NAN} ELSE %s({{0}}) END"
_INVERSE = f"CASE WHEN isinf({{0}}) THEN {_NAN} WHEN %s({{0}}) = 0 THEN 1 / {_INFINITY} ELSE 1 / %s({{0}}) END"
_RINT = (
    "CASE WHEN isnan({0}) OR abs({0}) >= 4503599627370496 OR {0} = 0 THEN {0} "
    "WHEN abs({0}) <= 0.5 THEN {0} * 0 ELSE round_even({0}, 0) END"
)

MATH: dict[str, Function] = {
    "abs": Function((number,), same, "abs({0})", raises=True),
    "sign": _unary(_SIGN),
    "sqrt": _unary(f"CASE WHEN {{0}} < 0 THEN {_NAN} ELSE sqrt({{0}}) END"),
    "cbrt": _unary("cbrt({0})"),
    "exp": _unary("exp({0})"),
    "ln": _logarithm("ln({0})"),
    "log": Function((double, double), DOUBLE, _LOG, strict=True),
    "log2": _logarithm("log2({0})"),
    "log10": _logarithm("log10({0})"),
    "pow": Function((double, double), DOUBLE, _POW, strict=True),
    "sin": _unary(_CIRCLE % "sin"),
    "cos": _unary(_CIRCLE % "cos"),
    "tan": _unary(_CIRCLE % "tan"),
    "asin": _unary(_ARC % "asin"),
    "acos": _unary(_ARC % "acos"),
    "atan": _unary("atan({0})"),
    # Spark removes the sign of zero.
    "atan2": _binary("atan2({0} + CAST(0 AS DOUBLE), {1} + CAST(0 AS DOUBLE))"),
    "sinh": _unary("sinh({0})"),
    "cosh": _unary("cosh({0})"),
    "tanh": _unary("tanh({0})"),
    "asinh": _unary("asinh({0})"),
    "acosh": _unary(_ACOSH),
    "atanh": _unary(_ATANH),
    "degrees": _unary("degrees({0})"),
    "radians": _unary("radians({0})"),
    "hypot": Function((double, double), DOUBLE, _HYPOT, strict=True),
    "pi": Function((), DOUBLE, f"CAST('{math.pi!r}' AS DOUBLE)"),
    "e": Function((), DOUBLE, f"CAST('{math.e!r}' AS DOUBLE)"),
    "isnan": Function((double,), BOOLEAN, "coalesce(isnan({0}), FALSE)"),
    "ceil": _whole_sql("ceil"),
    "floor": _whole_sql("floor"),
    "rint": _unary(_RINT),
    "round": Function((number, constant(INT)), round_type, round_sql, (const(0, INT),), raises=True),
    "bround": Function((number, constant(INT)), round_type, bround_sql, (const(0, INT),), raises=True),
    "factorial": Function((integer,), BIGINT, "CASE WHEN {0} BETWEEN 0 AND 20 THEN factorial({0}) END"),
    "shiftleft": Function((whole, integer), same, _shift_left),
    "shiftright": Function((whole, integer), same, _shift_right),
    "shiftrightunsigned": Function((whole, integer), same, _shift_unsigned),
    "bit_count": Function((boolean_or_whole,), INT, "bit_count({0})"),
    "bin": Function((bigint,), STRING, "bin({0})"),
}
