"""Values as the oracle stores them: plain Python, one form per type, and how two of them compare."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Context, Decimal, InvalidOperation, Overflow
from typing import Any

from tureen.errors import InvalidRows
from tureen.predicate import Key
from tureen.query import Order
from tureen.schema import Kind, Type
from tureen.window import to_micros

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_EXACT = Context(prec=100)


def stored_value(value: Any, type_: Type) -> Any:
    """A pushed value in the form in which its type is stored, or InvalidRows.

    >>> stored_value(0.1, Type.parse("FLOAT"))
    0.10000000149011612
    """
    if value is None:
        return None
    match type_.kind:
        case Kind.BOOLEAN if isinstance(value, bool):
            return value
        case Kind.TINYINT if _is_int(value) and -(2**7) <= value < 2**7:
            return value
        case Kind.SMALLINT if _is_int(value) and -(2**15) <= value < 2**15:
            return value
        case Kind.INT if _is_int(value) and -(2**31) <= value < 2**31:
            return value
        case Kind.BIGINT if _is_int(value) and -(2**63) <= value < 2**63:
            return value
        case Kind.FLOAT if _is_number(value):
            return _to_float32(float(value))
        case Kind.DOUBLE if _is_number(value):
            return float(value)
        case Kind.DECIMAL if isinstance(value, Decimal) or _is_int(value):
            return _to_decimal(Decimal(value), type_)
        case Kind.STRING if isinstance(value, str):
            return value
        case Kind.DATE if isinstance(value, date) and not isinstance(value, datetime):
            return value
        case Kind.TIMESTAMP if isinstance(value, datetime):
            return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    raise InvalidRows(f"{value!r} is not a {type_.sql}")


def key_of(value: Any, type_: Type) -> Key:
    """A stored value in the key domain of its type (see `tureen.predicate`)."""
    match type_.kind:
        case Kind.BOOLEAN:
            return int(value)
        case Kind.DATE:
            return int(value.toordinal()) - _EPOCH_DAY
        case Kind.TIMESTAMP:
            return to_micros(value)
        case Kind.DECIMAL:
            return int(value.scaleb(type_.scale, _EXACT))
    key: Key = value
    return key


def order(left: Key, right: Key) -> int:
    """Negative, zero or positive as `left` is below, equal to or above `right`.

    NaN is the largest and equals itself; strings compare by their UTF-8 bytes.

    >>> order(float("nan"), float("inf")), order(-0.0, 0.0), order("Z", "é")
    (1, 0, -1)
    """
    if isinstance(left, str) and isinstance(right, str):
        first, second = left.encode(), right.encode()
        return (first > second) - (first < second)
    if isinstance(left, str) or isinstance(right, str):
        raise TypeError(f"{left!r} and {right!r} are not of one domain")
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) - math.isnan(right)
    return (left > right) - (left < right)


def compare(left: Any, right: Any, type_: Type, nulls_first: bool = True) -> int:
    """Negative, zero or positive as a stored value sorts before, with or after another of its type.

    >>> compare(None, 1, Type.parse("INT")), compare(None, 1, Type.parse("INT"), nulls_first=False)
    (-1, 1)
    """
    if left is None or right is None:
        after = (right is None) - (left is None)
        return after if nulls_first else -after
    return order(key_of(left, type_), key_of(right, type_))


def compare_ordered(left: Sequence[Any], right: Sequence[Any], orders: Sequence[Order]) -> int:
    """Negative, zero or positive as one list of values sorts before, with or after another by an ORDER BY."""
    for first, second, order_item in zip(left, right, orders, strict=True):
        # DESC reverses the values only; NULLS FIRST or LAST decides about NULLs.
        if first is None or second is None:
            sign = compare(first, second, order_item.value.type, order_item.nulls_first)
        else:
            sign = compare(first, second, order_item.value.type) * (-1 if order_item.descending else 1)
        if sign != 0:
            return sign
    return 0


def normalized(value: Any) -> Any:
    """A stored value as GROUP BY and DISTINCT return it: -0.0 becomes 0.0."""
    return 0.0 if isinstance(value, float) and value == 0 else value


def identity(value: Any) -> Any:
    """A key that is equal for two stored values of a type if GROUP BY and DISTINCT treat them as the same value.

    >>> identity(float("nan")) == identity(float("nan")), identity(None) == identity(0)
    (True, False)
    """
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


class Exactly:
    """A stored value with exact equality: -0.0 is not 0.0, 1 is not TRUE, and NaN equals itself."""

    __slots__ = ("_key", "value")

    def __init__(self, value: Any) -> None:
        """Wrap a value, so that it can be a dictionary key."""
        self.value = value
        self._key = _comparable(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Exactly) and bool(self._key == other._key)

    def __hash__(self) -> int:
        return hash(self._key)


def comparable(rows: Iterable[Mapping[str, Any]]) -> list[tuple[tuple[str, Any], ...]]:
    """An answer in a form where `==` means the same rows, names and values in the same order.

    Floats are compared by their representation, so NaN equals itself and -0.0 is not 0.0.

    >>> comparable([{"x": float("nan")}]) == comparable([{"x": float("nan")}])
    True
    """
    return [tuple((name, _comparable(value)) for name, value in row.items()) for row in rows]


def _comparable(value: Any) -> Any:
    if isinstance(value, float):
        return ("float", repr(value))
    if isinstance(value, datetime):
        return ("instant", to_micros(value))
    if isinstance(value, list):
        return tuple(map(_comparable, value))
    return (type(value).__name__, value)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or _is_int(value)


def _to_float32(value: float) -> float:
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def _to_decimal(value: Decimal, type_: Type) -> Decimal:
    unit = Decimal(1).scaleb(-type_.scale)
    try:
        rounded = value.quantize(unit, context=Context(prec=type_.precision))
    except (InvalidOperation, Overflow):
        raise InvalidRows(f"{value} does not fit {type_.sql}") from None
    if rounded != value:
        raise InvalidRows(f"{value} does not fit {type_.sql}")
    return rounded
