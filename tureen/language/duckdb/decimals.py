"""DECIMAL arithmetic in DuckDB SQL, with Spark's rounding."""

from __future__ import annotations

from tureen.language.decimal_types import common_decimal, exact_result
from tureen.language.tree import Call
from tureen.language.types import MAX_PRECISION
from tureen.schema import Type

_HALF = 19
"""An operand of at most 38 digits is split into halves of this many digits, whose products fit into 128 bits."""


def decimal_sql(call: Call) -> str:
    """A template of `{0} op {1}`, for DECIMAL operands."""
    if call.op in ("/", "div"):
        return _quotient(call)
    if call.op == "%":
        return _remainder(call)
    exact = exact_result(call.op, *_sides(call))
    if call.op != "*":
        wide = f"DECIMAL({min(exact.precision, MAX_PRECISION)},{exact.scale})"
        text = f"(CAST({{0}} AS {wide}) {call.op} CAST({{1}} AS {wide}))"
    elif exact.scale == call.type.scale:
        # DuckDB multiplies with 18 digits unless an operand is wider.
        scale = _sides(call)[0].scale
        left = "{0}" if call.type.precision <= 18 else f"CAST({{0}} AS DECIMAL({call.type.precision},{scale}))"
        text = f"({left} * {{1}})"
    else:
        return _rounded_product(call, exact.scale - call.type.scale)
    return f"CAST({text} AS {_name(call.type)})"


def _sides(call: Call) -> tuple[Type, Type]:
    left, right = call.args[0].type, call.args[1].type
    assert left is not None
    assert right is not None
    return left, right


def _name(type_: Type) -> str:
    return f"DECIMAL({type_.precision},{type_.scale})"


def _digits(slot: str, type_: Type) -> str:
    """A DECIMAL's unscaled value as an integer, without its sign."""
    text = f"CAST(CAST({slot} AS {_name(type_)}) AS VARCHAR)"
    return f"abs(CAST(replace({text}, '.', '') AS HUGEINT))"


_SIGN = "CASE WHEN ({0} < 0) <> ({1} < 0) THEN -1 ELSE 1 END"


def _quotient(call: Call) -> str:
    left, right = _sides(call)
    zero = "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN {1} = 0 THEN error('division by zero') ELSE %s END"
    if call.op == "div":
        common = common_decimal(left, right)
        return zero % f"CAST(({_digits('{0}', common)} // {_digits('{1}', common)}) * {_SIGN} AS BIGINT)"
    scaled = f"({_digits('{0}', left)} * CAST({10 ** (call.type.scale - left.scale + right.scale)} AS HUGEINT))"
    divided = (
        f"list_transform([{{{{'n': {scaled}, 'd': {_digits('{1}', right)}}}}}], lambda _q: _q.n // _q.d + "
        f"CASE WHEN _q.n % _q.d >= _q.d - _q.n % _q.d THEN 1 ELSE 0 END)[1]"
    )
    return f"CAST({zero % _scaled(divided, call.type)} AS {_name(call.type)})"


def _scaled(digits: str, type_: Type) -> str:
    """The DECIMAL of an unscaled value without its sign."""
    unit = f"CAST('{'0.' + '0' * (type_.scale - 1) + '1'}' AS DECIMAL({type_.scale},{type_.scale}))"
    return f"CAST({digits} * {_SIGN} AS DECIMAL(38,0)) * {unit}"


def _remainder(call: Call) -> str:
    wide = _name(common_decimal(*_sides(call)))
    # DuckDB returns NULL.
    guard = "CASE WHEN {1} = 0 AND {0} IS NOT NULL THEN error('division by zero') ELSE {1} END"
    return f"CAST((CAST({{0}} AS {wide}) % CAST({guard} AS {wide})) AS {_name(call.type)})"


def _rounded_product(call: Call, dropped: int) -> str:
    """The product without its last `dropped` digits, rounded half up; up to 76 digits are computed exactly.

    With operands of two halves, a = a1 * 10^19 + a0, it is a1*b1 * 10^38 + (a1*b0 + a0*b1) * 10^19 + a0*b0.
    """
    left, right = _sides(call)
    unit = _power(_HALF)
    halves = [
        f"'{name}1': CAST({digits} AS UHUGEINT) // {unit}, '{name}0': CAST({digits} AS UHUGEINT) % {unit}"
        for name, digits in (("a", _digits("{0}", left)), ("b", _digits("{1}", right)))
    ]
    middle, low = "(_p.a1 * _p.b0 + _p.a0 * _p.b1)", "(_p.a0 * _p.b0)"
    if dropped <= _HALF:
        rest = f"{middle} * {_power(_HALF - dropped)} + {_rounded(low, dropped)}"
    else:
        # Whether the rest is rounded up does not depend on the last 19 digits.
        rest = _rounded(f"({middle} + {low} // {unit})", dropped - _HALF)
    product = f"_p.a1 * _p.b1 * {_power(2 * _HALF - dropped)} + {rest}"
    text = f"list_transform([{{{{{halves[0]}, {halves[1]}}}}}], lambda _p: CAST({product} AS HUGEINT))[1]"
    both = "{0} IS NOT NULL AND {1} IS NOT NULL"
    return f"CAST(CASE WHEN {both} THEN {_scaled(text, call.type)} END AS {_name(call.type)})"


def _power(exponent: int) -> str:
    return _natural(10**exponent)


def _natural(number: int) -> str:
    return f"CAST({number} AS UHUGEINT)"


def _rounded(number: str, digits: int) -> str:
    """A natural number divided by a power of ten, rounded half up."""
    power = _power(digits)
    # DuckDB adds an UHUGEINT and a signed integer as DOUBLE.
    up = f"CAST(CASE WHEN {number} % {power} >= {_power(digits - 1)} * {_natural(5)} THEN 1 ELSE 0 END AS UHUGEINT)"
    return f"({number} // {power} + {up})"
