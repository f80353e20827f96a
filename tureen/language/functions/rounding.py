"""round and bround: Spark rounds the decimal digits that a number is written with.

So round(1.005D, 2) is 1.01, though the DOUBLE is a little below it. DuckDB is given the digits too: as a text, which
it makes a DECIMAL of.
"""

from __future__ import annotations

from decimal import Decimal

from tureen.language.functions.signatures import Args, Refused, same
from tureen.language.tree import Const
from tureen.schema import FRACTIONAL, Kind, Type

MOST = 18
"""The greatest scale that is taken, of either sign."""


def scale_of(args: Args) -> int | None:
    """The second argument, which is a constant."""
    scale = args[1]
    assert isinstance(scale, Const)
    return None if scale.value is None else int(scale.value)


def round_type(args: Args) -> Type:
    """The type of a rounded number: a DECIMAL loses scale and gains a digit, any other type stays."""
    one, scale = same(args), scale_of(args) or 0
    if one.kind is not Kind.DECIMAL:
        return one
    digits = one.precision - one.scale + 1
    if scale < 0:
        return Type(Kind.DECIMAL, min(38, max(digits, 1 - scale)), 0)
    kept = min(one.scale, scale)
    return Type(Kind.DECIMAL, min(38, digits + kept), kept)


def round_sql(args: Args) -> str:
    """Halves away from zero."""
    scale = scale_of(args)
    if scale is None:
        return "NULL"
    if abs(scale) > MOST:
        raise Refused(f"round takes a scale from -{MOST} to {MOST}", "write a smaller one")
    if same(args).kind in FRACTIONAL:
        return _floating(args, _up(f"DECIMAL(38,{max(scale, 0)})", scale))
    if same(args).kind is Kind.DECIMAL:
        return _decimal(args, scale)
    return "{0}" if scale >= 0 else f"round(CAST({{0}} AS DECIMAL(38,0)), {scale})"


def bround_sql(args: Args) -> str:
    """Halves to the even neighbour."""
    scale = scale_of(args)
    if scale is None:
        return "NULL"
    one = same(args)
    if one.kind in FRACTIONAL:
        if not 0 <= scale <= 4:
            raise Refused("bround of a FLOAT or DOUBLE takes a scale from 0 to 4", "use round")
        return _floating(args, _even("CAST(CAST({0} AS VARCHAR) AS DECIMAL(38,22))", scale))
    if one.kind is Kind.DECIMAL and scale < one.scale:
        return _even("{0}", scale)
    return "{0}" if scale >= 0 else _even("CAST({0} AS DECIMAL(38,0))", scale)


def _up(exact: str, scale: int) -> str:
    if scale >= 0:
        return f"CAST(CAST({{0}} AS VARCHAR) AS {exact})"
    # The digits after the point have no say, but would if they were rounded first.
    return f"round(CAST(CAST(trunc({{0}}) AS VARCHAR) AS {exact}), {scale})"


def _decimal(args: Args, scale: int) -> str:
    if scale >= 0:
        return "{0}"  # The cast to the result's type rounds.
    return f"round(CAST({{0}} AS DECIMAL(38,{same(args).scale})), {scale})"


def _even(exact: str, scale: int) -> str:
    """The number rounded up, and one step nearer to zero where it was a tie and this is odd."""
    up, kept = f"round({exact}, {scale})", max(scale, 0)
    unit, pair = (f"CAST('{Decimal(one).scaleb(-scale):f}' AS DECIMAL(38,{kept}))" for one in (1, 2))
    odd = f"abs({up} - {exact}) * 2 = {unit} AND {up} % {pair} <> 0"
    return f"CASE WHEN {odd} THEN CASE WHEN {up} > {exact} THEN {up} - {unit} ELSE {up} + {unit} END ELSE {up} END"


def _floating(args: Args, rounded: str) -> str:
    """A FLOAT or DOUBLE: one that is large has no digits to round."""
    scale = scale_of(args) or 0
    # Spark writes the digits of the DOUBLE that a FLOAT is.
    value = "CAST({0} AS DOUBLE)" if same(args).kind is Kind.FLOAT else "{0}"
    large = 10 ** (16 + max(0, -scale))
    digits = rounded.replace("{0}", value)
    return (
        f"CASE WHEN isnan({{0}}) OR abs({value}) >= CAST('1e{len(str(large)) - 1}' AS DOUBLE) THEN {{0}} "
        f"ELSE CAST(CAST({digits} AS VARCHAR) AS {'FLOAT' if same(args).kind is Kind.FLOAT else 'DOUBLE'}) END"
    )
