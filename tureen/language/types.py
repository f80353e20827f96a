"""Type coercion: the common type of two types in Spark's ANSI mode."""

from __future__ import annotations

from tureen.language.tree import BIGINT, DOUBLE, TIMESTAMP
from tureen.schema import FRACTIONAL, INTEGRAL, NUMERIC, Kind, Type

MAX_PRECISION = 38
INT_BITS = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INT: 32, Kind.BIGINT: 64}
_DIGITS = {Kind.TINYINT: 3, Kind.SMALLINT: 5, Kind.INT: 10, Kind.BIGINT: 20}


def integer_range(kind: Kind) -> tuple[int, int]:
    """The least and the greatest value of an integral type."""
    half: int = 1 << (INT_BITS[kind] - 1)
    return -half, half - 1


def decimal(precision: int, scale: int) -> Type:
    """A DECIMAL type of at most 38 digits; the scale is reduced before the integral digits are."""
    over = max(0, precision - MAX_PRECISION)
    return Type(Kind.DECIMAL, min(precision, MAX_PRECISION), max(0, scale - over))


def as_decimal(type_: Type) -> Type:
    """The DECIMAL type that holds every value of an integral type."""
    return Type(Kind.DECIMAL, _DIGITS[type_.kind], 0) if type_.kind in INTEGRAL else type_


def at_least_int(type_: Type) -> Type:
    """INT for TINYINT and SMALLINT, any other type unchanged."""
    return Type(Kind.INT) if type_.kind in (Kind.TINYINT, Kind.SMALLINT) else type_


def common_type(left: Type | None, right: Type | None) -> Type | None:
    """The type in which two values are compared; None if Spark has none.

    A STRING takes the other's type, but BIGINT for an integral type and DOUBLE for any other number.

    >>> common_type(Type.parse("INT"), Type.parse("DECIMAL(4,1)")).sql
    'DECIMAL(11,1)'
    """
    if left is None or right is None or left == right:
        return left or right
    kinds = {left.kind, right.kind}
    if kinds <= INTEGRAL:
        return Type(max(kinds, key=lambda kind: INT_BITS[kind]))
    if kinds <= NUMERIC:
        return DOUBLE if kinds & FRACTIONAL else _wider_decimal(as_decimal(left), as_decimal(right))
    if kinds == {Kind.DATE, Kind.TIMESTAMP}:
        return TIMESTAMP
    if Kind.STRING in kinds:
        other = right if left.kind is Kind.STRING else left
        if other.kind in INTEGRAL:
            return BIGINT
        return DOUBLE if other.kind in NUMERIC else other
    return None


def _wider_decimal(left: Type, right: Type) -> Type:
    scale = max(left.scale, right.scale)
    digits = max(left.precision - left.scale, right.precision - right.scale)
    return decimal(digits + scale, scale)


def is_time(type_: Type | None) -> bool:
    """Whether a type is DATE or TIMESTAMP."""
    return type_ is not None and type_.kind in (Kind.DATE, Kind.TIMESTAMP)


def keeps_every_value(source: Type, target: Type) -> bool:
    """Whether a cast never fails and keeps order, though it may round."""
    if source == target:
        return True
    match source.kind, target.kind:
        case (Kind.FLOAT, Kind.DOUBLE) | (Kind.DATE, Kind.TIMESTAMP):
            return True
        case (kind, other) if kind in INTEGRAL and other in INTEGRAL:
            return INT_BITS[kind] < INT_BITS[other]
        case (kind, Kind.DOUBLE) if kind in INTEGRAL or kind is Kind.DECIMAL:
            return True
        case (kind, Kind.DECIMAL) if kind in INTEGRAL or kind is Kind.DECIMAL:
            exact = as_decimal(source)
            digits = exact.precision - exact.scale
            # Rounding up at a smaller scale may need one digit more.
            return target.precision - target.scale >= digits + (target.scale < exact.scale)
    return False
