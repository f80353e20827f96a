"""DECIMAL arithmetic: every result equals that of Python's `decimal`, in the type that Spark has for it."""

import random
from decimal import ROUND_HALF_UP, Context, Decimal

import duckdb
import pytest

from tureen.language.decimal_types import decimal_result, exact_result
from tureen.language.duckdb.raising import can_raise
from tureen.language.duckdb.render import render
from tureen.language.tree import Call, Const
from tureen.language.types import MAX_PRECISION
from tureen.schema import Kind, Type

EXACT = Context(prec=120, rounding=ROUND_HALF_UP)


@pytest.mark.parametrize(
    ("op", "left", "right", "result"),
    [
        ("*", "DECIMAL(32,4)", "DECIMAL(16,2)", "DECIMAL(38,6)"),
        ("*", "DECIMAL(38,10)", "DECIMAL(38,10)", "DECIMAL(38,6)"),
        ("*", "DECIMAL(20,10)", "DECIMAL(20,10)", "DECIMAL(38,17)"),
        ("+", "DECIMAL(38,4)", "DECIMAL(38,4)", "DECIMAL(38,4)"),
        ("-", "DECIMAL(38,10)", "DECIMAL(38,10)", "DECIMAL(38,9)"),
        ("+", "DECIMAL(38,0)", "DECIMAL(38,10)", "DECIMAL(38,6)"),
        ("/", "DECIMAL(38,4)", "DECIMAL(38,4)", "DECIMAL(38,6)"),
        ("/", "DECIMAL(38,10)", "DECIMAL(5,2)", "DECIMAL(38,8)"),
        ("%", "DECIMAL(10,2)", "DECIMAL(5,3)", "DECIMAL(5,3)"),
    ],
)
def test_result_types_are_those_of_spark(op: str, left: str, right: str, result: str) -> None:
    assert decimal_result(op, Type.parse(left), Type.parse(right)) == Type.parse(result)


def test_random_arithmetic_equals_pythons_decimal() -> None:
    draw = random.Random(3)
    connection = duckdb.connect()
    rounded = 0
    for _ in range(600):
        op = draw.choice("+-**/")
        left, right = _type(draw), _type(draw)
        result = decimal_result(op, left, right)
        first, second = _unscaled(draw, left), _unscaled(draw, right)
        if result is None or (op == "/" and second == 0):
            continue
        call = Call(op, (Const(first, left, 0), Const(second, right, 0)), result, 0)
        expected = _computed(op, Decimal(first).scaleb(-left.scale, EXACT), Decimal(second).scaleb(-right.scale, EXACT))
        shown = expected.quantize(Decimal(1).scaleb(-result.scale), context=EXACT)
        try:
            value = connection.execute(f"SELECT {render(call)}").fetchall()[0][0]
        except duckdb.Error:
            assert can_raise(call)
            assert exact_result(op, left, right).precision > MAX_PRECISION
            assert abs(shown) >= Decimal(10) ** (MAX_PRECISION - result.scale)
            continue
        assert value == shown, (op, left.sql, right.sql, first, second)
        rounded += op == "*" and exact_result(op, left, right).scale > result.scale
    assert rounded > 20


def _type(draw: random.Random) -> Type:
    precision = draw.choice([draw.randint(1, 38), 38, 15])
    return Type(Kind.DECIMAL, precision, draw.randint(0, min(precision, draw.choice([4, 20, 38]))))


def _unscaled(draw: random.Random, kind: Type) -> int:
    digits = draw.randint(1, kind.precision)
    power: int = 10 ** (digits - 1)
    number = draw.choice([draw.randint(0, 10 * power - 1), 5 * power])
    greatest: int = 10**kind.precision - 1
    return draw.choice([number, -number, number, greatest])


def _computed(op: str, first: Decimal, second: Decimal) -> Decimal:
    match op:
        case "+":
            return EXACT.add(first, second)
        case "-":
            return EXACT.subtract(first, second)
        case "*":
            return EXACT.multiply(first, second)
    return EXACT.divide(first, second)
