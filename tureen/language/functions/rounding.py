"""round and bround: Spark rounds the decimal digits of a number's text.

So round(1.005D, 2) is 1.01, although the DOUBLE is slightly less. In DuckDB the number is cast to a string and then to
DECIMAL.
"""

from __future__ import annotations

from decimal import Decimal

from tureen.language.functions.signatures import Args, UnsupportedCall, same
from tureen.language.tree import Const
from tureen.schema import FRACTIONAL, Kind, Type

MOST = 18
"""The maximum absolute scale."""


def scale_of(args: Args) -> int | None:
    """The second argument, which is a constant."""
    scale = args[1]
    assert isinstance(scale, Const)
    return None if scale.value is None else int(scale.value)


def round_type(args: Args) -> Type:
    """The type of a rounded number: a DECIMAL loses scale and gains a digit, any other type is unchanged."""
    type_, scale = same(args), scale_of(args) or 0
    if type_.kind is not Kind.DECIMAL:
        return type_
    digits = type_.precision - type_.scale + 1
    if scale < 0:
        return Type(Kind.DECIMAL, min(38, max(digits, 1 - scale)), 0)
    result_scale = min(type_.scale, scale)
    return Type(Kind.DECIMAL, min(38, digits + result_scale), result_scale)


def round_sql(args: Args) -> str:
    """Round halves away from zero."""
    scale = scale_of(args)
    if scale is None:
        return "NULL"
    if abs(scale) > MOST:
        raise UnsupportedCall(f"the scale of round must be from -{MOST} to {MOST}, got {scale}", "use a smaller scale")
    if same(args).kind in FRACTIONAL:
        return _floating(args, _up(f"DECIMAL(38,{max(scale, 0)})", scale))
    if same(args).kind is Kind.DECIMAL:
        return _decimal(args, scale)
    return "{0}" if scale >= 0 else f"round(CAST({{0}} AS DECIMAL(38,0)), {scale})"


def bround_sql(args: Args) -> str:
    """Round halves to even."""
    scale = scale_of(args)
    if scale is None:
        return "NULL"
    type_ = same(args)
    if type_.kind in FRACTIONAL:
        if not 0 <= scale <= 4:
            raise UnsupportedCall(
                f"the scale of bround for FLOAT and DOUBLE must be from 0 to 4, got {scale}", "use round"
            )
        return _floating(args, _even("CAST(CAST({0} AS VARCHAR) AS DECIMAL(38,22))", scale))
    if type_.kind is Kind.DECIMAL and scale < type_.scale:
        return _even("{0}", scale)
    return "{0}" if scale >= 0 else _even("CAST({0} AS DECIMAL(38,0))", scale)


def _up(exact: str, scale: int) -> str:
    if scale >= 0:
        return f"CAST(CAST({{0}} AS VARCHAR) AS {exact})"
    # The digits after the decimal point are cut off, so that they are not rounded first.
    return f"round(CAST(CAST(trunc({{0}}) AS VARCHAR) AS {exact}), {scale})"


def _decimal(args: Args, scale: int) -> str:
    if scale >= 0:
        return "{0}"  # The cast to the result's type rounds.
    return f"round(CAST({{0}} AS DECIMAL(38,{same(args).scale})), {scale})"


def _even(exact: str, scale: int) -> str:
    """The number rounded away from zero, corrected by one unit if it was a tie and the result is odd."""
    up, result_scale = f"round({exact}, {scale})", max(scale, 0)
    unit, pair = (f"CAST('{Decimal(count).scaleb(-scale):f}' AS DECIMAL(38,{result_scale}))" for count in (1, 2))
    odd = f"abs({up} - {exact}) * 2 = {unit} AND {up} % {pair} <> 0"
    return f"CASE WHEN {odd} THEN CASE WHEN {up} > {exact} THEN {up} - {unit} ELSE {up} + {unit} END ELSE {up} END"


def _floating(args: Args, rounded: str) -> str:
    """Round a FLOAT or DOUBLE; a large one has no digits to round."""
    scale = scale_of(args) or 0
    # Spark converts a FLOAT to DOUBLE before it takes the digits.
    value = "CAST({0} AS DOUBLE)" if same(args).kind is Kind.FLOAT else "{0}"
    large = 10 ** (16 + max(0, -scale))
    digits = rounded.replace("{0}", value)
    return (
        f"CASE WHEN isnan({{0}}) OR abs({value}) >= CAST('1e{len(str(large)) - 1}' AS DOUBLE) THEN {{0}} "
        f"ELSE CAST(CAST({digits} AS VARCHAR) AS {'FLOAT' if same(args).kind is Kind.FLOAT else 'DOUBLE'}) END"
    )
