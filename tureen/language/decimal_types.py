"""The result types of DECIMAL arithmetic, as in Spark."""

from __future__ import annotations

from tureen.language.tree import BIGINT
from tureen.language.types import MAX_PRECISION, decimal
from tureen.schema import Kind, Type

_LEAST_SCALE = 6
"""Fractional digits that a result keeps even if its integral digits then do not fit."""


def decimal_result(op: str, left: Type, right: Type) -> Type | None:
    """The type of `left op right`; None if DuckDB cannot compute it.

    >>> decimal_result("/", Type.parse("DECIMAL(10,2)"), Type.parse("DECIMAL(10,2)")).sql
    'DECIMAL(23,13)'
    >>> decimal_result("*", Type.parse("DECIMAL(36,2)"), Type.parse("DECIMAL(10,10)")).sql
    'DECIMAL(38,6)'
    """
    if op in ("%", "div"):
        return _remainder_result(op, left, right)
    exact = exact_result(op, left, right)
    result = _bounded(exact)
    if op == "/":
        # The dividend is multiplied by this power of ten.
        return result if 0 <= result.scale - left.scale + right.scale <= MAX_PRECISION else None
    return result if exact.scale <= MAX_PRECISION else None


def exact_result(op: str, left: Type, right: Type) -> Type:
    """The type that holds every result of `+`, `-`, `*`, or `/`; its precision may exceed the maximum."""
    if op == "*":
        return Type(Kind.DECIMAL, left.precision + right.precision + 1, left.scale + right.scale)
    if op == "/":
        scale = max(_LEAST_SCALE, left.scale + right.precision + 1)
        return Type(Kind.DECIMAL, left.precision - left.scale + right.scale + scale, scale)
    common = common_decimal(left, right)
    return Type(Kind.DECIMAL, common.precision + 1, common.scale)


def common_decimal(left: Type, right: Type) -> Type:
    """The type that holds every digit of both; its precision may exceed the maximum."""
    scale = max(left.scale, right.scale)
    return Type(Kind.DECIMAL, max(left.precision - left.scale, right.precision - right.scale) + scale, scale)


def _bounded(exact: Type) -> Type:
    """At most 38 digits: fractional digits beyond six are given up for integral ones."""
    if exact.precision <= MAX_PRECISION:
        return exact
    whole = exact.precision - exact.scale
    return Type(Kind.DECIMAL, MAX_PRECISION, max(MAX_PRECISION - whole, min(exact.scale, _LEAST_SCALE)))


def _remainder_result(op: str, left: Type, right: Type) -> Type | None:
    if common_decimal(left, right).precision > MAX_PRECISION:
        return None
    if op == "div":
        # With more than 18 digits it may not fit into a BIGINT.
        return BIGINT if left.precision - left.scale + right.scale <= 18 else None
    scale = max(left.scale, right.scale)
    return decimal(min(left.precision - left.scale, right.precision - right.scale) + scale, scale)
