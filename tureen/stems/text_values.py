"""Values written as text, in CSV and XML, converted to a column's type by the same rules."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from tureen.schema import INTEGRAL, Column, Kind, Type
from tureen.stems.casts import LARGEST_FLOAT, exact_quantizer

_WHOLE = re.compile(r"[+-]?\d{1,40}", re.ASCII)

Refuse = Callable[[int, str], NoReturn]
"""Raises the error for the text of a row that is no value of the column's type."""


def typed_array(column: Column, texts: Sequence[str | None], refuse: Refuse) -> pa.Array:
    """The values of texts in a column's type; None is NULL."""
    quick = _quick(column.type.kind, texts)
    if quick is not None:
        return quick
    parse = _decimal(column.type) if column.type.kind is Kind.DECIMAL else _PARSE[column.type.kind]
    values: list[Any] = list(texts)
    if parse is not None:
        for row, text in enumerate(values):
            try:
                values[row] = None if text is None else parse(text)
            except (ValueError, ArithmeticError):
                refuse(row, text)
    try:
        return pa.array(values, column.type.arrow)
    except (pa.ArrowException, OverflowError, ValueError):
        for row, value in enumerate(values):
            try:
                pa.array([value], column.type.arrow)
            except (pa.ArrowException, OverflowError, ValueError):
                refuse(row, str(value))
        raise


def _quick(kind: Kind, texts: Sequence[str | None]) -> pa.Array | None:
    """Numbers converted by Arrow; None where its rules may differ from those below: hexadecimal, infinite, spaces."""
    if kind is not Kind.DOUBLE and kind not in INTEGRAL:
        return None
    try:
        strings = pa.array(texts, pa.string())
        if kind is Kind.DOUBLE:
            doubles = strings.cast(pa.float64())
            return doubles if pc.all(pc.is_finite(doubles), min_count=0).as_py() else None
        # Arrow reads 0x1F as a number.
        is_decimal = not pc.any(pc.match_substring(strings, "x", ignore_case=True), min_count=0).as_py()
        return strings.cast(Type(kind).arrow) if is_decimal else None
    except pa.ArrowException:
        return None


def _reject() -> NoReturn:
    raise ValueError


def _boolean(text: str) -> bool:
    word = text.strip().lower()
    return word == "true" if word in ("true", "false") else _reject()


def _integer(text: str) -> int:
    return int(text) if _WHOLE.fullmatch(text.strip()) else _reject()


def _float(text: str) -> float:
    number = _reject() if "_" in text else float(text)
    # A literal infinity has no digits: a number with digits overflowed.
    return _reject() if math.isinf(number) and any(map(str.isdigit, text)) else number


def _float32(text: str) -> float:
    number = _float(text)
    return _reject() if math.isfinite(number) and abs(number) > LARGEST_FLOAT else number


def _decimal(target: Type) -> Callable[[str], Decimal]:
    exact = exact_quantizer(target.precision, target.scale)
    return lambda text: _reject() if "_" in text else exact(Decimal(text.strip()))


def _date(text: str) -> date:
    return date.fromisoformat(text.strip())


def _timestamp(text: str) -> datetime:
    moment = datetime.fromisoformat(text.strip())
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


_PARSE: dict[Kind, Callable[[str], Any] | None] = {
    Kind.BOOLEAN: _boolean,
    **dict.fromkeys(INTEGRAL, _integer),
    Kind.FLOAT: _float32,
    Kind.DOUBLE: _float,
    Kind.STRING: None,
    Kind.DATE: _date,
    Kind.TIMESTAMP: _timestamp,
}
