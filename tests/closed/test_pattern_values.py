"""The values of codes as arrays, against the values one by one."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tureen.closed.pattern import ValueList
from tureen.closed.pattern_values import array_of_codes, value_of
from tureen.punctuation import Punctuation
from tureen.schema import Schema
from tureen.stems.punctuation_binding import bind_punctuation

VALUES: dict[str, list[Any]] = {
    "BOOLEAN": [True, False],
    "TINYINT": [-128, 0, 127],
    "BIGINT": [-(1 << 63), -1, 0, (1 << 63) - 1],
    "FLOAT": [-math.inf, -0.5, 0.0, 1.25, math.inf],
    "DOUBLE": [-1e300, -0.0, 5e-324, 0.1, math.nan],
    "DECIMAL(9,2)": [Decimal("-1.50"), Decimal("0.00"), Decimal("1234567.89")],
    "DECIMAL(38,0)": [Decimal("12345678901234567890123456789012345678")],
    "STRING": ["", "ä", "x" * 40],
    "DATE": [date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31)],
    "TIMESTAMP": [datetime(1, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC)],
}


@pytest.mark.parametrize("kind", VALUES)
def test_arrays_have_the_values_of_codes(kind: str) -> None:
    schema = Schema.parse(f"c {kind}")
    ((_, part),) = bind_punctuation(schema, Punctuation(c=VALUES[kind])).columns
    assert isinstance(part, ValueList)
    column_type = schema.columns[0].type
    array = array_of_codes(column_type, part.codes)
    expected = pa.array([value_of(column_type, code) for code in part.codes], column_type.arrow)
    # As texts, in which NaN equals itself.
    assert str(array) == str(expected.cast(array.type))
