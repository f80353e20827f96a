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


def _plain(sql: str) -> Function:
    """A DOUBLE of a DOUBLE."""
    return Function((double,), DOUBLE, sql)


def _both(sql: str) -> Function:
    """A DOUBLE of two."""
    return Function((double, double), DOUBLE, sql)


def _logarithm(sql: str, above: int = 0) -> Function:
    # Spark gives NULL where there is no logarithm.
    return _plain(f"CASE WHEN {{0}} <= {above} THEN NULL ELSE {sql} END")


def _whole_type(args: Args) -> Type:
    """The type of a ceiling: a DECIMAL without its scale, or BIGINT."""
    one = same(args)
    if one.kind is not Kind.DECIMAL:
        return BIGINT
    return Type(Kind.DECIMAL, min(38, one.precision - one.scale + 1), 0) if one.scale else one


def _whole_sql(name: str) -> Function:
    def sql(args: Args) -> str:
        one = same(args)
        if one.kind in INTEGRAL:
            return "{0}"
        # Java makes 0 of what is no number.
        return f"CASE WHEN isnan({{0}}) THEN 0 ELSE {name}({{0}}) END" if one.kind in FRACTIONAL else f"{name}({{0}})"

    return Function((number,), _whole_type, sql, raises=True)


def _wrapped(value: str, args: Args) -> str:
    """A whole number cut to the bits of the first argument, as Java cuts it."""
    half = 2**31 if same(args).kind is Kind.INT else 2**63
    return f"(({value} + {half}) & CAST({2 * half - 1} AS HUGEINT)) - {half}"


def _count(args: Args) -> str:
    """How far to shift: Java looks at the last 5 or 6 bits."""
    return f"({{1}} & {31 if same(args).kind is Kind.INT else 63})"


def _shift_left(args: Args) -> str:
    return _wrapped(f"CAST({{0}} AS HUGEINT) * (CAST(1 AS HUGEINT) << {_count(args)})", args)


def _shift_right(args: Args) -> str:
    return f"{{0}} >> {_count(args)}"


def _shift_unsigned(args: Args) -> str:
    ones = 2**32 - 1 if same(args).kind is Kind.INT else 2**64 - 1
    return _wrapped(f"((CAST({{0}} AS HUGEINT) & CAST({ones} AS HUGEINT)) >> {_count(args)})", args)


_INFINITY = "CAST('inf' AS DOUBLE)"
_NAN = "CAST('nan' AS DOUBLE)"
_LOG = (
    "CASE WHEN {0} <= 0 OR {1} <= 0 THEN NULL WHEN {0} <> 1 THEN ln({1}) / ln({0}) "
    f"WHEN {{1}} = 1 OR isnan({{1}}) THEN {_NAN} WHEN {{1}} > 1 THEN {_INFINITY} ELSE -{_INFINITY} END"
)
# C says that 1 to whatever power is 1; Java that it is no number where the exponent is none or infinite.
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
    "sign": _plain(_SIGN),
    "sqrt": _plain(f"CASE WHEN {{0}} < 0 THEN {_NAN} ELSE sqrt({{0}}) END"),
    "cbrt": _plain("cbrt({0})"),
    "exp": _plain("exp({0})"),
    "ln": _logarithm("ln({0})"),
    "log": Function((double, double), DOUBLE, _LOG, strict=True),
    "log2": _logarithm("log2({0})"),
    "log10": _logarithm("log10({0})"),
    "pow": Function((double, double), DOUBLE, _POW, strict=True),
    "sin": _plain(_CIRCLE % "sin"),
    "cos": _plain(_CIRCLE % "cos"),
    "tan": _plain(_CIRCLE % "tan"),
    "asin": _plain(_ARC % "asin"),
    "acos": _plain(_ARC % "acos"),
    "atan": _plain("atan({0})"),
    # Spark takes the sign off a zero.
    "atan2": _both("atan2({0} + CAST(0 AS DOUBLE), {1} + CAST(0 AS DOUBLE))"),
    "sinh": _plain("sinh({0})"),
    "cosh": _plain("cosh({0})"),
    "tanh": _plain("tanh({0})"),
    "asinh": _plain("asinh({0})"),
    "acosh": _plain(_ACOSH),
    "atanh": _plain(_ATANH),
    "degrees": _plain("degrees({0})"),
    "radians": _plain("radians({0})"),
    "hypot": Function((double, double), DOUBLE, _HYPOT, strict=True),
    "pi": Function((), DOUBLE, f"CAST('{math.pi!r}' AS DOUBLE)"),
    "e": Function((), DOUBLE, f"CAST('{math.e!r}' AS DOUBLE)"),
    "isnan": Function((double,), BOOLEAN, "coalesce(isnan({0}), FALSE)"),
    "ceil": _whole_sql("ceil"),
    "floor": _whole_sql("floor"),
    "rint": _plain(_RINT),
    "round": Function((number, constant(INT)), round_type, round_sql, (const(0, INT),), raises=True),
    "bround": Function((number, constant(INT)), round_type, bround_sql, (const(0, INT),), raises=True),
    "factorial": Function((integer,), BIGINT, "CASE WHEN {0} BETWEEN 0 AND 20 THEN factorial({0}) END"),
    "shiftleft": Function((whole, integer), same, _shift_left),
    "shiftright": Function((whole, integer), same, _shift_right),
    "shiftrightunsigned": Function((whole, integer), same, _shift_unsigned),
    "bit_count": Function((boolean_or_whole,), INT, "bit_count({0})"),
    "bin": Function((bigint,), STRING, "bin({0})"),
}
