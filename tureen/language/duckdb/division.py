"""`/`, `%` and DIV of DECIMAL: Spark's result types, and its rounding in integer arithmetic."""

from __future__ import annotations

from tureen.language.tree import BIGINT, Call
from tureen.language.types import MAX_PRECISION, decimal
from tureen.schema import Kind, Type

_LEAST_SCALE = 6


def quotient_type(op: str, left: Type, right: Type) -> Type | None:
    """The type of `left op right`; None if the exact computation does not fit into 38 digits.

    >>> quotient_type("/", Type.parse("DECIMAL(10,2)"), Type.parse("DECIMAL(10,2)")).sql
    'DECIMAL(23,13)'
    """
    whole = left.precision - left.scale + right.scale
    if op == "/":
        scale = max(_LEAST_SCALE, left.scale + right.precision + 1)
        if whole + scale > MAX_PRECISION:
            scale = max(MAX_PRECISION - whole, min(scale, _LEAST_SCALE))
        fits = whole + scale <= MAX_PRECISION and scale - left.scale + right.scale >= 0
        return Type(Kind.DECIMAL, whole + scale, scale) if fits else None
    if _common(left, right).precision > MAX_PRECISION:
        return None
    if op == "div":
        # With more than 18 digits it may not fit into a BIGINT.
        return BIGINT if whole <= 18 else None
    scale = max(left.scale, right.scale)
    return decimal(min(left.precision - left.scale, right.precision - right.scale) + scale, scale)


def _common(left: Type, right: Type) -> Type:
    """The type that holds every digit of both; its precision may exceed the maximum."""
    scale = max(left.scale, right.scale)
    return Type(Kind.DECIMAL, max(left.precision - left.scale, right.precision - right.scale) + scale, scale)


def common_decimal(call: Call) -> Type:
    """The type in which a remainder is computed."""
    left, right = _sides(call)
    return _common(left, right)


def _sides(call: Call) -> tuple[Type, Type]:
    left, right = call.args[0].type, call.args[1].type
    assert left is not None
    assert right is not None
    return left, right


def _digits(slot: str, type_: Type) -> str:
    """A DECIMAL's unscaled value as an integer, without its sign."""
    text = f"CAST(CAST({slot} AS DECIMAL({type_.precision},{type_.scale})) AS VARCHAR)"
    return f"abs(CAST(replace({text}, '.', '') AS HUGEINT))"


def division_sql(call: Call) -> str:
    """A template of the quotient of `{0}` and `{1}`."""
    left, right = _sides(call)
    sign = "CASE WHEN ({0} < 0) <> ({1} < 0) THEN -1 ELSE 1 END"
    zero = "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN {1} = 0 THEN error('division by zero') ELSE %s END"
    if call.op == "div":
        common = _common(left, right)
        return zero % f"CAST(({_digits('{0}', common)} // {_digits('{1}', common)}) * {sign} AS BIGINT)"
    scale = call.type.scale
    scaled = f"({_digits('{0}', left)} * CAST({10 ** (scale - left.scale + right.scale)} AS HUGEINT))"
    divided = (
        f"list_transform([{{{{'n': {scaled}, 'd': {_digits('{1}', right)}}}}}], lambda _q: _q.n // _q.d + "
        f"CASE WHEN _q.n % _q.d >= _q.d - _q.n % _q.d THEN 1 ELSE 0 END)[1]"
    )
    name = f"DECIMAL({call.type.precision},{scale})"
    unit = f"CAST('{'0.' + '0' * (scale - 1) + '1'}' AS DECIMAL({scale},{scale}))"
    return f"CAST({zero % f'CAST({divided} * {sign} AS DECIMAL(38,0)) * {unit}'} AS {name})"
