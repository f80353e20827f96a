"""DECIMAL arithmetic in DuckDB SQL, with Spark's rounding."""

from __future__ import annotations

from decimal import Decimal

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
    if call.op != "*" and exact.precision > MAX_PRECISION:
        return _rounded_sum(call, exact.scale)
    if call.op != "*":
        wide = _name(call.type)
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
    more = call.type.scale - left.scale + right.scale
    dividend, divisor = _digits("{0}", left), _digits("{1}", right)
    divided = (
        f"list_transform([{{{{'n': {dividend} * {_huge(10**more)}, 'd': {divisor}}}}}], lambda _q: _q.n // _q.d + "
        f"CASE WHEN _q.n % _q.d >= _q.d - _q.n % _q.d THEN 1 ELSE 0 END)[1]"
    )
    if left.precision + more > MAX_PRECISION:
        fits = f"{dividend} < {_huge(10 ** (MAX_PRECISION - more))}"
        divided = f"CASE WHEN {fits} THEN {divided} ELSE {_long_division(dividend, divisor, more)} END"
    return f"CAST({zero % _scaled(divided, call.type)} AS {_name(call.type)})"


def _long_division(dividend: str, divisor: str, digits: int) -> str:
    """A quotient of integers with further decimal digits, rounded half up; one digit is computed after the other.

    The next digit is the greatest k for which ten times the rest is at least k times the divisor. Both may have 39
    digits, so they are compared divided by ten.
    """
    tenths = "_k * (_x.d // 10) + (_k * (_x.d % 10) + 9) // 10"
    digit = f"len(list_filter([1, 2, 3, 4, 5, 6, 7, 8, 9], lambda _k: _x.r >= {tenths}))"
    step = "{{'q': _x.q * 10 + _k, 'r': 10 * (_x.r - _k * (_x.d // 10)) - _k * (_x.d % 10), 'd': _x.d}}"
    first = "{{'q': _q.n // _q.d, 'r': _q.n % _q.d, 'd': _q.d}}"
    steps = f"list_reduce(range({digits}), lambda _x, _i: list_transform([{digit}], lambda _k: {step})[1], {first})"
    rounded = "_r.q + CASE WHEN _r.r >= _r.d - _r.r THEN 1 ELSE 0 END"
    operands = f"[{{{{'n': {dividend}, 'd': {divisor}}}}}]"
    return f"list_transform(list_transform({operands}, lambda _q: {steps}), lambda _r: {rounded})[1]"


def _scaled(digits: str, type_: Type) -> str:
    """The DECIMAL of an unscaled value without its sign."""
    return f"CAST({digits} * {_SIGN} AS DECIMAL(38,0)) * {_unit(type_)}"


def _unit(type_: Type) -> str:
    """The least DECIMAL of a type that is greater than zero."""
    return f"CAST('{Decimal(1).scaleb(-type_.scale):f}' AS DECIMAL({max(type_.scale, 1)},{type_.scale}))"


def _remainder(call: Call) -> str:
    wide = _name(common_decimal(*_sides(call)))
    # DuckDB returns NULL.
    guard = "CASE WHEN {1} = 0 AND {0} IS NOT NULL THEN error('division by zero') ELSE {1} END"
    return f"CAST((CAST({{0}} AS {wide}) % CAST({guard} AS {wide})) AS {_name(call.type)})"


def _rounded_sum(call: Call, scale: int) -> str:
    """The sum or difference, rounded half up; whole numbers and fractions of `scale` digits are added separately."""
    operands = []
    for name, slot, type_ in zip("ab", ("{0}", "{1}"), _sides(call), strict=True):
        digits, own = _digits(slot, type_), _huge(10**type_.scale)
        sign = f"CASE WHEN {slot} < 0 THEN -1 ELSE 1 END"
        fraction = f"{digits} % {own} * {_huge(10 ** (scale - type_.scale))} * {sign}"
        operands.append(f"'{name}1': {digits} // {own} * {sign}, '{name}0': {fraction}")
    added = f"{{{{'w': _s.a1 {call.op} _s.b1, 'f': _s.a0 {call.op} _s.b0}}}}"
    unit = _huge(10**scale)
    # The fraction may be more than one, or have another sign than the whole number.
    carried = (
        f"CASE WHEN _t.f >= {unit} OR (_t.w < 0 AND _t.f > 0) THEN 1 "
        f"WHEN _t.f <= -{unit} OR (_t.w > 0 AND _t.f < 0) THEN -1 ELSE 0 END"
    )
    sums = f"list_transform([{{{{{operands[0]}, {operands[1]}}}}}], lambda _s: {added})"
    parts = f"list_transform({sums}, lambda _t: {{{{'w': _t.w + {carried}, 'f': _t.f - {carried} * {unit}}}}})"
    power = _huge(10 ** (scale - call.type.scale))
    half_up = f"CASE WHEN abs(_u.f) % {power} >= {power} - abs(_u.f) % {power} THEN sign(_u.f) ELSE 0 END"
    total = f"_u.w * {_huge(10**call.type.scale)} + _u.f // {power} + {half_up}"
    text = f"CAST(list_transform({parts}, lambda _u: {total})[1] AS DECIMAL(38,0)) * {_unit(call.type)}"
    return f"CAST(CASE WHEN {{0}} IS NOT NULL AND {{1}} IS NOT NULL THEN {text} END AS {_name(call.type)})"


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


def _huge(number: int) -> str:
    return f"CAST({number} AS HUGEINT)"


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
